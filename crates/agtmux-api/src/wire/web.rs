use jiff::Timestamp;
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

/// A request to open the web port and to create a login link.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebOpenRequest {
    /// Whether the link gives read-only access.
    pub read_only: bool,
    /// After how many seconds the port closes and the login ends. Null: the port stays open until the daemon stops. A
    /// port that the configuration opens stays open in any case.
    pub for_seconds: Option<u64>,
}

/// A one-time login link for one browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WebLink {
    pub schema_version: u32,
    /// The login link. Its fragment contains a one-time code. A browser does not send the fragment when it requests the
    /// page. With `web.public_url`, the link begins with this address.
    pub url: String,
    /// Whether the link begins with `web.public_url`, so that other devices may reach it.
    #[serde(default)]
    pub public: bool,
    /// When the port closes. Null if the port stays open until the daemon stops.
    #[serde(default)]
    pub closes_at: Option<Timestamp>,
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
    /// The bearer token for further requests. It is valid for 7 days, or until the port closes.
    pub token: String,
    /// Whether the token gives read-only access.
    pub read_only: bool,
}

/// The browsers that are logged in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WebLoginList {
    pub schema_version: u32,
    /// Whether the web port is open.
    pub open: bool,
    /// The address of the port; null if the port is closed.
    pub address: Option<String>,
    /// When the port closes. Null if the port stays open until the daemon stops.
    pub closes_at: Option<Timestamp>,
    /// The logins, the latest first.
    pub items: Vec<WebLoginItem>,
}

/// One browser that is logged in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WebLoginItem {
    /// Names the login in `agtmux web revoke`. It gives no access.
    pub id: String,
    pub read_only: bool,
    /// What the browser calls itself.
    pub browser: String,
    pub created_at: Timestamp,
    /// When the browser sent its last request.
    pub last_seen_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A request to end the login of one browser.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebRevokeRequest {
    /// The id of the login.
    pub id: String,
}
