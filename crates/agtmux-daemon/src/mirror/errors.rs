//! The errors of shared terminals.

use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::MirrorQuery;
use agtmux_core::ids::PaneId;

use super::terminal::TerminalView;
use crate::actions::precondition;

pub(super) fn bad(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux mirror --help")
}

pub(super) fn no_terminal(query: &MirrorQuery) -> ApiError {
    let message = match (&query.pane, &query.for_pane) {
        (Some(pane), _) => format!("{pane} is not a shared terminal"),
        (None, Some(for_pane)) => format!("there is no shared terminal for {for_pane} or its session"),
        (None, None) => "no pane given, so agtmux cannot tell which shared terminal you mean".into(),
    };
    ApiError::new(ErrorCode::RefNotFound, message).with_hint("agtmux mirror start   (in a pane of tmux)")
}

pub(super) fn pane_gone() -> ApiError {
    ApiError::new(ErrorCode::PaneNotFound, "the pane of the shared terminal is gone")
        .with_hint("agtmux mirror start   (makes a new one)")
}

pub(super) fn not_stored(error: &str) -> ApiError {
    ApiError::new(ErrorCode::NotStored, format!("nothing was typed: cannot write the files of the terminal: {error}"))
        .with_hint("agtmux daemon status")
}

/// The error when agtmux can no longer read the output of the shell.
pub(super) fn lost(why: &str) -> ApiError {
    precondition(
        format!("agtmux did not type the command, because it cannot read the output of the shared terminal: {why}"),
        "end that program, or: agtmux mirror start   (makes a new one)",
    )
}

/// The error if a shell shows no prompt.
pub(super) fn no_prompt(pane: u32, waited: Duration) -> ApiError {
    let seconds = waited.as_secs();
    precondition(
        format!("the shell in %{pane} did not show a prompt that agtmux recognizes within {seconds} s"),
        format!("look at pane %{pane}: the start files of the shell may wait for input or start another shell"),
    )
}

pub(super) fn no_pane(pane: PaneId, socket: &str) -> ApiError {
    let message = format!("there is no pane {pane} on the tmux server '{socket}'");
    ApiError::new(ErrorCode::PaneNotFound, message).with_hint("agtmux list panes --all")
}

/// The error if an existing pane shows no prompt, or text after its prompt.
pub(super) fn no_empty_prompt(pane: u32) -> ApiError {
    precondition(
        format!("nothing was typed: pane %{pane} does not show an empty prompt that agtmux recognizes"),
        format!(
            "end what runs in pane %{pane} and delete its half-written line, or: agtmux mirror start   (opens a new pane)"
        ),
    )
}

/// The error if an existing shell does not write marks after it has read them.
pub(super) fn no_marks(pane: u32) -> ApiError {
    precondition(
        format!("the shell in %{pane} has not loaded the marks; it must be bash 5.1, zsh 5.3, fish 3.2 or newer"),
        "agtmux mirror start   (opens a new pane)",
    )
}

/// The error if the screen shows no prompt of a shell without marks.
pub(super) fn no_prompt_on_screen(pane: u32) -> ApiError {
    precondition(
        format!("nothing was typed: pane %{pane} does not show the prompt of its shell"),
        format!("wait, or end the running command in pane %{pane}; agtmux mirror read   (shows the pane)"),
    )
}

/// The error if the shell does not insert a typed blank into its line.
pub(super) fn no_insertion(pane: u32) -> ApiError {
    precondition(
        format!(
            "nothing was run: the shell in %{pane} does not insert what is typed; it may be in the command mode of vi"
        ),
        format!("make the shell in pane %{pane} ready for a command (in vi mode: press i), and try again"),
    )
}

/// The error if agtmux cannot see or cannot remove the line that is being written at the prompt.
pub(super) fn unreadable_line(pane: u32) -> ApiError {
    precondition(
        format!("nothing was run: pane %{pane} shows text at its prompt or below it that agtmux cannot put aside"),
        format!("finish or delete the line in pane %{pane} (Ctrl-L clears what is below it), and try again"),
    )
}

/// The error if the shell shows something else than agtmux has typed.
pub(super) fn not_shown(pane: u32) -> ApiError {
    precondition(
        format!("nothing was run: pane %{pane} does not show the command as it was typed"),
        format!("look at pane %{pane}; agtmux mirror start   (opens a new pane, in which the shell writes marks)"),
    )
}

pub(super) fn no_command(exec: &str) -> ApiError {
    ApiError::new(ErrorCode::RefNotFound, format!("no shared terminal has a command with the id '{exec}'"))
        .with_hint("agtmux mirror status")
}

/// The error when the shell is not at its prompt and therefore cannot take a command.
pub(super) fn busy(view: &TerminalView, pane: u32) -> ApiError {
    let state = &view.state;
    let what = match &state.running {
        Some(running) => {
            let text = running.text.clone().or_else(|| view.commands.back()?.text.clone());
            let first = text.as_deref().and_then(|text| text.lines().next()).unwrap_or("a command");
            format!("'{}' runs there", first.chars().take(60).collect::<String>())
        }
        None if state.wants_more => "the shell waits for the rest of a command".into(),
        None if state.seq == 0 => "the shell has not shown a prompt yet".into(),
        None => "the shell is not reading input".into(),
    };
    precondition(
        format!("nothing was typed: the shared terminal %{pane} is busy: {what}"),
        format!("wait, or end the running command in pane %{pane}; agtmux mirror status   (shows what runs)"),
    )
}

/// The error when a command is not complete, for example because a quote is open.
pub(super) fn incomplete(why: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, format!("the command is not complete: {why}"))
        .with_hint("close all quotes, brackets and here-documents, and try again")
}

/// The error when the pane was closed while the command ran.
pub(super) fn result_lost() -> ApiError {
    let message = "the shared terminal was closed while the command ran, so the result of the command is unknown";
    let error = ApiError::new(ErrorCode::OutcomeUnknown, message);
    ApiError {
        done_something: true,
        ..error.with_hint(
            "the command may have run in part, and agtmux did not run it a second time; check what the command did",
        )
    }
}

pub(super) fn withdrawn() -> ApiError {
    precondition("the command was cancelled before it was typed, so it did not run", "agtmux mirror exec")
}
