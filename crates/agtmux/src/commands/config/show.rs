use std::path::Path;

use agtmux_api::config::{Config, ConfigError, DEFAULTS};
use agtmux_core::sanitize;
use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError};

use crate::error::{CliError, CliResult};
use crate::output;

pub(super) fn run(path: &Path) -> CliResult {
    // Load the configuration first, so that an invalid file is reported.
    Config::load(path)?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }.into()),
    };
    let effective = overlay(&as_toml(text, path)?, path).map_err(|error| CliError::io("merge the settings", error))?;
    output::verbatim(effective.as_bytes())
}

/// Converts the text to TOML if the file is YAML, because the settings are always shown as TOML.
fn as_toml(text: String, path: &Path) -> CliResult<String> {
    if path.extension().is_none_or(|extension| extension != "yaml" && extension != "yml") {
        return Ok(text);
    }
    Ok(Config::parse_table(&text, path)?.to_string())
}

/// The default settings with their comments. Where the user has set another value, shows this value, with the default
/// in a comment.
fn overlay(text: &str, path: &Path) -> Result<String, TomlError> {
    let users: DocumentMut = text.parse()?;
    let mut shown: DocumentMut = DEFAULTS.parse()?;
    let mut changed = false;
    for (name, item) in users.iter() {
        if let (Some(from), Some(into)) = (item.as_table_like(), shown.get_mut(name).and_then(Item::as_table_mut)) {
            changed |= put_values(from, into);
        }
    }
    if changed {
        introduce(&mut shown, path);
    }
    Ok(shown.to_string())
}

/// Copies the user's values that differ from their defaults. Returns whether it copied a value.
fn put_values(from: &dyn TableLike, into: &mut Table) -> bool {
    let mut changed = false;
    for (key, item) in from.iter() {
        // `[[table]]` is shown as an inline list, which means the same. A table of the user, such as `[interface.keys]`,
        // is shown in the notation of the default.
        let (Ok(mut value), Some(default)) =
            (item.clone().into_value(), into.get_mut(key).and_then(Item::as_value_mut))
        else {
            continue;
        };
        let mut plain = default.clone();
        plain.decor_mut().clear();
        value.decor_mut().clear();
        if value.to_string() == plain.to_string() {
            continue;
        }
        *value.decor_mut() = toml_edit::Decor::new(" ", format!("  # default: {plain}"));
        *default = value;
        changed = true;
    }
    changed
}

/// Replaces the first comment, which says that the settings are the defaults, by a comment that names the user's file.
fn introduce(shown: &mut DocumentMut, path: &Path) {
    let path = sanitize::for_terminal(&path.display().to_string());
    if let Some((_, Item::Table(first))) = shown.iter_mut().next() {
        first.decor_mut().set_prefix(format!("# The effective settings: '{path}' over the defaults.\n\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaid(text: &str) -> String {
        overlay(text, Path::new("/c.toml")).expect("valid")
    }

    #[test]
    fn without_changes_the_defaults_are_printed_unchanged() {
        assert_eq!(overlaid(""), DEFAULTS);
        assert_eq!(overlaid("[tmux]\nhooks = true # mine\n"), DEFAULTS);
    }

    #[test]
    fn a_changed_value_is_shown_in_its_place_with_its_default() {
        let text = overlaid("[tmux]\n# mine\ncommand_timeout = '3s' # slow disk\nsockets = [\n '/a',\n]\n");
        assert!(text.starts_with("# The effective settings: '/c.toml' over the defaults.\n\n[daemon]\n"), "{text}");
        assert!(text.contains("not responding.\ncommand_timeout = '3s'  # default: \"1500ms\"\n"), "{text}");
        assert!(text.contains("# Install hooks in the tmux server"), "{text}");
        let shown = Config::parse(&text, Path::new("/shown")).expect("the output is a valid configuration");
        assert_eq!(shown.tmux.command_timeout.0.as_secs(), 3);
        assert_eq!(shown.tmux.sockets.len(), 1);
    }

    #[test]
    fn rules_of_notifications_are_shown_as_a_list() {
        let rules = "[[notify.rules]]\nstates = ['error']\nchannels = ['bell']\n";
        let text = overlaid(&rules.repeat(2));
        let shown = Config::parse(&text, Path::new("/shown")).expect("the output is a valid configuration");
        assert_eq!(shown.notify.rules.len(), 2, "{text}");
        assert!(text.contains("# default: []"), "{text}");
    }

    #[test]
    fn tables_and_lists_of_tables_are_shown() {
        let text =
            overlaid("[interface.keys]\nsend = 'S'\n[[interface.commands]]\nkey = 'x'\nname = 'n'\nrun = ['a']\n");
        let shown = Config::parse(&text, Path::new("/shown")).expect("the output is a valid configuration");
        assert_eq!(shown.interface.keys["send"].0, ["S"], "{text}");
        assert_eq!(shown.interface.commands.len(), 1, "{text}");
    }

    #[test]
    fn inline_tables_are_overlaid() {
        assert!(overlaid("observe = { reconcile_active = '5s' }").contains("reconcile_active = '5s'"));
    }
}
