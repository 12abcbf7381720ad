//! The one table of commands and keys. The keys, the hints, the help and the palette all come from it.

mod combo;
mod map;

pub use combo::{KeyCombo, UnknownKey};
pub use map::{CustomCommand, KeyAction, KeyMap, KeyMapError};

/// What a key does on the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuiCommand {
    SelectNext,
    SelectPrevious,
    SelectFirst,
    SelectLast,
    NextWaiting,
    PreviousWaiting,
    ScrollUp,
    ScrollDown,
    Choose,
    Approve,
    Deny,
    FreeText,
    SelectSame,
    Attach,
    TypeInPane,
    Send,
    Output,
    Kill,
    Resume,
    Explain,
    History,
    Copy,
    Seen,
    Snooze,
    Pin,
    SelectSeveral,
    Filter,
    WaitingOnly,
    Grouping,
    Details,
    Tasks,
    Targets,
    Audit,
    Back,
    Palette,
    Help,
    Quit,
}

/// The part of the help in which a key is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySection {
    Move,
    Answer,
    Act,
    Look,
}

impl KeySection {
    pub fn title(self) -> &'static str {
        match self {
            Self::Move => "Move",
            Self::Answer => "Answer the open dialog",
            Self::Act => "Act on the selected agent",
            Self::Look => "Look",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct CommandEntry {
    pub command: TuiCommand,
    /// The name in the configuration.
    pub name: &'static str,
    /// The keys unless the configuration says otherwise, in the same notation.
    pub keys: &'static str,
    /// A word or two for the line of hints.
    pub hint: &'static str,
    pub help: &'static str,
    pub section: KeySection,
}

const fn entry(
    section: KeySection,
    command: TuiCommand,
    name: &'static str,
    keys: &'static str,
    hint: &'static str,
    help: &'static str,
) -> CommandEntry {
    CommandEntry { command, name, keys, hint, help, section }
}

use KeySection::{Act, Answer, Look, Move};
use TuiCommand as C;

/// All commands, in the order of the help.
pub static COMMANDS: [CommandEntry; 37] = [
    entry(Move, C::SelectNext, "down", "j down", "down", "select the next agent"),
    entry(Move, C::SelectPrevious, "up", "k up", "up", "select the previous agent"),
    entry(Move, C::NextWaiting, "next-waiting", "n", "next", "select the next waiting agent"),
    entry(Move, C::PreviousWaiting, "previous-waiting", "N", "previous", "select the previous waiting agent"),
    entry(Move, C::SelectFirst, "first", "home <", "first", "select the first agent"),
    entry(Move, C::SelectLast, "last", "end >", "last", "select the last agent"),
    entry(Move, C::ScrollUp, "scroll-up", "pgup", "scroll", "scroll the dialog or the screen of the agent up"),
    entry(Move, C::ScrollDown, "scroll-down", "pgdn", "scroll", "scroll the dialog or the screen of the agent down"),
    entry(
        Answer,
        C::Choose,
        "option",
        "1 2 3 4 5 6 7 8 9",
        "option",
        "choose this option; if several may be chosen, mark it, and Enter answers",
    ),
    entry(Answer, C::Approve, "approve", "a", "approve", "approve this one request"),
    entry(Answer, C::Deny, "deny", "d", "deny", "deny the request, or close the dialog"),
    entry(Answer, C::FreeText, "free-text", "f", "free text", "answer with free text"),
    entry(
        Answer,
        C::SelectSame,
        "select-same",
        "+",
        "same",
        "select all agents that ask the same, to answer them together",
    ),
    entry(Act, C::Attach, "attach", "enter", "attach", "go to the agent's pane; detach to come back"),
    entry(Act, C::TypeInPane, "type", "tab", "type", "type into the agent's pane from here; Esc Esc ends it"),
    entry(Act, C::Send, "send", "s", "send", "write a prompt"),
    entry(Act, C::Output, "output", "o", "output", "read the output, scroll and search"),
    entry(Act, C::Kill, "stop", "x", "stop", "interrupt or end the agent; asks first"),
    entry(Act, C::Resume, "resume", "r", "resume", "start an ended agent again"),
    entry(Act, C::Explain, "why", "e", "why", "why agtmux shows this state"),
    entry(Act, C::History, "history", "h", "history", "earlier states, and how long each lasted"),
    entry(Act, C::Copy, "copy", "y", "copy", "copy the command, the screen or the directory"),
    entry(Act, C::Seen, "seen", "v", "seen", "mark the result as seen"),
    entry(Act, C::Snooze, "snooze", "z", "snooze", "put the agent last, for a time or until it changes"),
    entry(Act, C::Pin, "pin", "p", "pin", "keep the agent at the top, or no longer"),
    entry(Act, C::SelectSeveral, "select", "space", "select", "select several agents, to send to or stop all of them"),
    entry(Look, C::Filter, "filter", "/", "filter", "filter by name, place, question, directory, title and screen"),
    entry(Look, C::WaitingOnly, "waiting-only", "w", "waiting", "show waiting agents only, or all"),
    entry(Look, C::Grouping, "group", "g", "group", "group by session, directory, state, or not"),
    entry(Look, C::Details, "details", "l right", "details", "show the agent on a narrow terminal"),
    entry(Look, C::Tasks, "tasks", "t", "tasks", "background tasks and their output"),
    entry(Look, C::Targets, "targets", "T", "targets", "hosts, their health, and connecting again"),
    entry(Look, C::Audit, "audit", "A", "audit", "who did what to which agent"),
    entry(Look, C::Back, "back", "esc left", "back", "go back; remove the filter or the selection"),
    entry(Look, C::Palette, "palette", ":", "commands", "run a command by its name"),
    entry(Look, C::Help, "keys", "?", "keys", "list the keys; type to filter"),
    entry(Look, C::Quit, "quit", "q ctrl-c", "quit", "quit; the agents go on"),
];

/// The row of a command.
pub fn entry_of(command: TuiCommand) -> &'static CommandEntry {
    let found = COMMANDS.iter().find(|entry| entry.command == command);
    found.unwrap_or_else(|| unreachable!("every command has a row"))
}

/// What the mouse does, for the help.
pub const MOUSE: [(&str, &str); 4] = [
    ("click", "select an agent; on a hint in the last row, run it"),
    ("click again", "go to the agent's pane"),
    ("right click", "select several agents"),
    ("wheel", "scroll what is under the pointer"),
];
