//! Errors of actions. The field `done_something` of an error says whether the action typed or signalled something
//! before it failed.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_tmux::{TmuxError, TypeError, TypeRefusal, quoted_for_shell};

pub(crate) fn precondition(message: impl Into<String>, hint: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Precondition, message).with_hint(hint)
}

/// Replaces `REF` in the hint with the caller's reference, quoted for a shell if necessary.
pub(super) fn name_reference(error: ApiError, reference: &str) -> ApiError {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%:/@._-".contains(c);
    let name = match reference.chars().all(plain) {
        true => format!(" {reference}"),
        false => format!(" {}", quoted_for_shell(reference)),
    };
    ApiError { hint: error.hint.map(|hint| hint.replace(" REF", &name)), ..error }
}

/// Marks an error that happened after the action had typed something.
pub(super) fn after_typing(error: ApiError) -> ApiError {
    if error.done_something || error.code == ErrorCode::SendFailed {
        return ApiError { done_something: true, ..error };
    }
    // The message must not say that nothing was typed: the caller would send the text a second time.
    let replacements = [("nothing was typed: ", ""), ("; nothing was typed", ""), ("nothing was done on ", "on ")];
    let why = replacements.iter().fold(error.message, |why, (text, replacement)| why.replace(text, replacement));
    let error = ApiError::new(error.code, format!("failed after something was typed: {why}"));
    ApiError { done_something: true, ..error.with_hint("agtmux view-output REF   (shows the result)") }
}

/// If `typed` is true, marks errors as [`after_typing`] does.
pub(super) fn after_typing_if(typed: bool) -> impl FnOnce(ApiError) -> ApiError {
    move |error| if typed { after_typing(error) } else { error }
}

pub(crate) fn tmux_error(error: TmuxError) -> ApiError {
    let (code, hint) = match &error {
        TmuxError::NotInstalled(_) => (ErrorCode::TmuxNotInstalled, "install tmux, or set tmux.program"),
        TmuxError::NoServer => (ErrorCode::RuntimeStale, "agtmux list panes --all   (the tmux server has exited)"),
        TmuxError::Timeout(_) => (ErrorCode::Timeout, "agtmux daemon status"),
        TmuxError::Failed(message) if message.contains("can't find pane") => {
            (ErrorCode::PaneNotFound, "agtmux list panes --all")
        }
        error if error.means_no_session() => (
            ErrorCode::RuntimeStale,
            "agtmux list panes --all   (shows the panes of other tmux servers; this server has no session left)",
        ),
        TmuxError::Spawn(_) | TmuxError::Failed(_) => (ErrorCode::SubprocessFailed, "agtmux daemon logs"),
        TmuxError::Unreadable(_) => (ErrorCode::Unknown, "agtmux daemon logs"),
        TmuxError::Unreachable(_) => (ErrorCode::TargetUnreachable, "agtmux target list"),
    };
    ApiError::new(code, error.to_string()).with_hint(hint)
}

pub(crate) fn type_error(error: TypeError) -> ApiError {
    match error {
        // tmux may have typed the text before it stopped answering. tmux does not type the text later.
        TypeError::Tmux(error @ (TmuxError::Timeout(_) | TmuxError::Unreadable(_) | TmuxError::Unreachable(_))) => {
            let is_lost = matches!(error, TmuxError::Unreachable(_));
            let error = tmux_error(error);
            let code = if is_lost { ErrorCode::OutcomeUnknown } else { error.code };
            let hint = "agtmux view-output REF   (shows whether the text was typed; agtmux does not type it later)";
            ApiError { code, done_something: true, ..error.with_hint(hint) }
        }
        TypeError::Tmux(error) => tmux_error(error),
        TypeError::Refused(why) => typing_refused(why),
    }
}

fn typing_refused(why: TypeRefusal) -> ApiError {
    let (code, hint) = match why {
        TypeRefusal::NoPane => (ErrorCode::PaneNotFound, "agtmux list panes --all"),
        TypeRefusal::OtherServer | TypeRefusal::OtherProcess => (ErrorCode::RuntimeStale, "agtmux list panes"),
        TypeRefusal::Dead => (ErrorCode::RuntimeStale, "agtmux resume REF   (restarts the agent)"),
        TypeRefusal::InMode => (
            ErrorCode::Precondition,
            "leave copy mode in that pane, or set tmux_bridge.leave_copy_mode in the configuration",
        ),
        TypeRefusal::Synchronized => (ErrorCode::Precondition, "tmux set-option -w synchronize-panes off"),
        TypeRefusal::InputOff => (ErrorCode::Precondition, "tmux select-pane -e"),
        TypeRefusal::TooLate => (ErrorCode::Timeout, "agtmux daemon status"),
    };
    ApiError::new(code, format!("nothing was typed: {why}")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_after_typing_says_so_and_its_hint_names_the_pane() {
        let before = precondition("the dialog has changed; nothing was typed", "look");
        let error = name_reference(after_typing(before), "%12");
        assert_eq!(error.message, "failed after something was typed: the dialog has changed");
        assert_eq!(error.hint.as_deref(), Some("agtmux view-output %12   (shows the result)"));
        assert!(error.done_something);
        let refused = name_reference(typing_refused(TypeRefusal::Dead), "my work");
        assert_eq!(refused.message, "nothing was typed: the pane's program has ended");
        assert_eq!(refused.hint.as_deref(), Some("agtmux resume 'my work'   (restarts the agent)"));
    }

    #[test]
    fn a_tmux_server_that_exits_makes_the_runtime_stale() {
        let code = |message: &str| tmux_error(TmuxError::Failed(message.into())).code;
        assert_eq!(code("no current target"), ErrorCode::RuntimeStale);
        assert_eq!(code("can't find pane: %0"), ErrorCode::PaneNotFound);
        assert_eq!(code("unknown command: x"), ErrorCode::SubprocessFailed);
    }
}
