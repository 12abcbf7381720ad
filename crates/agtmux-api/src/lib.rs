//! The contract between the daemon and its clients: wire types, errors and settings.

pub mod config;
pub mod error;
pub mod files;
pub mod fleet_items;
pub mod host_protocol;
pub mod mirror_files;
pub mod paths;
mod private_dir;
pub mod schema;
pub mod task_files;
pub mod wire;

/// The API version. It changes when clients and daemons of different releases become incompatible.
pub const API_VERSION: u32 = 2;

/// The `schema_version` of every JSON document that agtmux prints or serves.
pub const SCHEMA_VERSION: u32 = 2;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Response header: the daemon's API version.
pub const API_HEADER: &str = "agtmux-api";
/// Response header: the daemon's own version.
pub const VERSION_HEADER: &str = "agtmux-version";
/// Request header required for changes over TCP. A form on a foreign web page cannot send it.
pub const WEB_HEADER: &str = "x-agtmux";
/// Request header: the caller's `$TMUX`. It names a tmux server, which the daemon watches from then on.
pub const TMUX_HEADER: &str = "agtmux-tmux";
/// Request header: the caller's `$TMUX_TMPDIR`. The daemon watches the sockets below that directory from then on.
pub const TMUX_TMPDIR_HEADER: &str = "agtmux-tmux-tmpdir";
/// Request header: the client's name for the audit log, for requests whose body does not name the client.
pub const CLIENT_HEADER: &str = "agtmux-client";
