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
use agtmux_tmux::{CursorScreen, quoted_for_shell};
use tokio::time::{Instant, timeout};

use super::screen::{LOOK_INTERVAL, PromptScreen};
use super::select::place;
use super::terminal::SharedTerminal;
use super::typing::command_text;
use super::{Mirrors, environment, errors};

/// A longer command is read from a file. The terminal of a shell without a line editor takes at most 4095 bytes.
const MAX_TYPED_BYTES: usize = 1000;
/// How long a shell that reports its exit codes may show a prompt without a report. After this time, agtmux assumes
/// that the shell no longer reports.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest pause between two looks at the screen while a command runs. The pauses grow with the command's duration.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A command that was typed at a prompt.
struct TypedCommand {
    number: u64,
    text: String,
    prompt: PromptScreen,
    /// How many prompts the shell had reported before.
    reports: usize,
}

/// The end of a command that was followed on the screen.
enum ScreenEnd {
    /// The prompt after the command. `None` if it is not seen, because the person has started a program, or because agtmux
    /// has given up.
    Prompt(Option<PromptScreen>),
    /// The pane is gone, or the terminal was released.
    Gone,
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
        let (prompt, reports) = self.run_line(terminal, &text, deadline).await?;
        terminal.update_exec(&record.exec, |status| status.reports_before = Some(reports));
        let number = terminal.view().last_number + 1;
        let started = ShellEvent::Started {
            number,
            exec: Some(record.exec.clone()),
            text: Some(record.command.clone()),
            cwd: self.cwd_of_shell(terminal),
        };
        // If the disk is full, the command runs anyway, and its result is unknown.
        let _ = terminal.add_events([started]);
        let typed = TypedCommand { number, text, prompt, reports };
        let (mirrors, terminal, exec) = (self.clone(), terminal.clone(), record.exec.clone());
        tokio::spawn(async move { mirrors.follow_on_screen(&terminal, &exec, typed).await });
        Ok(())
    }

    /// Waits for the end of the command, then stores its result.
    async fn follow_on_screen(&self, terminal: &SharedTerminal, exec: &str, typed: TypedCommand) {
        let ScreenEnd::Prompt(next) = self.wait_for_end(terminal, exec, &typed).await else {
            terminal.close();
            return;
        };
        let output = self.output_on_screen(terminal, &typed, next.as_ref()).await;
        if self.store_result(terminal, &typed, &output).is_err() {
            // The result is unknown, and those who wait for it do not get more than agtmux knows now.
            terminal.update_exec(exec, |status| status.reports_before = None);
        }
        if next.is_some() {
            self.return_stored_line(terminal).await;
        }
    }

    /// Gives the half-written line back to the person.
    pub(super) async fn return_stored_line(&self, terminal: &SharedTerminal) {
        let Ok(place) = place(terminal) else { return };
        let _pane = self.0.actions.lock_pane(place.server, PaneId(terminal.spec.pane)).await;
        self.give_line_back(terminal).await;
    }

    /// A new report of the shell, or a new prompt that stays, ends the command. agtmux also stops to look when it has given
    /// the command up.
    async fn wait_for_end(&self, terminal: &SharedTerminal, exec: &str, typed: &TypedCommand) -> ScreenEnd {
        let (began, mut changed) = (Instant::now(), terminal.subscribe());
        let mut seen_since: Option<Instant> = None;
        loop {
            changed.mark_unchanged();
            if self.is_gone(terminal) || terminal.is_closed() {
                return ScreenEnd::Gone;
            }
            if terminal.view().execs.get(exec).is_none_or(|status| status.given_up) {
                return ScreenEnd::Prompt(None);
            }
            let is_reported = terminal.prompt_reports().count > typed.reports;
            let found = self.new_prompt(terminal, typed, is_reported).await;
            if is_reported && found.is_some() {
                return ScreenEnd::Prompt(found);
            }
            if seen_since.is_none() && found.is_some() {
                terminal.update_exec(exec, |status| status.saw_prompt = true);
            }
            seen_since = (is_reported || found.is_some()).then(|| seen_since.unwrap_or_else(Instant::now));
            if seen_since.is_some_and(|since| since.elapsed() >= REPORT_TIMEOUT) {
                return ScreenEnd::Prompt(found);
            }
            let pause = match seen_since {
                Some(_) => LOOK_INTERVAL,
                None => (began.elapsed() / 10).clamp(LOOK_INTERVAL, MAX_LOOK_INTERVAL),
            };
            // A report of the shell changes the files of the terminal.
            let _ = timeout(pause, changed.changed()).await;
        }
    }

    /// The prompt, if it is not the one at which the command was typed.
    async fn new_prompt(
        &self,
        terminal: &SharedTerminal,
        typed: &TypedCommand,
        is_reported: bool,
    ) -> Option<PromptScreen> {
        let found = self.prompt_at_rest(terminal).await.ok().flatten()?;
        let is_new = found.screen != typed.prompt.screen && found.line.typed != typed.text;
        (is_reported || is_new).then_some(found)
    }

    /// The output between the prompt before the command and the one after it. If the latter was not seen, the output ends
    /// at the next line that looks like a prompt, or at the cursor.
    async fn output_on_screen(
        &self,
        terminal: &SharedTerminal,
        typed: &TypedCommand,
        next: Option<&PromptScreen>,
    ) -> String {
        let screen = match next {
            Some(next) => Ok(next.screen.clone()),
            None => self.look(terminal).await,
        };
        let Ok(screen) = screen else { return String::new() };
        let prompt = &typed.prompt.line.prompt;
        let as_number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let line = |screen: &CursorScreen| i64::try_from(screen.line).unwrap_or(i64::MAX);
        // The rows between the two prompts, counted from the top of the screen as it is now.
        let start = line(&typed.prompt.screen) - as_number(prompt.height() - 1);
        let top = line(&screen) - as_number(screen.y);
        // A shorter history than before was cleared or cut.
        let from = if start > line(&screen) { -top } else { start - top };
        let lines = self.tmux(&terminal.spec.socket).lines_to_cursor(terminal.spec.pane, from, screen.y).await;
        let next = next.map(|next| &next.line.prompt);
        let output = prompt.output(&lines.unwrap_or_default(), &typed.text, next);
        without_line_end_mark(terminal.spec.shell, screen.width, &output).to_owned()
    }

    fn store_result(&self, terminal: &SharedTerminal, typed: &TypedCommand, output: &str) -> io::Result<()> {
        let mut writer = MirrorOutputWriter::new(terminal.files.clone());
        writer.start(typed.number)?;
        writer.write(output.as_bytes())?;
        writer.finish();
        // Later reports belong to commands of the person.
        let code = terminal.prompt_report(typed.reports).map(|(code, _)| code);
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
