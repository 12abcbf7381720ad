//! The ways in which the mock model can fail.

/// A failure of the model, or of the connection to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFailure {
    /// The model answers with this HTTP status.
    Status(u16),
    /// No server listens at the address of the model.
    Refused,
    /// The model resets the connection instead of sending an answer.
    Reset,
    /// The connection ends in the middle of the answer.
    BrokenStream,
}

impl ModelFailure {
    pub const ALL: [Self; 11] = [
        Self::Status(400),
        Self::Status(401),
        Self::Status(403),
        Self::Status(404),
        Self::Status(413),
        Self::Status(429),
        Self::Status(500),
        Self::Status(529),
        Self::Refused,
        Self::Reset,
        Self::BrokenStream,
    ];

    /// The prompt that makes the mock model fail this way. For `Refused`, the server must be stopped first.
    pub fn prompt(self) -> &'static str {
        match self {
            Self::Status(400) => "FAIL 400",
            Self::Status(401) => "FAIL 401",
            Self::Status(403) => "FAIL 403",
            Self::Status(404) => "FAIL 404",
            Self::Status(413) => "FAIL 413",
            Self::Status(429) => "FAIL 429",
            Self::Status(529) => "FAIL 529",
            Self::Status(_) => "FAIL 500",
            Self::Refused => "SAY that no server listens",
            Self::Reset => "HANGUP",
            Self::BrokenStream => "DROP",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ScriptedAction;

    #[test]
    fn each_prompt_requests_its_failure() {
        for failure in ModelFailure::ALL {
            let wanted = match failure {
                ModelFailure::Status(code) => ScriptedAction::Fail(code),
                ModelFailure::Refused => ScriptedAction::Say("that no server listens".into()),
                ModelFailure::Reset => ScriptedAction::Hangup,
                ModelFailure::BrokenStream => ScriptedAction::Drop,
            };
            assert_eq!(ScriptedAction::find(failure.prompt()), Some(wanted));
        }
    }
}
