//! What tests need to try agtmux on real tmux servers without touching anybody else's.
//!
//! A [`World`] is a place of its own: files, environment, tmux servers, daemon. When it is dropped it takes everything
//! down and fails the test if a process is left over.

mod busy;
mod client;
mod environment;
mod host;
mod link;
pub mod model;
pub mod process;
mod run;
mod tmux;
mod wait;
mod world;

pub use busy::BusyCores;
pub use client::AttachedClient;
pub use host::{Host, HostOptions, Hosts, no_hosts_because};
pub use link::Link;
pub use process::Footprint;
pub use run::Running;
pub use tmux::{Pane, TmuxServer};
pub use wait::{Outcome, wait_for, wait_until};
pub use world::World;
