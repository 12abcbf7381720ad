//! Configuration files in YAML.

use serde_json::Value;

/// Parses a YAML configuration into the same form as a TOML configuration.
pub(super) fn parse_table(text: &str) -> Result<toml::Table, String> {
    let mut read: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    drop_nulls(&mut read);
    match read {
        // The file is empty or contains only comments.
        Value::Null => Ok(toml::Table::new()),
        Value::Object(_) => toml::Table::try_from(read).map_err(|error| error.to_string()),
        _ => Err("the configuration must be a map of tables, such as `tmux:` followed by `  hooks: true`".to_owned()),
    }
}

/// Removes tables and keys without a value, so that their defaults apply.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Config, ConfigError, DEFAULTS};

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("/c.yaml"))
    }

    #[test]
    fn every_setting_reads_the_same_from_toml_and_yaml() {
        let table: toml::Table = toml::from_str(DEFAULTS).expect("the defaults");
        let mut text = String::new();
        for (name, values) in &table {
            text.push_str(&format!("{name}:\n"));
            for (key, value) in values.as_table().expect("a table of tables") {
                text.push_str(&format!("  {key}: {}\n", serde_json::to_string(value).expect("JSON is YAML")));
            }
        }
        assert_eq!(parse(&text).expect("valid"), Config::default());
        let changed = parse(&text.replace("max_enter_retries: 3", "max_enter_retries: 5")).expect("valid");
        assert_eq!(changed.tmux_bridge.max_enter_retries, 5);
    }

    #[test]
    fn empty_files_and_tables_give_the_defaults() {
        for text in ["", "# nothing\n", "tmux:\n", "tmux:\n  hooks:\n", "{}"] {
            assert_eq!(parse(text).expect(text), Config::default(), "{text:?}");
        }
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, word) in [
            ("tmux:\n\n  programm: x\n", "line 3", "programm"),
            ("tmux:\n  command_timeout: soon\n", "line 2", "1500ms"),
            ("\nnonsense:\n  x: 1\n", "line 2", "nonsense"),
            ("daemon:\n  log_level: loud\n", "line 2", "loud"),
            ("tmux:\n  hooks: true\n  hooks: false\n", "line 3", "hooks"),
            ("tmux:\n  hooks: [\n", "line", ""),
            ("- a\n", "", "map of tables"),
        ] {
            let message = parse(text).expect_err("an error").to_string();
            assert!(message.contains(line) && message.contains(word), "{text:?} gave {message}");
        }
    }

    #[test]
    fn a_yaml_alias_bomb_is_rejected() {
        let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
        for (this, last) in ('b'..='z').zip('a'..='y') {
            text.push_str(&format!(
                "{this}: &{this} [*{last},*{last},*{last},*{last},*{last},*{last},*{last},*{last}]\n"
            ));
        }
        assert!(parse(&text).is_err());
    }
}
