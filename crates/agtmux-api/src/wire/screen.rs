//! The live screen of a pane, as rows of styled text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The query parameters of the live screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScreenQuery {
    /// `runtime:ID`, `%12`, an agent's name, or `pane:TARGET/SESSION/@W/%P`.
    pub r#ref: String,
    /// The name of the client, for the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// The changes of a pane's screen since the last update. The first update contains all rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ScreenUpdate {
    pub schema_version: u32,
    /// Whether `rows` contains every row.
    pub full: bool,
    /// The number of columns; null if the host does not report it.
    pub width: Option<u32>,
    /// The number of rows. A client drops rows beyond this number.
    pub height: u32,
    /// The position of the cursor; null if the cursor is hidden or the host does not report it.
    pub cursor: Option<ScreenCursor>,
    /// Whether the program draws the whole screen itself (alternate screen). tmux then keeps no history.
    pub full_screen: bool,
    pub title: Option<String>,
    /// The rows that changed.
    pub rows: Vec<ScreenRowUpdate>,
}

/// A position on the screen. Both numbers begin at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ScreenCursor {
    pub row: u32,
    pub column: u32,
}

/// The new content of one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ScreenRowUpdate {
    /// The number of the row. The first row is 0.
    pub row: u32,
    pub spans: Vec<StyledSpan>,
}

/// Adjacent cells of one style. The text contains no control characters and no escape sequences.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StyledSpan {
    pub text: String,
    /// The colour of the text; null for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fg: Option<SpanColour>,
    /// The colour of the background; null for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bg: Option<SpanColour>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dim: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strike: bool,
}

/// A colour of the palette with 256 colours, or a colour such as `#1a2b3c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(untagged)]
pub enum SpanColour {
    Palette(u8),
    Rgb(String),
}

/// Why a live screen ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ScreenEnd {
    pub schema_version: u32,
    pub message: String,
}
