//! How a front end talks to the daemon. The commands of `agtmux` use this crate, and so can any other program.
//!
//! [`DaemonClient`] sends requests and starts the daemon if it is not running. The field `api` of this client is an
//! [`ApiClient`], which never starts the daemon. Every failure is a [`ClientError`].
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
//! [`DaemonClient::watch`] follows the event stream and continues it when the daemon restarts. A [`FleetReplica`]
//! builds a local copy of the fleet from the stream. A program can then list panes without sending a request:
//!
//! ```no_run
//! # async fn example(daemon: agtmux_client::DaemonClient) -> Result<(), agtmux_client::ClientError> {
//! use agtmux_api::fleet_items::ItemFilter;
//! use agtmux_api::wire::{ListQuery, ListScope};
//! use agtmux_client::{ClientError, FleetReplica};
//!
//! let mut signals = daemon.watch(ListQuery { scope: Some(ListScope::All), ..ListQuery::default() });
//! let waiting = ListQuery { needs_action: true, ..ListQuery::default() };
//! let waiting = ItemFilter::new(&waiting, ListScope::Panes).map_err(ClientError::Refused)?;
//! let mut fleet = FleetReplica::default();
//! loop {
//!     if fleet.receive(signals.next().await?) {
//!         for pane in fleet.items().panes_by_attention(&waiting) {
//!             println!("{}", pane.identity.pane_id);
//!         }
//!     }
//! }
//! # }
//! ```

mod api_client;
mod daemon_client;
mod error;
mod events;
mod follow;
mod lines;
mod replica;
mod start;
mod waited_agents;

pub use api_client::{ApiClient, other_daemon_version};
pub use daemon_client::{DaemonClient, parse};
pub use error::ClientError;
pub use events::{EventStream, ServerEvent};
pub use follow::{Follower, StreamSignal};
pub use lines::LineStream;
pub use replica::FleetReplica;
pub use start::{ALREADY_RUNNING, READY};
pub use waited_agents::{WaitGoals, WaitOutcome, WaitedAgent, WaitedAgents};
