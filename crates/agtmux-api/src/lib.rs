//! The contract between the daemon and everyone who talks to it.

pub mod client;
pub mod collect;
pub mod config;
pub mod error;
pub mod files;
pub mod paths;
pub mod task_files;
pub mod wire;

/// Changes when an old client would misread a new daemon, or the other way round.
pub const API_VERSION: u32 = 1;

/// The `schema_version` of every JSON document that we print or serve.
pub const SCHEMA_VERSION: u32 = 1;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Response header: the API version the daemon speaks.
pub const API_HEADER: &str = "agtmux-api";
/// Response header: the daemon's own version.
pub const VERSION_HEADER: &str = "agtmux-version";
/// Request header that says over TCP that a change is meant: no form of a page elsewhere can send it.
pub const WEB_HEADER: &str = "x-agtmux";
/// Request header: the caller's `$TMUX`, so that its server is watched from then on.
pub const TMUX_HEADER: &str = "agtmux-tmux";
/// Request header: the caller's `$TMUX_TMPDIR`, whose sockets are watched from then on.
pub const TMUX_TMPDIR_HEADER: &str = "agtmux-tmux-tmpdir";
