//! Detects whether a task waits at a prompt, and remembers whether that prompt was reported.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::prompt::recognize_prompt;
use super::super::snapshot::TaskSnapshot;
use super::PROMPT_STABLE_FOR;
use crate::redact;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct PromptTracker {
    /// The prompt that was reported last. `None` once it has disappeared.
    #[serde(alias = "told")]
    reported: Option<SeenPrompt>,
    /// A prompt that is not confirmed yet. It is not stored, because it contains output, which may include secrets.
    /// After a restart, the next snapshot finds the prompt again.
    #[serde(skip)]
    candidate: Option<CandidatePrompt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SeenPrompt {
    prompt: String,
    row: Option<u64>,
    /// The number of prompts answered before this one.
    #[serde(default)]
    answers: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CandidatePrompt {
    seen: SeenPrompt,
    output: String,
    since: Timestamp,
}

impl PromptTracker {
    /// Returns the prompt that this snapshot confirms, unless the prompt was already reported.
    pub(super) fn observe(&mut self, snapshot: &TaskSnapshot, now: Timestamp) -> Option<String> {
        // Without the cursor line, neither the presence nor the absence of a prompt is known.
        let line = snapshot.cursor_line.as_deref()?;
        let Some(prompt) = recognize_prompt(line) else {
            self.candidate = None;
            // A partly typed answer does not end the prompt.
            let is_continued = |reported: &SeenPrompt| {
                redact::text(line.trim_start()).starts_with(&reported.prompt) && reported.row == snapshot.cursor_row
            };
            self.reported.take_if(|reported| !is_continued(reported));
            return None;
        };
        let seen = SeenPrompt {
            prompt: redact::text(&prompt).into_owned(),
            row: snapshot.cursor_row,
            answers: snapshot.answers,
        };
        if self.reported.as_ref().is_some_and(|reported| reported.covers(&seen)) {
            self.candidate = None;
            return None;
        }
        self.confirm(seen, &snapshot.output_preview, now)
    }

    fn confirm(&mut self, seen: SeenPrompt, output: &str, now: Timestamp) -> Option<String> {
        match &self.candidate {
            Some(candidate) if candidate.seen == seen && candidate.output == output => {
                if now.duration_since(candidate.since) < PROMPT_STABLE_FOR {
                    return None;
                }
                let prompt = seen.prompt.clone();
                self.reported = Some(seen);
                self.candidate = None;
                Some(prompt)
            }
            _ => {
                self.candidate = Some(CandidatePrompt { seen, output: output.to_owned(), since: now });
                None
            }
        }
    }

    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.candidate.as_mut().map(|candidate| &mut candidate.since).into_iter()
    }

    pub(super) fn reported_prompt(&self) -> Option<&str> {
        self.reported.as_ref().map(|reported| reported.prompt.as_str())
    }

    /// The earliest time at which a snapshot can confirm the candidate.
    pub(super) fn next_snapshot_at(&self) -> Option<Timestamp> {
        self.candidate.as_ref().and_then(|candidate| candidate.since.checked_add(PROMPT_STABLE_FOR).ok())
    }
}

impl SeenPrompt {
    /// Whether `other` is the same prompt. The same text on a later line, or after another answer, is a new prompt.
    fn covers(&self, other: &Self) -> bool {
        let further_down = self.row.zip(other.row).is_some_and(|(reported, now)| now > reported);
        self.prompt == other.prompt && !further_down && other.answers <= self.answers
    }
}
