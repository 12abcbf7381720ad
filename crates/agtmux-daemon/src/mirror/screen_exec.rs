//! `mirror exec` in a shell without marks: types the command as a person does, and reads its output from the screen.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::mirror_files::{MirrorExecRecord, MirrorOutputWriter};
use agtmux_core::ids::PaneId;
use agtmux_core::mirror::{MirrorShell, ShellEvent, without_line_end_mark};
use agtmux_tmux::{PaneInput, quoted_for_shell};
use tokio::time::{Instant, sleep};

use super::screen::{LOOK_INTERVAL, PromptReports, PromptScreen};
use super::select::place;
use super::terminal::SharedTerminal;
use super::typing::command_text;
use super::{Mirrors, environment, errors};

/// A longer command is read from a file. The terminal of a shell without a line editor takes at most 4095 bytes.
const MAX_TYPED_BYTES: usize = 1000;
/// How long a shell that reports its exit codes may show a prompt without a report. After this time, agtmux assumes
/// that the shell no longer reports.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the shell may need to remove a half-written line.
const STASH_TIMEOUT: Duration = Duration::from_secs(1);
/// Moves to the end of the line and deletes it. Terminals without a line editor know only the second key.
const END_OF_LINE: u8 = 0x05;
const DELETE_LINE: u8 = 0x15;

/// A command that was typed at a prompt.
struct TypedCommand {
    number: u64,
    text: String,
    prompt: PromptScreen,
    /// What the shell had reported before.
    reports: PromptReports,
    /// The half-written line of the person.
    stash: String,
}

impl Mirrors {
    /// Types the command and follows it in the background.
    pub(super) async fn type_on_screen(
        &self,
        terminal: &Arc<SharedTerminal>,
        record: &MirrorExecRecord,
        env: &BTreeMap<String, String>,
        deadline: Instant,
    ) -> ApiResult<()> {
        let not_stored = |error: io::Error| errors::not_stored(&error.to_string());
        // A shell with hooks reports its exit codes once this file exists.
        let codes = OpenOptions::new().append(true).create(true).mode(0o600).open(terminal.files.codes());
        codes.map_err(not_stored)?;
        let text = typed_text(terminal, record, env, self.cwd_of_shell(terminal).as_deref()).map_err(not_stored)?;
        // No other action types into the pane meanwhile.
        let _pane = self.0.actions.lock_pane(place(terminal)?.server, PaneId(terminal.spec.pane)).await;
        let (prompt, stash) = self.stash_line(terminal, deadline).await?;
        let reports = terminal.prompt_reports();
        self.type_keys(terminal, PaneInput::Bytes(format!("{text}\r").as_bytes())).await?;
        let number = terminal.view().last_number + 1;
        let started = ShellEvent::Started {
            number,
            exec: Some(record.exec.clone()),
            text: Some(record.command.clone()),
            cwd: self.cwd_of_shell(terminal),
        };
        // If the disk is full, the command runs anyway, and its result is unknown.
        let _ = terminal.add_events([started]);
        let typed = TypedCommand { number, text, prompt, reports, stash };
        let (mirrors, terminal) = (self.clone(), terminal.clone());
        tokio::spawn(async move { mirrors.follow_on_screen(&terminal, typed).await });
        Ok(())
    }

    /// Removes the half-written line of the person from the prompt, and returns it.
    async fn stash_line(&self, terminal: &SharedTerminal, deadline: Instant) -> ApiResult<(PromptScreen, String)> {
        let mut shown = self.wait_for_screen_prompt(terminal, deadline).await?;
        let stash = shown.line.typed.clone();
        if stash.is_empty() {
            return Ok((shown, stash));
        }
        let keys: &[u8] = match terminal.spec.shell {
            MirrorShell::Posix => &[DELETE_LINE],
            _ => &[END_OF_LINE, DELETE_LINE],
        };
        self.type_keys(terminal, PaneInput::Bytes(keys)).await?;
        let until = Instant::now() + STASH_TIMEOUT;
        while !shown.line.typed.is_empty() {
            if Instant::now() >= until {
                return Err(errors::no_prompt_on_screen(terminal.spec.pane));
            }
            shown = self.wait_for_screen_prompt(terminal, deadline).await?;
        }
        Ok((shown, stash))
    }

