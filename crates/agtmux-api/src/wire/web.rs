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
    /// The login link. Its fragment contains a one-time code. A browser does not send the fragment when it requests the
    /// page.
    pub url: String,
}

/// A request to exchange the code of a login link for a token.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebLogin {
    /// The code after `#code=` in the link.
    pub code: String,
}

/// The token of a browser that is logged in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WebSession {
    pub schema_version: u32,
    /// The bearer token for further requests. It is valid for 7 days, or until the daemon stops.
    pub token: String,
    /// Whether the token gives read-only access.
    pub read_only: bool,
}
