//! Test support: runs agtmux on private, real tmux servers.
//!
//! A [`TestWorld`] is an isolated environment: files, variables, tmux servers and a daemon. Dropping it stops
//! everything and fails the test if a process is left over.

mod busy_cores;
mod child;
mod client;
mod environment;
mod host;
pub mod model;
mod network_link;
pub mod process;
mod tmux;
mod wait;
mod world;

pub use busy_cores::BusyCores;
pub use child::ChildGuard;
pub use client::AttachedClient;
pub use host::{TestHost, TestHostOptions, TestHosts, hosts_unavailable_reason};
pub use network_link::NetworkLink;
pub use process::Footprint;
pub use tmux::{TestPane, TestTmuxServer};
pub use wait::{WaitResult, wait_for, wait_until};
pub use world::TestWorld;
