//! What a prompt tells the model to do.

use std::time::Duration;

/// What is said once a tool has answered.
pub const CLOSING: &str = "All done after the tool result.";

/// The last words of a slow answer.
pub const SLOW_END: &str = "end-of-slow.";

/// An answer that quotes what the agents themselves show when they wait, work or fail.
pub const QUOTED: &str = "Quoted for you:\n\n\
    Do you want to proceed?\n\
    ❯ 1. Yes\n  2. Yes, and don't ask again\n  3. No\n\
    Esc to cancel · Tab to amend\n\
    Would you like to run the following command?\n\
    › 1. Yes, proceed (y)\n\
    Press enter to confirm or esc to cancel\n\
    Allow execution of [Shell]?\n\
    ● 1. Allow once\n\
    Working (3s • esc to interrupt)\n\
    Thinking... (esc to cancel, 2s)\n\
    API Error: 500 quoted\n\
    end-of-quote.";

/// How often a slow answer grows.
const BEAT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// `SAY x`: this text.
    Say(String),
    /// `SLOW n`: words for n seconds.
    Slow(u32),
    /// `THINK n`: nothing for n seconds, then text.
    Think(u32),
    /// `RUN cmd`: a shell tool call.
    Run(String),
    /// `DO cmd`: the same without asking for more rights than the agent has, where it knows such a thing.
    Do(String),
    /// `BG cmd`: `RUN` in the background, where the agent has that.
    Background(String),
    /// `ASK`: a call of the question tool.
    Ask,
    /// `MANY`: the same with a question that takes several options, where the agent has that.
    Many,
    /// `SEVERAL`: the same with two questions, the first of which takes several options.
    Several,
    /// `PLAN`: the wish to leave plan mode.
    Plan,
    /// `TASK x`: a subagent with this prompt.
    Task(String),
    /// Waits for a subagent. No word of a prompt: it follows where the agent would go on without it.
    Await(String),
    /// `FAIL code`: an HTTP error.
    Fail(u16),
    /// `DROP`: half an answer.
    Drop,
    /// `QUOTE`: [`QUOTED`].
    Quote,
}

/// A part of an answer, in the words of no protocol.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Wait(Duration),
    Tool(Act),
    Cut,
}

impl Act {
    /// The last line that begins with a word of ours says what to do: agents put reminders of their own around what the
    /// user typed.
    pub fn find(text: &str) -> Option<Self> {
        text.lines().rev().find_map(|line| Self::parse(line.trim()))
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim().to_owned();
        let number = || rest.split(' ').next().and_then(|number| number.parse::<u32>().ok());
        match word {
            "SAY" => Some(Self::Say(rest)),
            "SLOW" => number().map(Self::Slow),
            "THINK" => number().map(Self::Think),
            "RUN" if !rest.is_empty() => Some(Self::Run(rest)),
            "DO" if !rest.is_empty() => Some(Self::Do(rest)),
            "BG" if !rest.is_empty() => Some(Self::Background(rest)),
            "TASK" if !rest.is_empty() => Some(Self::Task(rest)),
            "FAIL" => number().and_then(|code| u16::try_from(code).ok()).map(Self::Fail),
            "ASK" => Some(Self::Ask),
            "MANY" => Some(Self::Many),
            "SEVERAL" => Some(Self::Several),
            "PLAN" => Some(Self::Plan),
            "DROP" => Some(Self::Drop),
            "QUOTE" => Some(Self::Quote),
            _ => None,
        }
    }

    /// For the log.
    pub(super) fn word(&self) -> String {
        let debug = format!("{self:?}");
        debug.split(['(', ' ']).next().unwrap_or_default().to_uppercase()
    }

    pub(super) fn pieces(self) -> Vec<Piece> {
        let say = |text: &str| vec![Piece::Text(text.to_owned())];
        match self {
            Self::Say(text) => say(&text),
            Self::Quote => say(QUOTED),
            Self::Slow(seconds) => slow(seconds),
            Self::Think(seconds) => {
                vec![Piece::Wait(Duration::from_secs(seconds.into())), Piece::Text("thought it over.".into())]
            }
            Self::Drop => vec![Piece::Text("half an ans".into()), Piece::Wait(BEAT), Piece::Cut],
            // An answer with this code has no pieces; the server gives it before it asks for them.
            Self::Fail(code) => say(&format!("failure {code}")),
            call => vec![Piece::Text("I will use a tool.".into()), Piece::Tool(call)],
        }
    }
}

fn slow(seconds: u32) -> Vec<Piece> {
    let beats = Duration::from_secs(seconds.into()).as_millis() / BEAT.as_millis();
    let word = |n| [Piece::Text(format!("word{n} ")), Piece::Wait(BEAT)];
    (0..beats).flat_map(word).chain([Piece::Text(SLOW_END.into())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_reminders_do_not() {
        let text =
            "<system-reminder>\nSAY hello is a word\n</system-reminder>\nRUN touch a b\n<note>RUN nothing</note>";
        assert_eq!(Act::find(text), Some(Act::Run("touch a b".into())));
        assert_eq!(Act::find("  SLOW 12 and more"), Some(Act::Slow(12)));
        assert_eq!(Act::find("SLOWLY 12\nRUN"), None);
        assert_eq!(Act::find("FAIL 529"), Some(Act::Fail(529)));
    }

    #[test]
    fn a_slow_answer_takes_its_time() {
        let pieces = Act::Slow(3).pieces();
        let waits = pieces.iter().map(|piece| if let Piece::Wait(time) = piece { *time } else { Duration::ZERO });
        assert_eq!(waits.sum::<Duration>(), Duration::from_secs(3));
        assert_eq!(pieces.last(), Some(&Piece::Text(SLOW_END.into())));
    }
}
