use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers, as written in the configuration: `j`, `G`, `enter`, `ctrl-g`, `alt-s`, `f5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCombo {
    code: KeyCode,
    control: bool,
    alt: bool,
}

/// The names of keys that are not characters, and how the help shows them.
const NAMED: [(&str, KeyCode, &str); 15] = [
    ("enter", KeyCode::Enter, "Enter"),
    ("esc", KeyCode::Esc, "Esc"),
    ("tab", KeyCode::Tab, "Tab"),
    ("space", KeyCode::Char(' '), "Space"),
    ("backspace", KeyCode::Backspace, "Backspace"),
    ("delete", KeyCode::Delete, "Delete"),
    ("insert", KeyCode::Insert, "Insert"),
    ("home", KeyCode::Home, "Home"),
    ("end", KeyCode::End, "End"),
    ("pgup", KeyCode::PageUp, "PgUp"),
    ("pgdn", KeyCode::PageDown, "PgDn"),
    ("up", KeyCode::Up, "↑"),
    ("down", KeyCode::Down, "↓"),
    ("left", KeyCode::Left, "←"),
    ("right", KeyCode::Right, "→"),
];

impl KeyCombo {
    pub fn of(key: KeyEvent) -> Self {
        let has = |modifier| key.modifiers.contains(modifier);
        Self { code: key.code, control: has(KeyModifiers::CONTROL), alt: has(KeyModifiers::ALT) }
    }

    /// The key as the help shows it. ASCII unless `unicode`.
    pub fn label(self, unicode: bool) -> String {
        let prefix = format!("{}{}", if self.control { "Ctrl-" } else { "" }, if self.alt { "Alt-" } else { "" });
        let named = NAMED.iter().find(|(_, code, _)| *code == self.code);
        let key = match (named, self.code) {
            (Some((name, ..)), KeyCode::Up | KeyCode::Down | KeyCode::Left | KeyCode::Right) if !unicode => {
                (*name).to_owned()
            }
            (Some((_, _, label)), _) => (*label).to_owned(),
            (None, KeyCode::Char(c)) if self.control => c.to_ascii_uppercase().to_string(),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, KeyCode::F(n)) => format!("F{n}"),
            (None, _) => String::new(),
        };
        prefix + &key
    }
}

/// The text is not the name of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey(pub String);

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = NAMED.iter().map(|(name, ..)| *name).collect();
        write!(
            f,
            "'{}' is not a key; write a character, ctrl-x, alt-x, f1 to f12, or one of {}",
            self.0.escape_default(),
            names.join(", ")
        )
    }
}

impl FromStr for KeyCombo {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        let (mut rest, mut control, mut alt) = (text, false, false);
        loop {
            if let Some(after) = rest.strip_prefix("ctrl-") {
                (rest, control) = (after, true);
            } else if let Some(after) = rest.strip_prefix("alt-") {
                (rest, alt) = (after, true);
            } else {
                break;
            }
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() && c != ' ' => KeyCode::Char(c),
            _ => match NAMED.iter().find(|(name, ..)| *name == rest) {
                Some((_, code, _)) => *code,
                None => {
                    let number = rest.strip_prefix('f').and_then(|number| number.parse().ok());
                    KeyCode::F(number.filter(|number| (1..=12).contains(number)).ok_or_else(unknown)?)
                }
            },
        };
        // A terminal sends the same byte for Ctrl with a small and with a large letter.
        let code = match code {
            KeyCode::Char(c) if control => KeyCode::Char(c.to_ascii_lowercase()),
            code => code,
        };
        Ok(Self { code, control, alt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written_and_shown_in_words() {
        for (text, label) in [
            ("j", "j"),
            ("G", "G"),
            ("-", "-"),
            ("ctrl-g", "Ctrl-G"),
            ("ctrl-G", "Ctrl-G"),
            ("alt-s", "Alt-s"),
            ("ctrl-alt-x", "Ctrl-Alt-X"),
            ("enter", "Enter"),
            ("down", "↓"),
            ("f12", "F12"),
        ] {
            assert_eq!(text.parse::<KeyCombo>().map(|key| key.label(true)).as_deref(), Ok(label), "{text}");
        }
        assert_eq!("down".parse::<KeyCombo>().map(|key| key.label(false)).as_deref(), Ok("down"));
        for text in ["", " ", "f0", "f13", "hyper-x", "jj", "\u{1b}"] {
            assert!(text.parse::<KeyCombo>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_key_press_is_the_written_key() {
        let pressed = KeyCombo::of(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL));
        assert_eq!(Ok(pressed), "ctrl-g".parse());
        let shifted = KeyCombo::of(KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT));
        assert_eq!(Ok(shifted), "G".parse());
    }
}
