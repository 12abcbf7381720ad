use agtmux_core::evidence::Source;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The agents that can be understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AdapterList {
    pub schema_version: u32,
    pub items: Vec<AdapterItem>,
    /// Files of the user's that describe no agent because something is wrong with them.
    pub broken: Vec<BrokenManifest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AdapterItem {
    pub name: String,
    /// The version of the contract that it was written for.
    pub contract: u32,
    /// The version of its rules.
    pub version: u32,
    pub enabled: bool,
    pub capabilities: AdapterCapabilities,
    /// Where its evidence comes from.
    #[schemars(with = "Vec<String>")]
    #[schema(value_type = Vec<String>)]
    pub sources: Vec<Source>,
    /// Whether its rules were seen to be right on the agent itself; if not they come from its documentation.
    pub measured: bool,
    pub origin: AdapterOrigin,
    /// The file that it comes from, if it is the user's.
    pub file: Option<String>,
    /// Whether that file is in place of one that is built in.
    pub replaces_built_in: bool,
    /// What is wrong with the file now, with its line; the version before that is in force.
    pub error: Option<String>,
    /// Keys in the file that have no effect.
    pub warnings: Vec<String>,
    pub health: AdapterHealth,
    /// How many agents of this kind live now, and of how many nothing is known.
    pub agents: u32,
    pub unknown: u32,
    /// When one of them last said or showed something.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_heard: Option<Timestamp>,
}

/// Where an adapter comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdapterOrigin {
    BuiltIn,
    File,
}

/// A file in the directory of manifests that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BrokenManifest {
    pub file: String,
    /// With the line, where one is to blame.
    pub error: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AdapterCapabilities {
    /// The agent tells of itself.
    pub event_driven: bool,
    /// Some of what it does is seen on its screen only.
    pub polling_required: bool,
    pub supports_waiting_approval: bool,
    pub supports_waiting_input: bool,
    pub supports_completed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdapterHealth {
    /// Every agent of this kind is understood.
    Ok,
    /// Of some agents of this kind nothing is known.
    Degraded,
    /// No agent of this kind lives.
    Unused,
    Disabled,
}

/// Switches an adapter on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdapterSwitch {
    pub name: String,
    pub enabled: bool,
}
