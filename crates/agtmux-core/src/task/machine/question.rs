//! Whether a task waits at a prompt, and whether that was told.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::look::TaskLook;
use super::super::prompt::recognise;
use super::PROMPT_STANDS;
use crate::redact;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Question {
    /// What was told, until it is gone.
    told: Option<Asked>,
    /// What may be one. It is not stored: its output may hold secrets, and two looks are soon taken again.
    #[serde(skip)]
    standing: Option<Standing>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    prompt: String,
    row: Option<u64>,
    /// How many questions were answered before it.
    #[serde(default)]
    answers: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    asked: Asked,
    output: String,
    since: Timestamp,
}

impl Question {
    /// The prompt, if this look is the one that makes it certain.
    pub(super) fn look(&mut self, look: &TaskLook, now: Timestamp) -> Option<String> {
        // Without the cursor nothing can be said, neither that it asks nor that it no longer does.
        let line = look.cursor_line.as_deref()?;
        let Some(prompt) = recognise(line) else {
            self.standing = None;
            // An answer that is being typed does not end the question.
            let goes_on =
                |told: &Asked| redact::text(line.trim_start()).starts_with(&told.prompt) && told.row == look.cursor_row;
            self.told.take_if(|told| !goes_on(told));
            return None;
        };
        let asked = Asked { prompt: redact::text(&prompt).into_owned(), row: look.cursor_row, answers: look.answers };
        if self.told.as_ref().is_some_and(|told| told.covers(&asked)) {
            self.standing = None;
            return None;
        }
        self.stands(asked, &look.output_preview, now)
    }

    fn stands(&mut self, asked: Asked, output: &str, now: Timestamp) -> Option<String> {
        match &self.standing {
            Some(standing) if standing.asked == asked && standing.output == output => {
                if now.duration_since(standing.since) < PROMPT_STANDS {
                    return None;
                }
                let prompt = asked.prompt.clone();
                self.told = Some(asked);
                self.standing = None;
                Some(prompt)
            }
            _ => {
                self.standing = Some(Standing { asked, output: output.to_owned(), since: now });
                None
            }
        }
    }

    pub(super) fn told_prompt(&self) -> Option<&str> {
        self.told.as_ref().map(|told| told.prompt.as_str())
    }

    /// When the next look can make it certain.
    pub(super) fn looks_at(&self) -> Option<Timestamp> {
        self.standing.as_ref().and_then(|standing| standing.since.checked_add(PROMPT_STANDS).ok())
    }
}

impl Asked {
    /// The same words further down were asked after an answer, and so were those on the same line of a screen that was cleared.
    fn covers(&self, other: &Self) -> bool {
        let further_down = self.row.zip(other.row).is_some_and(|(told, now)| now > told);
        self.prompt == other.prompt && !further_down && other.answers <= self.answers
    }
}
