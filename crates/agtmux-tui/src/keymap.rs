//! The one table of keys. The keys, the help and the hints all come from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

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
    Attach,
    Send,
    Output,
    Kill,
    Resume,
    Explain,
    History,
    Filter,
    WaitingOnly,
    Grouping,
    Details,
    Back,
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
    pub const ALL: [Self; 4] = [Self::Move, Self::Answer, Self::Act, Self::Look];

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
pub struct KeyBinding {
    pub command: TuiCommand,
    codes: &'static [KeyCode],
    /// A key with Ctrl.
    control: Option<char>,
    /// The keys as the help shows them.
    pub keys: &'static str,
    /// A word or two for the line of hints.
    pub hint: &'static str,
    pub help: &'static str,
    pub section: KeySection,
}

const fn bind(
    command: TuiCommand,
    codes: &'static [KeyCode],
    keys: &'static str,
    hint: &'static str,
    help: &'static str,
    section: KeySection,
) -> KeyBinding {
    KeyBinding { command, codes, control: None, keys, hint, help, section }
}

use KeyCode::{Char, Down, End, Enter, Esc, Home, PageDown, PageUp, Right, Tab, Up};
use KeySection::{Act, Answer, Look, Move};

pub static KEYS: [KeyBinding; 26] = [
    bind(TuiCommand::SelectNext, &[Char('j'), Down], "j ↓", "down", "select the next agent", Move),
    bind(TuiCommand::SelectPrevious, &[Char('k'), Up], "k ↑", "up", "select the previous agent", Move),
    bind(TuiCommand::NextWaiting, &[Char('n')], "n", "next", "select the next waiting agent", Move),
    bind(TuiCommand::PreviousWaiting, &[Char('N')], "N", "previous", "select the previous waiting agent", Move),
    bind(TuiCommand::SelectFirst, &[Home, Char('<')], "Home", "first", "select the first agent", Move),
    bind(TuiCommand::SelectLast, &[End, Char('>')], "End", "last", "select the last agent", Move),
    bind(TuiCommand::ScrollUp, &[PageUp], "PgUp", "scroll", "scroll the dialog or the preview up", Move),
    bind(TuiCommand::ScrollDown, &[PageDown], "PgDn", "scroll", "scroll the dialog or the preview down", Move),
    bind(
        TuiCommand::Choose,
        &[Char('1'), Char('2'), Char('3'), Char('4'), Char('5'), Char('6'), Char('7'), Char('8'), Char('9')],
        "1-9",
        "option",
        "choose this option; if several may be chosen, mark it, and Enter answers",
        Answer,
    ),
    bind(TuiCommand::Approve, &[Char('a')], "a", "approve", "approve this one request", Answer),
    bind(TuiCommand::Deny, &[Char('d')], "d", "deny", "deny the request, or close the dialog", Answer),
    bind(TuiCommand::FreeText, &[Char('f')], "f", "free text", "answer with free text", Answer),
    bind(TuiCommand::Attach, &[Enter], "Enter", "attach", "go to the agent's pane; detach to come back", Act),
    bind(TuiCommand::Send, &[Char('s')], "s", "send", "write a prompt", Act),
    bind(TuiCommand::Output, &[Char('o')], "o", "output", "read the output, scroll and search", Act),
    bind(TuiCommand::Kill, &[Char('x')], "x", "stop", "interrupt or end the agent; asks first", Act),
    bind(TuiCommand::Resume, &[Char('r')], "r", "resume", "start an ended agent again", Act),
    bind(TuiCommand::Explain, &[Char('e')], "e", "why", "why agtmux shows this state", Act),
    bind(TuiCommand::History, &[Char('h')], "h", "history", "earlier states, and how long each lasted", Act),
    bind(TuiCommand::Filter, &[Char('/')], "/", "filter", "filter by name, place, question, directory and title", Look),
    bind(TuiCommand::WaitingOnly, &[Char('w')], "w", "waiting", "show waiting agents only, or all", Look),
    bind(TuiCommand::Grouping, &[Char('g')], "g", "group", "group by session, directory, state, or not", Look),
    bind(TuiCommand::Details, &[Tab, Right, Char('l')], "Tab", "details", "show the agent on a narrow terminal", Look),
    bind(TuiCommand::Back, &[Esc, KeyCode::Left], "Esc", "back", "go back; remove the filter", Look),
    bind(TuiCommand::Help, &[Char('?')], "?", "keys", "list the keys", Look),
    KeyBinding {
        control: Some('c'),
        ..bind(TuiCommand::Quit, &[Char('q')], "q Ctrl-C", "quit", "quit; the agents go on", Look)
    },
];

/// The command of a key on the main screen.
pub fn command_of(key: KeyEvent) -> Option<TuiCommand> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_pressed = |binding: &&KeyBinding| match key.code {
        Char(c) if control => binding.control == Some(c),
        _ if key.modifiers.contains(KeyModifiers::ALT) => false,
        code => binding.codes.contains(&code),
    };
    KEYS.iter().find(is_pressed).map(|binding| binding.command)
}

/// The help: every key, by section.
pub fn help_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for section in KeySection::ALL {
        lines.push(format!("\u{1b}[1m{}\u{1b}[0m", section.title()));
        let rows = KEYS.iter().filter(|binding| binding.section == section);
        lines.extend(rows.map(|binding| format!("  {:<9} {}", binding.keys, binding.help)));
        lines.push(String::new());
    }
    lines.push("\u{1b}[1mMouse\u{1b}[0m".to_owned());
    lines.push("  click     select an agent".to_owned());
    lines.push("  wheel     scroll what is under the pointer".to_owned());
    lines
}

impl KeyBinding {
    /// The first of the keys.
    pub fn key(&self) -> &'static str {
        self.keys.split(' ').next().unwrap_or(self.keys)
    }
}

/// The row of a command.
pub fn binding(command: TuiCommand) -> Option<&'static KeyBinding> {
    KEYS.iter().find(|binding| binding.command == command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_command() {
        let mut seen: Vec<KeyCode> = Vec::new();
        for code in KEYS.iter().flat_map(|binding| binding.codes) {
            assert!(!seen.contains(code), "{code:?} has two commands");
            seen.push(*code);
        }
        for binding in &KEYS {
            assert_eq!(command_of(KeyEvent::from(binding.codes[0])), Some(binding.command));
        }
        let quit = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
        assert_eq!(command_of(quit), Some(TuiCommand::Quit));
        assert_eq!(command_of(KeyEvent::new(Char('a'), KeyModifiers::CONTROL)), None);
    }
}
