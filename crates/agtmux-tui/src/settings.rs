//! Reads the keys, the colours and the commands of the configuration.

use agtmux_api::config::{InterfaceCommand, InterfaceConfig, InterfaceTheme};
use ratatui::style::Color;

use crate::keymap::{CustomCommand, KeyMap, KeyMapError};
use crate::model::ColourRoles;

/// The settings of the interface are not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceSettingsError {
    #[error(transparent)]
    Keys(#[from] KeyMapError),
    #[error("interface.colors: there is no role '{0}'; the roles are waiting, error, running, done and key")]
    UnknownRole(String),
    #[error(
        "interface.colors.{role}: '{value}' is not a colour; write a name such as blue, a number up to 255, or #rrggbb"
    )]
    UnknownColour { role: String, value: String },
    #[error("interface.commands: '{name}': {why}")]
    Command { name: String, why: String },
}

/// Which key does what, by the table and the configuration.
pub(crate) fn key_map(config: &InterfaceConfig) -> Result<KeyMap, InterfaceSettingsError> {
    let changed = config.keys.iter().map(|(name, keys)| (name.clone(), keys.0.clone())).collect();
    let custom: Result<Vec<_>, _> = config.commands.iter().map(custom_command).collect();
    Ok(KeyMap::new(&changed, custom?)?)
}

fn custom_command(command: &InterfaceCommand) -> Result<CustomCommand, InterfaceSettingsError> {
    let fail = |why: String| InterfaceSettingsError::Command { name: command.name.clone(), why };
    let key = command.key.parse().map_err(|error: crate::keymap::UnknownKey| fail(error.to_string()))?;
    let (arguments, is_shell) = match (&command.shell, command.run.as_slice()) {
        (None, [_, ..]) => (command.run.clone(), false),
        (Some(script), []) => (vec!["/bin/sh".to_owned(), "-c".to_owned(), script.clone()], true),
        _ => return Err(fail("write either run = [\"program\", \"argument\"] or shell = \"script\"".to_owned())),
    };
    Ok(CustomCommand { key, name: command.name.clone(), arguments, is_shell })
}

/// The colours of the theme, changed by the configuration. `background` is the value of `COLORFGBG`, which some
/// terminals set.
pub(crate) fn colour_roles(
    config: &InterfaceConfig,
    background: Option<&str>,
) -> Result<ColourRoles, InterfaceSettingsError> {
    let mut roles = match config.theme {
        InterfaceTheme::Auto if is_light(background) => ColourRoles::LIGHT,
        InterfaceTheme::Auto | InterfaceTheme::Terminal => ColourRoles::TERMINAL,
        InterfaceTheme::Dark => ColourRoles::DARK,
        InterfaceTheme::Light => ColourRoles::LIGHT,
    };
    for (role, value) in &config.colors {
        let place = match role.as_str() {
            "waiting" => &mut roles.waiting,
            "error" => &mut roles.error,
            "running" => &mut roles.running,
            "done" => &mut roles.done,
            "key" => &mut roles.key,
            _ => return Err(InterfaceSettingsError::UnknownRole(role.clone())),
        };
        *place = value.parse::<Color>().map_err(|_| InterfaceSettingsError::UnknownColour {
            role: role.clone(),
            value: value.escape_default().to_string(),
        })?;
    }
    Ok(roles)
}

/// Whether the last number of `COLORFGBG`, the background, is white or light grey.
fn is_light(background: Option<&str>) -> bool {
    background.and_then(|value| value.rsplit(';').next()).is_some_and(|number| matches!(number, "7" | "15"))
}

#[cfg(test)]
mod tests {
    use agtmux_api::config::Config;

    use super::*;

    fn config(text: &str) -> InterfaceConfig {
        Config::parse(text, std::path::Path::new("config.toml")).expect("valid").interface
    }

    #[test]
    fn the_theme_follows_the_configuration_or_the_terminal() {
        let roles = |text: &str, background| colour_roles(&config(text), background).expect("valid");
        assert_eq!(roles("", None), ColourRoles::TERMINAL);
        assert_eq!(roles("", Some("15;0")), ColourRoles::TERMINAL);
        assert_eq!(roles("", Some("0;15")), ColourRoles::LIGHT);
        assert_eq!(roles("interface.theme = \"dark\"", Some("0;15")), ColourRoles::DARK);
        let changed = roles("[interface.colors]\nwaiting = \"#ff8800\"\nkey = \"12\"", None);
        assert_eq!((changed.waiting, changed.key), (Color::Rgb(255, 136, 0), Color::Indexed(12)));
    }

    #[test]
    fn a_wrong_setting_says_what_to_write() {
        let fail = |text: &str| colour_roles(&config(text), None).expect_err("not valid").to_string();
        assert!(fail("interface.colors.wating = \"red\"").contains("the roles are waiting, error"));
        assert!(fail("interface.colors.error = \"reddish\"").contains("'reddish' is not a colour"));
        let command = "[[interface.commands]]\nkey = \"ctrl-g\"\nname = \"git\"\n";
        let fail = |more: &str| key_map(&config(&format!("{command}{more}"))).expect_err("not valid").to_string();
        assert!(fail("").contains("'git': write either run = "));
        assert!(fail("run = [\"a\"]\nshell = \"b\"").contains("write either"));
    }

    #[test]
    fn a_key_may_be_written_alone_or_in_a_list() {
        let map = key_map(&config("[interface.keys]\nsend = \"S\"\nquit = [\"Q\", \"ctrl-q\"]")).expect("valid");
        assert_eq!(map.labels(crate::keymap::TuiCommand::Send, true), "S");
        assert_eq!(map.labels(crate::keymap::TuiCommand::Quit, true), "Q Ctrl-Q");
    }
}
