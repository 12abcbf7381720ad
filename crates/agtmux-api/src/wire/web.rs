use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request for a login link.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebLinkRequest {
    /// Whether the link gives read-only access.
    pub read_only: bool,
}

/// A one-time login link for one browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WebLink {
    pub schema_version: u32,
    pub url: String,
}
