//! The actions that a prompt can request from the mock model.

use std::time::Duration;

/// The text of the answer after a tool result.
pub const CLOSING_TEXT: &str = "All done after the tool result.";

/// The last words of a slow answer.
pub const SLOW_END_TEXT: &str = "end-of-slow.";

/// An answer that quotes texts which agents normally show while they wait, work or fail.
pub const QUOTED_TEXT: &str = "Quoted for you:\n\n\
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

/// The time between two words of a slow answer.
const SLOW_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedAction {
    /// `SAY x`: answer with this text.
    Say(String),
    /// `SLOW n`: stream words for n seconds.
    Slow(u32),
    /// `THINK n`: wait n seconds before sending the answer text.
    Think(u32),
    /// `RUN cmd`: call the shell tool.
    Run(String),
    /// `DO cmd`: like `RUN`, but the tool call asks for no extra permissions. The tool calls of some agents never
    /// ask for extra permissions. For those agents, `DO` and `RUN` are the same.
    Do(String),
    /// `BG cmd`: like `RUN`, but in the background if the agent can run commands there.
    Background(String),
    /// `CALL tool {…}`: call this tool with this input. Only for agents that use chat completions.
    Call(String, String),
    /// `MCP tool {"json"}`: call this tool of the MCP server `agtmux` with these arguments.
    Mcp(String, String),
    /// `ASK`: call the question tool.
    Ask,
    /// `MANY`: like `ASK`, but the user may choose several options if the agent supports that.
    Many,
    /// `SEVERAL`: like `ASK`, with two questions. In the first one, the user may choose several options.
    Several,
    /// `PLAN`: ask to leave plan mode.
    Plan,
    /// `TASK x`: start a subagent with this prompt.
    Task(String),
    /// Call the tool that waits for a subagent. No keyword requests this action. The mock model needs it for agents
    /// that do not wait for their subagents by themselves.
    Await(String),
    /// `FAIL code`: answer with an HTTP error.
    Fail(u16),
    /// `DROP`: send half an answer, then close the connection.
    Drop,
    /// `HANGUP`: reset the connection instead of answering.
    Hangup,
    /// `QUOTE`: answer with [`QUOTED_TEXT`].
    Quote,
}

/// A part of an answer, in a form that does not depend on the wire protocol.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AnswerPart {
    Text(String),
    Wait(Duration),
    Tool(ScriptedAction),
    Cut,
}

impl ScriptedAction {
    /// Finds the action that a prompt requests: the last line that begins with a keyword. All other lines are ignored,
    /// because agents add reminders before and after the typed text.
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
            "CALL" => rest.split_once(' ').map(|(tool, input)| Self::Call(tool.to_owned(), input.to_owned())),
            "MCP" => rest.split_once(' ').map(|(tool, arguments)| Self::Mcp(tool.to_owned(), arguments.to_owned())),
            "ASK" => Some(Self::Ask),
            "MANY" => Some(Self::Many),
            "SEVERAL" => Some(Self::Several),
            "PLAN" => Some(Self::Plan),
            "DROP" => Some(Self::Drop),
            "HANGUP" => Some(Self::Hangup),
            "QUOTE" => Some(Self::Quote),
            _ => None,
        }
    }

    /// The keyword of the action, for the log.
    pub(super) fn keyword(&self) -> String {
        let debug = format!("{self:?}");
        debug.split(['(', ' ']).next().unwrap_or_default().to_uppercase()
    }

    pub(super) fn answer_parts(self) -> Vec<AnswerPart> {
        let say = |text: &str| vec![AnswerPart::Text(text.to_owned())];
        match self {
            Self::Say(text) => say(&text),
            Self::Quote => say(QUOTED_TEXT),
            Self::Slow(seconds) => slow_answer(seconds),
            Self::Think(seconds) => {
                vec![AnswerPart::Wait(Duration::from_secs(seconds.into())), AnswerPart::Text("thought it over.".into())]
            }
            Self::Drop => {
                vec![AnswerPart::Text("half an ans".into()), AnswerPart::Wait(SLOW_INTERVAL), AnswerPart::Cut]
            }
            // Not used: the server sends an error before it asks for the parts of the answer.
            Self::Fail(code) => say(&format!("failure {code}")),
            Self::Hangup => vec![AnswerPart::Cut],
            call => vec![AnswerPart::Text("I will use a tool.".into()), AnswerPart::Tool(call)],
        }
    }
}

fn slow_answer(seconds: u32) -> Vec<AnswerPart> {
    let beats = Duration::from_secs(seconds.into()).as_millis() / SLOW_INTERVAL.as_millis();
    let word = |n| [AnswerPart::Text(format!("word{n} ")), AnswerPart::Wait(SLOW_INTERVAL)];
    (0..beats).flat_map(word).chain([AnswerPart::Text(SLOW_END_TEXT.into())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keyword_counts_and_reminders_are_ignored() {
        let text =
            "<system-reminder>\nSAY hello is a word\n</system-reminder>\nRUN touch a b\n<note>RUN nothing</note>";
        assert_eq!(ScriptedAction::find(text), Some(ScriptedAction::Run("touch a b".into())));
        assert_eq!(ScriptedAction::find("  SLOW 12 and more"), Some(ScriptedAction::Slow(12)));
        assert_eq!(ScriptedAction::find("SLOWLY 12\nRUN"), None);
        let call = ScriptedAction::Call("read".into(), r#"{"lines": 5}"#.into());
        assert_eq!(ScriptedAction::find(r#"CALL read {"lines": 5}"#), Some(call));
        assert_eq!(ScriptedAction::find("FAIL 529"), Some(ScriptedAction::Fail(529)));
    }

    #[test]
    fn a_slow_answer_lasts_the_requested_time() {
        let parts = ScriptedAction::Slow(3).answer_parts();
        let waits = parts.iter().map(|part| if let AnswerPart::Wait(time) = part { *time } else { Duration::ZERO });
        assert_eq!(waits.sum::<Duration>(), Duration::from_secs(3));
        assert_eq!(parts.last(), Some(&AnswerPart::Text(SLOW_END_TEXT.into())));
    }
}
