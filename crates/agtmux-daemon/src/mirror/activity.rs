//! Reports what the person does in a shared terminal: each command with its directory, output and exit code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::ApiResult;
use agtmux_api::wire::{MirrorActivity, MirrorActivityItem, MirrorActivityQuery, MirrorQuery};
use tokio::time::Instant;

use super::Mirrors;
use super::result::read_excerpt;
use super::terminal::{CommandEnd, CommandRecord, SharedTerminal, TerminalView};

const DEFAULT_LIMIT: u32 = 20;
const MAX_OUTPUT_BYTES: u64 = 10_000;

/// Follows the commands of the person in one terminal.
pub(crate) struct ActivityReader {
    terminal: Arc<SharedTerminal>,
    after: u64,
}

impl Mirrors {
    pub(crate) async fn activity(&self, query: &MirrorActivityQuery) -> ApiResult<MirrorActivity> {
        let terminal = self.select(&selected(query)).await?;
        terminal.refresh();
        let after = query.after.unwrap_or(0);
        let mut commands = commands_after(&terminal.view(), after);
        let limit = usize::try_from(query.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let commands = commands.split_off(commands.len().saturating_sub(limit));
        let items = commands.into_iter().map(|(command, end)| item(&terminal, command, end)).collect();
        Ok(MirrorActivity { schema_version: SCHEMA_VERSION, items })
    }

    /// Follows the commands of the person with a higher number than `after`, or than `query.after` if `after` is
    /// `None`. If both are `None`, follows the commands that end from now on.
    pub(crate) async fn read_activity(
        &self,
        query: &MirrorActivityQuery,
        after: Option<u64>,
    ) -> ApiResult<ActivityReader> {
        let terminal = self.select(&selected(query)).await?;
        terminal.refresh();
        let after = after.or(query.after).or_else(|| terminal.last_ended()).unwrap_or(0);
        Ok(ActivityReader { terminal, after })
    }
}

impl ActivityReader {
    /// Waits for the next command of the person, at most for `patience`. Returns `None` if no command has ended by
    /// then. Fails if the terminal is closed.
    pub(crate) async fn next(&mut self, patience: Duration) -> Result<Option<MirrorActivityItem>, ()> {
        let after = self.after;
        let next = |view: &TerminalView| match commands_after(view, after).into_iter().next() {
            Some(found) => Some(Ok(found)),
            None => view.state.is_closed.then_some(Err(())),
        };
        let Some(found) = self.terminal.wait_for(Instant::now() + patience, next).await else { return Ok(None) };
        let (command, end) = found?;
        self.after = command.number;
        Ok(Some(item(&self.terminal, command, end)))
    }
}

fn selected(query: &MirrorActivityQuery) -> MirrorQuery {
    let MirrorActivityQuery { socket, pane, for_pane, .. } = query.clone();
    MirrorQuery { socket, pane, for_pane }
}

/// The commands of the person that have ended and have a higher number than `after`, oldest first.
fn commands_after(view: &TerminalView, after: u64) -> Vec<(CommandRecord, CommandEnd)> {
    let is_new = |command: &&CommandRecord| command.exec.is_none() && command.number > after;
    view.commands.iter().filter(is_new).filter_map(|command| Some((command.clone(), command.end?))).collect()
}

fn item(terminal: &SharedTerminal, command: CommandRecord, end: CommandEnd) -> MirrorActivityItem {
    let output = terminal.files.output(command.number);
    let (excerpt, _) = read_excerpt(&output, end.bytes, terminal.spec.shell, false, MAX_OUTPUT_BYTES);
    let mut item = MirrorActivityItem {
        number: command.number,
        command: command.text,
        cwd: command.cwd,
        exit_code: end.code,
        started_at: command.started_at,
        ended_at: end.at,
        truncated: excerpt.omitted_bytes > 0,
        output: excerpt.text,
        text: String::new(),
    };
    item.text = as_text(&item, std::env::var("HOME").ok().as_deref());
    item
}

/// The item as text: `~/dir $ command`, the output, and `[exit code: N]`.
fn as_text(item: &MirrorActivityItem, home: Option<&str>) -> String {
    let cwd = item.cwd.as_deref().unwrap_or("?");
    let below_home = home.and_then(|home| Path::new(cwd).strip_prefix(home).ok());
    let cwd = match below_home.map(|rest| rest.display().to_string()) {
        Some(rest) if rest.is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{rest}"),
        None => cwd.to_owned(),
    };
    let command = item.command.as_deref().unwrap_or("(not in the history of the shell)");
    let cut = match item.truncated {
        true if item.output.is_empty() => "[the output is no longer stored]\n",
        true => "[the beginning of the output is left out]\n",
        false => "",
    };
    let separator = if item.output.is_empty() || item.output.ends_with('\n') { "" } else { "\n" };
    let code = item.exit_code.map_or("unknown".into(), |code| code.to_string());
    format!("{cwd} $ {command}\n{cut}{}{separator}[exit code: {code}]", item.output)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn activity_is_shown_as_in_a_terminal() {
        let item = |cwd: &str, output: &str| MirrorActivityItem {
            number: 1,
            command: Some("make".into()),
            cwd: Some(cwd.into()),
            exit_code: Some(2),
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            output: output.into(),
            truncated: false,
            text: String::new(),
        };
        let text = |item: &MirrorActivityItem| as_text(item, Some("/home/me"));
        assert_eq!(text(&item("/home/me/a", "x\n")), "~/a $ make\nx\n[exit code: 2]");
        assert_eq!(text(&item("/home/me", "x")), "~ $ make\nx\n[exit code: 2]");
        assert_eq!(text(&item("/home/meother", "")), "/home/meother $ make\n[exit code: 2]");
        let removed = MirrorActivityItem { truncated: true, ..item("/", "") };
        assert_eq!(text(&removed), "/ $ make\n[the output is no longer stored]\n[exit code: 2]");
        let private = MirrorActivityItem { command: None, exit_code: None, ..item("/", "") };
        assert_eq!(text(&private), "/ $ (not in the history of the shell)\n[exit code: unknown]");
    }
}
