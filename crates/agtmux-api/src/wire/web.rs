use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebLinkRequest {
    /// For one who may look and not touch.
    pub read_only: bool,
}

/// A link that lets one browser in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WebLink {
    pub schema_version: u32,
    pub url: String,
}
