//! The error type of actions.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_tmux::{TmuxError, TypeError, TypeRefusal, quoted_for_shell};

#[derive(Debug)]
pub(crate) struct ActionFailure {
    pub(crate) error: ApiError,
    /// The action typed or signalled something before it failed.
    pub(crate) done_something: bool,
}

impl ActionFailure {
    pub(crate) fn refused(error: ApiError) -> Self {
        Self { error, done_something: false }
    }

    pub(crate) fn precondition(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::refused(ApiError::new(ErrorCode::Precondition, message).with_hint(hint))
    }

    /// Converts to the API error, with `REF` in the hint replaced by the caller's reference, quoted for a shell if
    /// necessary.
    pub(crate) fn into_api_error(self, reference: &str) -> ApiError {
        let plain = |c: char| c.is_ascii_alphanumeric() || "%:/@._-".contains(c);
        let name = match reference.chars().all(plain) {
            true => format!(" {reference}"),
            false => format!(" {}", quoted_for_shell(reference)),
        };
        let hint = self.error.hint.map(|hint| hint.replace(" REF", &name));
        ApiError { hint, done_something: self.done_something, ..self.error }
    }

    /// Marks the failure as one that happened after something was typed.
    pub(crate) fn after_typing(self) -> Self {
        if self.done_something || self.error.code == ErrorCode::SendFailed {
            return Self { done_something: true, ..self };
        }
        // The message must not say that nothing was typed: the caller would send the text a second time.
        let replacements = [("nothing was typed: ", ""), ("; nothing was typed", ""), ("nothing was done on ", "on ")];
        let why =
            replacements.iter().fold(self.error.message, |why, (text, replacement)| why.replace(text, replacement));
        let error = ApiError::new(self.error.code, format!("failed after something was typed: {why}"));
        Self { error: error.with_hint("agtmux view-output REF   (shows the result)"), done_something: true }
    }
}

impl From<ApiError> for ActionFailure {
    fn from(error: ApiError) -> Self {
        Self::refused(error)
    }
}

impl From<TmuxError> for ActionFailure {
    fn from(error: TmuxError) -> Self {
        let (code, hint) = match &error {
            TmuxError::NotInstalled(_) => (ErrorCode::TmuxNotInstalled, "install tmux, or set tmux.program"),
            TmuxError::NoServer => (ErrorCode::RuntimeStale, "agtmux list panes --all   (the tmux server has exited)"),
            TmuxError::Timeout(_) => (ErrorCode::Timeout, "agtmux daemon status"),
            TmuxError::Spawn(_) | TmuxError::Failed(_) => (ErrorCode::SubprocessFailed, "agtmux daemon logs"),
            TmuxError::Unreadable(_) => (ErrorCode::Unknown, "agtmux daemon logs"),
            TmuxError::Unreachable(_) => (ErrorCode::TargetUnreachable, "agtmux target list"),
        };
        let gone = matches!(&error, TmuxError::Failed(message) if message.contains("can't find pane"));
        let (code, hint) = if gone { (ErrorCode::PaneNotFound, "agtmux list panes --all") } else { (code, hint) };
        Self::refused(ApiError::new(code, error.to_string()).with_hint(hint))
    }
}

impl From<TypeError> for ActionFailure {
    fn from(error: TypeError) -> Self {
        match error {
            // tmux may have typed the text before it stopped answering. It does not type it later.
            TypeError::Tmux(error @ (TmuxError::Timeout(_) | TmuxError::Unreadable(_) | TmuxError::Unreachable(_))) => {
                let is_lost = matches!(error, TmuxError::Unreachable(_));
                let mut failure = Self::from(error);
                if is_lost {
                    failure.error.code = ErrorCode::OutcomeUnknown;
                }
                let hint = "agtmux view-output REF   (shows whether the text was typed; it will not be typed later)";
                Self { error: failure.error.with_hint(hint), done_something: true }
            }
            TypeError::Tmux(error) => error.into(),
            TypeError::Refused(why) => Self::refused(typing_refused(why)),
        }
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
        let before = ActionFailure::precondition("the dialog has changed; nothing was typed", "look");
        let error = before.after_typing().into_api_error("%12");
        assert_eq!(error.message, "failed after something was typed: the dialog has changed");
        assert_eq!(error.hint.as_deref(), Some("agtmux view-output %12   (shows the result)"));
        assert!(error.done_something);
        let refused = ActionFailure::refused(typing_refused(TypeRefusal::Dead)).into_api_error("my work");
        assert_eq!(refused.message, "nothing was typed: the pane's program has ended");
        assert_eq!(refused.hint.as_deref(), Some("agtmux resume 'my work'   (restarts the agent)"));
    }
}
