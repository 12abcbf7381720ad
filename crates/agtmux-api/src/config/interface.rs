use std::collections::BTreeMap;

use agtmux_core::named_enum;
use serde::{Deserialize, Serialize};

/// Settings of the terminal interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    pub theme: InterfaceTheme,
    /// The colour of each role.
    pub colors: BTreeMap<String, String>,
    /// The keys of each command.
    pub keys: BTreeMap<String, KeyNames>,
    pub commands: Vec<InterfaceCommand>,
}

named_enum!(
    /// Which colours the interface uses.
    InterfaceTheme {
        /// `light` if the terminal reports a light background, otherwise `terminal`.
        Auto => "auto",
        /// The 16 colours as the terminal shows them.
        Terminal => "terminal",
        Dark => "dark",
        Light => "light",
    }
);

/// A program that a key runs for the selected agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceCommand {
    pub key: String,
    pub name: String,
    /// The program and its arguments. No shell interprets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// A script for `/bin/sh`, instead of `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

/// The names of keys. In the file, one key may be written without a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenKeys")]
pub struct KeyNames(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a key such as \"s\" or \"ctrl-g\", or a list of keys")]
enum WrittenKeys {
    One(String),
    Several(Vec<String>),
}

impl From<WrittenKeys> for KeyNames {
    fn from(written: WrittenKeys) -> Self {
        match written {
            WrittenKeys::One(key) => Self(vec![key]),
            WrittenKeys::Several(keys) => Self(keys),
        }
    }
}
