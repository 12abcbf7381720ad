//! Whether a task waits at a prompt, and whether that was told.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::prompt::recognize_prompt;
use super::super::snapshot::TaskSnapshot;
use super::PROMPT_STABLE_FOR;
use crate::redact;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct PromptTracker {
    /// What was told, until it is gone.
    #[serde(alias = "told")]
    reported: Option<SeenPrompt>,
    /// What may be one. It is not stored: its output may hold secrets, and two looks are soon taken again.
    #[serde(skip)]
    candidate: Option<CandidatePrompt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SeenPrompt {
    prompt: String,
    row: Option<u64>,
    /// How many questions were answered before it.
    #[serde(default)]
    answers: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CandidatePrompt {
    asked: SeenPrompt,
    output: String,
    since: Timestamp,
}

impl PromptTracker {
    /// The prompt, if this look is the one that makes it certain.
    pub(super) fn observe(&mut self, look: &TaskSnapshot, now: Timestamp) -> Option<String> {
        // Without the cursor nothing can be said, neither that it asks nor that it no longer does.
        let line = look.cursor_line.as_deref()?;
        let Some(prompt) = recognize_prompt(line) else {
            self.candidate = None;
            // An answer that is being typed does not end the question.
            let goes_on = |told: &SeenPrompt| {
                redact::text(line.trim_start()).starts_with(&told.prompt) && told.row == look.cursor_row
            };
            self.reported.take_if(|told| !goes_on(told));
            return None;
        };
        let asked =
            SeenPrompt { prompt: redact::text(&prompt).into_owned(), row: look.cursor_row, answers: look.answers };
        if self.reported.as_ref().is_some_and(|told| told.covers(&asked)) {
            self.candidate = None;
            return None;
        }
        self.confirm(asked, &look.output_preview, now)
    }

    fn confirm(&mut self, asked: SeenPrompt, output: &str, now: Timestamp) -> Option<String> {
        match &self.candidate {
            Some(standing) if standing.asked == asked && standing.output == output => {
                if now.duration_since(standing.since) < PROMPT_STABLE_FOR {
                    return None;
                }
                let prompt = asked.prompt.clone();
                self.reported = Some(asked);
                self.candidate = None;
                Some(prompt)
            }
            _ => {
                self.candidate = Some(CandidatePrompt { asked, output: output.to_owned(), since: now });
                None
            }
        }
    }

    pub(super) fn reported_prompt(&self) -> Option<&str> {
        self.reported.as_ref().map(|told| told.prompt.as_str())
    }

    /// When the next look can make it certain.
    pub(super) fn next_snapshot_at(&self) -> Option<Timestamp> {
        self.candidate.as_ref().and_then(|standing| standing.since.checked_add(PROMPT_STABLE_FOR).ok())
    }
}

impl SeenPrompt {
    /// The same words further down were asked after an answer, and so were those on the same line of a screen that was cleared.
    fn covers(&self, other: &Self) -> bool {
        let further_down = self.row.zip(other.row).is_some_and(|(told, now)| now > told);
        self.prompt == other.prompt && !further_down && other.answers <= self.answers
    }
}
