//! Keys by their tmux names.

use std::fmt;
use std::str::FromStr;

/// One key. Parsing accepts only valid keys, so tmux cannot read a key as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TmuxKey {
    /// A key that tmux knows by name: `Enter`, `C-c`, `F5`.
    Named(String),
    /// One character. tmux gets the character as hexadecimal bytes.
    Character(char),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a key; use one character or a name such as Enter, Escape, Tab, Up, Down, F5, C-c or M-Enter")]
pub struct InvalidKey(String);

const KEY_NAMES: [&str; 23] = [
    "Enter", "Escape", "Tab", "BTab", "Space", "BSpace", "Up", "Down", "Left", "Right", "Home", "End", "PageUp",
    "PageDown", "PPage", "NPage", "DC", "IC", "Delete", "Insert", "PgUp", "PgDn", "Return",
];

impl TmuxKey {
    pub fn enter() -> Self {
        Self::Named("Enter".into())
    }

    pub fn escape() -> Self {
        Self::Named("Escape".into())
    }

    pub fn home() -> Self {
        Self::Named("Home".into())
    }

    pub(super) fn flags(&self) -> &'static str {
        if matches!(self, Self::Named(_)) { "" } else { "-H" }
    }

    pub(super) fn argument(&self) -> String {
        match self {
            Self::Named(name) => name.clone(),
            Self::Character(c) => hexadecimal(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

impl FromStr for TmuxKey {
    type Err = InvalidKey;

    fn from_str(s: &str) -> Result<Self, InvalidKey> {
        let mut chars = s.chars();
        if let (Some(c), None) = (chars.next(), chars.next()) {
            return if c.is_control() {
                Err(InvalidKey(s.escape_default().to_string()))
            } else {
                Ok(Self::Character(c))
            };
        }
        let mut base = s;
        while let Some(rest) = ["C-", "M-", "S-"].iter().find_map(|prefix| base.strip_prefix(prefix)) {
            base = rest;
        }
        let function = base.strip_prefix('F').and_then(|n| n.parse::<u8>().ok()).is_some_and(|n| (1..=12).contains(&n));
        let named = match base {
            // tmux has no key named `Return`, but users write it.
            "Return" => Some(s.replace("Return", "Enter")),
            "Delete" => Some(s.replace("Delete", "DC")),
            "Insert" => Some(s.replace("Insert", "IC")),
            _ if KEY_NAMES.contains(&base) || function => Some(s.to_owned()),
            // A modifier with one character, such as `C-c`.
            _ if base.len() == 1 && base.bytes().all(|b| b.is_ascii_alphanumeric()) => Some(s.to_owned()),
            _ => None,
        };
        named.map(Self::Named).ok_or_else(|| InvalidKey(s.escape_default().to_string()))
    }
}

impl fmt::Display for TmuxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Character(c) => write!(f, "{c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn key_names_and_single_characters_parse() {
        for good in ["Enter", "C-c", "M-Enter", "C-M-x", "S-Tab", "F12", "PageUp"] {
            assert_eq!(good.parse(), Ok(TmuxKey::Named(good.into())), "{good}");
        }
        assert_eq!("Delete".parse(), Ok(TmuxKey::Named("DC".into())));
        for character in ['1', 'y', ';', '\'', '"', '\\', '#', 'é', '-', '%'] {
            assert_eq!(character.to_string().parse(), Ok(TmuxKey::Character(character)));
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        for bad in ["", "enter", "F13", "F0", "Entered", "C-", "kill-server", "a;b", "C-;", "\n", "\u{1b}", "-X", "C-é"]
        {
            assert!(bad.parse::<TmuxKey>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        /// The key becomes part of a command that tmux parses, so it must not contain any special characters.
        #[test]
        fn a_key_is_always_one_plain_word(text in prop_oneof![any::<String>(), "(C-|M-|S-){0,3}[ -~]{0,8}"]) {
            if let Ok(key) = text.parse::<TmuxKey>() {
                let word = key.argument();
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || (b == b' ' && key.flags() == "-H");
                prop_assert!(!word.is_empty() && !word.starts_with('-') && word.bytes().all(plain), "{:?}", word);
            }
        }
    }

    #[test]
    fn a_character_is_sent_as_hexadecimal_bytes() {
        assert_eq!(TmuxKey::Character('é').argument().trim(), "c3 a9");
    }
}
