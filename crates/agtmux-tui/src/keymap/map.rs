use std::collections::BTreeMap;

use crossterm::event::KeyEvent;

use super::{COMMANDS, KeyCombo, TuiCommand};

/// A program that the person runs with a key. It gets the fields of the selected agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCommand {
    pub key: KeyCombo,
    pub name: String,
    /// The program and its arguments. `{cwd}` and other fields are replaced in each argument.
    pub arguments: Vec<String>,
    /// Whether the program is a shell that runs a script. The script gets the fields only as variables.
    pub is_shell: bool,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAction {
    Command(TuiCommand),
    /// The custom command with this index.
    Custom(usize),
}

/// Which key does what: the table, changed by the configuration.
#[derive(Debug, Clone)]
pub struct KeyMap {
    keys: Vec<(KeyCombo, KeyAction)>,
    custom: Vec<CustomCommand>,
}

/// The configuration of the keys is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    #[error("interface.keys: there is no command '{name}'; the commands are {}", command_names())]
    UnknownCommand { name: String },
    #[error("interface.keys.{name}: {why}")]
    UnknownKey { name: String, why: String },
    #[error("the key '{key}' has two commands, '{one}' and '{other}'; give one of them another key in interface.keys")]
    Conflict { key: String, one: String, other: String },
    #[error("interface.keys.quit: a person could not quit; name at least one key")]
    NoQuit,
}

fn command_names() -> String {
    COMMANDS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

impl Default for KeyMap {
    fn default() -> Self {
        Self::new(&BTreeMap::new(), Vec::new()).unwrap_or_else(|error| unreachable!("the table is valid: {error}"))
    }
}

impl KeyMap {
    /// The keys of the table. `changed` has the keys of the commands that the configuration changes, by name.
    pub fn new(changed: &BTreeMap<String, Vec<String>>, custom: Vec<CustomCommand>) -> Result<Self, KeyMapError> {
        if let Some(name) = changed.keys().find(|name| COMMANDS.iter().all(|entry| entry.name != **name)) {
            return Err(KeyMapError::UnknownCommand { name: name.clone() });
        }
        let mut map = Self { keys: Vec::new(), custom: Vec::new() };
        for entry in &COMMANDS {
            let usual = || entry.keys.split(' ').map(ToOwned::to_owned).collect();
            for key in changed.get(entry.name).cloned().unwrap_or_else(usual) {
                let combo = key.parse().map_err(|error: super::combo::UnknownKey| KeyMapError::UnknownKey {
                    name: entry.name.to_owned(),
                    why: error.to_string(),
                })?;
                map.add(combo, KeyAction::Command(entry.command), &custom)?;
            }
        }
        for (n, command) in custom.iter().enumerate() {
            map.add(command.key, KeyAction::Custom(n), &custom)?;
        }
        map.custom = custom;
        let quits = map.keys.iter().any(|(_, action)| *action == KeyAction::Command(TuiCommand::Quit));
        if quits { Ok(map) } else { Err(KeyMapError::NoQuit) }
    }

    fn add(&mut self, key: KeyCombo, action: KeyAction, custom: &[CustomCommand]) -> Result<(), KeyMapError> {
        let name = |action: KeyAction| match action {
            KeyAction::Command(command) => super::entry_of(command).name.to_owned(),
            KeyAction::Custom(n) => custom.get(n).map(|command| command.name.clone()).unwrap_or_default(),
        };
        if let Some((_, before)) = self.keys.iter().find(|(other, _)| *other == key) {
            return Err(KeyMapError::Conflict { key: key.label(true), one: name(*before), other: name(action) });
        }
        self.keys.push((key, action));
        Ok(())
    }

    pub fn action_of(&self, key: KeyEvent) -> Option<KeyAction> {
        let pressed = KeyCombo::of(key);
        self.keys.iter().find(|(combo, _)| *combo == pressed).map(|(_, action)| *action)
    }

    pub fn command_of(&self, key: KeyEvent) -> Option<TuiCommand> {
        match self.action_of(key)? {
            KeyAction::Command(command) => Some(command),
            KeyAction::Custom(_) => None,
        }
    }

    pub fn custom(&self) -> &[CustomCommand] {
        &self.custom
    }

    /// The first key of a command; empty if the command has none.
    pub fn label(&self, command: TuiCommand, unicode: bool) -> String {
        let keys = self.labels(command, unicode);
        keys.split(' ').next().unwrap_or_default().to_owned()
    }

    /// All keys of a command.
    pub fn labels(&self, command: TuiCommand, unicode: bool) -> String {
        let keys: Vec<String> = self
            .keys
            .iter()
            .filter(|(_, action)| *action == KeyAction::Command(command))
            .map(|(key, _)| key.label(unicode))
            .collect();
        match keys.as_slice() {
            [first, .., last] if command == TuiCommand::Choose => format!("{first}-{last}"),
            keys => keys.join(" "),
        }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn changed(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        pairs
            .iter()
            .map(|(name, keys)| ((*name).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn every_command_has_a_key_of_its_own() {
        let map = KeyMap::default();
        for entry in &COMMANDS {
            assert!(!map.labels(entry.command, true).is_empty(), "{}", entry.name);
        }
        assert_eq!(map.labels(TuiCommand::Choose, true), "1-9");
        assert_eq!(map.labels(TuiCommand::SelectNext, true), "j ↓");
        let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(map.command_of(quit), Some(TuiCommand::Quit));
        assert_eq!(map.command_of(KeyEvent::new(KeyCode::Char('a'), KeyModifiers::CONTROL)), None);
    }

    #[test]
    fn the_configuration_moves_a_command_to_other_keys() {
        let map = KeyMap::new(&changed(&[("send", &["S", "ctrl-s"])]), Vec::new()).expect("valid");
        assert_eq!(map.command_of(KeyEvent::from(KeyCode::Char('s'))), None);
        assert_eq!(map.command_of(KeyEvent::from(KeyCode::Char('S'))), Some(TuiCommand::Send));
        assert_eq!(map.label(TuiCommand::Send, true), "S");
    }

    #[test]
    fn a_wrong_configuration_says_what_to_change() {
        let fail =
            |keys: &[(&str, &[&str])]| KeyMap::new(&changed(keys), Vec::new()).expect_err("not valid").to_string();
        assert!(
            fail(&[("sned", &["S"])]).starts_with("interface.keys: there is no command 'sned'; the commands are down")
        );
        assert!(fail(&[("send", &["hyper"])]).starts_with("interface.keys.send: 'hyper' is not a key"));
        assert!(fail(&[("send", &["a"])]).starts_with("the key 'a' has two commands, 'approve' and 'send'"));
        assert!(fail(&[("quit", &[])]).starts_with("interface.keys.quit"));
    }

    #[test]
    fn a_custom_command_gets_a_free_key_only() {
        let command = |key: &str| CustomCommand {
            key: key.parse().expect("a key"),
            name: "diff".into(),
            arguments: vec!["git".into(), "diff".into()],
            is_shell: false,
        };
        let map = KeyMap::new(&BTreeMap::new(), vec![command("ctrl-d")]).expect("free");
        let pressed = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
        assert_eq!(map.action_of(pressed), Some(KeyAction::Custom(0)));
        assert!(KeyMap::new(&BTreeMap::new(), vec![command("d")]).is_err());
    }
}