    /// Waits for the next prompt, then stores the result of the command.
    async fn follow_on_screen(&self, terminal: &SharedTerminal, typed: TypedCommand) {
        let Some(next) = self.wait_for_next_prompt(terminal, &typed).await else {
            let _ = terminal.add_events([ShellEvent::Closed]);
            return;
        };
        let output = self.output_on_screen(terminal, &typed, &next).await;
        // The result is unknown if it cannot be stored.
        let _ = self.store_result(terminal, &typed, &output);
        if !typed.stash.is_empty() {
            let _ = self.type_keys(terminal, PaneInput::Bytes(typed.stash.as_bytes())).await;
        }
    }

    /// `None` if the pane is gone.
    async fn wait_for_next_prompt(&self, terminal: &SharedTerminal, typed: &TypedCommand) -> Option<PromptScreen> {
        let mut unreported_since = None;
        loop {
            if self.is_gone(terminal) {
                return None;
            }
            let found = self.prompt_at_rest(terminal).await.ok().flatten();
            let is_new = |found: &PromptScreen| found.screen != typed.prompt.screen && found.line.typed != typed.text;
            let is_reported = terminal.prompt_reports().count > typed.reports.count;
            match found.filter(|found| is_reported || is_new(found)) {
                Some(found) if is_reported => return Some(found),
                Some(found) => {
                    let since = *unreported_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= REPORT_TIMEOUT {
                        return Some(found);
                    }
                }
                None => unreported_since = None,
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    async fn output_on_screen(&self, terminal: &SharedTerminal, typed: &TypedCommand, next: &PromptScreen) -> String {
        let prompt = &typed.prompt.line.prompt;
        let as_number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let line = |screen: &PromptScreen| i64::try_from(screen.screen.line).unwrap_or(i64::MAX);
        // The rows between the two prompts, counted from the top of the screen as it is now.
        let start = line(&typed.prompt) - as_number(prompt.height() - 1);
        let top = line(next) - as_number(next.screen.y);
        // A shorter history than before was cleared or cut.
        let from = if start > line(next) { -top } else { start - top };
        let lines = self.tmux(&terminal.spec.socket).lines_to_cursor(terminal.spec.pane, from, next.screen.y).await;
        let output = prompt.output(&lines.unwrap_or_default(), &typed.text, &next.line.prompt);
        without_line_end_mark(terminal.spec.shell, next.screen.width, &output).to_owned()
    }

    fn store_result(&self, terminal: &SharedTerminal, typed: &TypedCommand, output: &str) -> io::Result<()> {
        let mut writer = MirrorOutputWriter::new(terminal.files.clone());
        writer.start(typed.number)?;
        writer.write(output.as_bytes())?;
        writer.finish();
        let reports = terminal.prompt_reports();
        let code = reports.last.filter(|_| reports.count > typed.reports.count).map(|(code, _)| code);
        let ended = ShellEvent::Ended { number: typed.number, code, text: None, bytes: output.len() as u64 };
        let seq = terminal.view().state.seq + 1;
        let prompt = ShellEvent::Prompt { seq, cwd: self.cwd_of_shell(terminal) };
        terminal.add_events([ended, prompt, ShellEvent::Ready { seq }])
    }
}

/// The text to type. A command that cannot be typed as one line is read from a file.
fn typed_text(
    terminal: &SharedTerminal,
    record: &MirrorExecRecord,
    env: &BTreeMap<String, String>,
    cwd: Option<&str>,
) -> io::Result<String> {
    let text = environment::exports(terminal.spec.shell, env) + &command_text(terminal.spec.shell, record, cwd);
    // A line editor would complete words at a tab and expand "!".
    if text.len() <= MAX_TYPED_BYTES && !text.contains(['\n', '\t', '!']) {
        return Ok(text);
    }
    let script = terminal.files.script();
    terminal.files.write(&script, format!("{text}\n").as_bytes())?;
    let word = if terminal.spec.shell == MirrorShell::Fish { "source" } else { "." };
    Ok(format!("{word} {}", quoted_for_shell(&script.to_string_lossy())))
}
