use agtmux_core::evidence::Source;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All adapters: built-in ones and the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AdapterList {
    pub schema_version: u32,
    pub items: Vec<AdapterItem>,
    /// The user's manifest files that could not be loaded.
    pub broken: Vec<BrokenManifest>,
}

/// An adapter for one agent type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AdapterItem {
    pub name: String,
    /// The manifest format version.
    pub contract: u32,
    /// The version of the adapter's rules.
    pub version: u32,
    pub enabled: bool,
    pub capabilities: AdapterCapabilities,
    /// The sources of evidence that the adapter uses.
    #[schemars(with = "Vec<String>")]
    #[schema(value_type = Vec<String>)]
    pub sources: Vec<Source>,
    /// Whether the rules were tested with the real agent. If not, they come from the agent's documentation only.
    pub measured: bool,
    pub origin: AdapterOrigin,
    /// The manifest file of a user's adapter.
    pub file: Option<String>,
    /// Whether the file replaces a built-in adapter.
    pub replaces_built_in: bool,
    /// The error in the manifest file as it is now, with the line number. The previous version of the file stays in
    /// use.
    pub error: Option<String>,
    /// One warning for each key in the manifest file that has no effect.
    pub warnings: Vec<String>,
    pub health: AdapterHealth,
    /// The number of running agents of this type.
    pub agents: u32,
    /// The number of running agents of this type whose state the adapter does not know. Suspended and unreachable
    /// agents do not count.
    pub unknown: u32,
    /// When a running agent of this type last produced evidence.
    pub last_heard: Option<Timestamp>,
}

/// The origin of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdapterOrigin {
    BuiltIn,
    File,
}

/// A manifest file that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BrokenManifest {
    pub file: String,
    /// The error, with its line number if known.
    pub error: String,
}

/// The capabilities of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AdapterCapabilities {
    /// Whether the agent reports its own events.
    pub event_driven: bool,
    /// Whether agtmux must also read the agent's screen to recognise its states.
    pub polling_required: bool,
    pub supports_waiting_approval: bool,
    pub supports_waiting_input: bool,
    pub supports_completed: bool,
}

/// The health of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdapterHealth {
    /// The adapter knows the state of every running agent of its type.
    Ok,
    /// The adapter does not know the state of some running agents of its type.
    Degraded,
    /// No agent of the adapter's type is running.
    Unused,
    Disabled,
}

/// A request to switch an adapter on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdapterSwitch {
    pub name: String,
    pub enabled: bool,
}
