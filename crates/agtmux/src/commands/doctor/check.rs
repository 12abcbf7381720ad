//! One check and its result.

use agtmux_core::sanitize;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckStatus {
    Ok,
    /// Something works less well than it could.
    Warning,
    Problem,
}

impl CheckStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DoctorCheck {
    pub(super) name: &'static str,
    pub(super) status: CheckStatus,
    /// What the check found.
    pub(super) found: String,
    /// The command to run, or what to do; null if there is nothing to do.
    pub(super) run: Option<String>,
}

impl DoctorCheck {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Ok, found: found.into(), run: None }
    }

    pub(super) fn warning(name: &'static str, found: impl Into<String>, run: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Warning, found: found.into(), run: Some(run.into()) }
    }

    pub(super) fn problem(name: &'static str, found: impl Into<String>, run: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Problem, found: found.into(), run: Some(run.into()) }
    }

    /// The lines to print. The text may come from other programs.
    pub(super) fn lines(&self, colour: bool) -> Vec<String> {
        let (mark, code) = match self.status {
            CheckStatus::Ok => ("ok     ", "32"),
            CheckStatus::Warning => ("warning", "33"),
            CheckStatus::Problem => ("PROBLEM", "31"),
        };
        let mark = if colour { format!("\x1b[{code}m{mark}\x1b[0m") } else { mark.to_owned() };
        let first = format!("{mark}  {:<13}  {}", self.name, sanitize::for_terminal(&self.found));
        let run = self.run.as_ref().map(|run| format!("         run: {}", sanitize::for_terminal(run)));
        [Some(first), run].into_iter().flatten().collect()
    }
}
