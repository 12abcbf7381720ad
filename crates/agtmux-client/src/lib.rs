//! How a front end talks to the daemon. The commands of `agtmux` use this crate, and so can any other program.
//!
//! [`DaemonClient`] sends requests and starts the daemon if it is not running. [`ApiClient`], its field `api`, never
//! starts it. Every failure is a [`ClientError`].
//!
//! ```no_run
//! # async fn example() -> Result<(), agtmux_client::ClientError> {
//! use agtmux_api::wire::{ListQuery, ListResponse, PaneItem};
//! use agtmux_client::DaemonClient;
//!
//! let daemon = DaemonClient::from_env()?;
//! let waiting = ListQuery { needs_action: true, ..ListQuery::default() };
//! let list: ListResponse<PaneItem> = daemon.get("/v1/panes", &waiting).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`DaemonClient::watch`] follows the event stream and continues it when the daemon restarts.

mod api_client;
mod daemon_client;
mod error;
mod events;
mod follow;
mod lines;
mod start;

pub use api_client::ApiClient;
pub use daemon_client::{DaemonClient, parse};
pub use error::ClientError;
pub use events::{EventStream, ServerEvent};
pub use follow::{Follower, StreamSignal};
pub use lines::LineStream;
pub use start::{ALREADY_RUNNING, READY};
