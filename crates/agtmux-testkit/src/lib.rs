//! Test support: runs agtmux on private, real tmux servers.
//!
//! A [`TestWorld`] is an isolated environment: files, variables, tmux servers and a daemon. Dropping it stops
//! everything and fails the test if a process is left over.

#![expect(clippy::new_without_default, reason = "creating these values starts processes or reads the clock")]

pub mod action_fixture;
pub mod agtmux;
pub mod bridge;
mod busy_cores;
mod child;
mod client;
pub mod dialog_agent;
mod environment;
pub mod fake_agent;
pub mod hook_load;
mod host;
pub mod hostile_texts;
pub mod http;
pub mod hub_fixture;
pub mod model;
mod network_link;
pub mod notification_service;
pub mod ntfy_server;
pub mod process;
pub mod real_agents;
pub mod seeded_random;
mod skip;
pub mod stream_readers;
pub mod task_commands;
pub mod task_fixture;
pub mod terminal;
mod tmux;
mod typescript;
mod wait;
pub mod web;
mod world;

pub use busy_cores::BusyCores;
pub use child::ChildGuard;
pub use client::AttachedClient;
pub use host::{TestHost, TestHostOptions, TestHosts, hosts_unavailable_reason};
pub use network_link::NetworkLink;
pub use process::Footprint;
pub use skip::{skip, skip_outside_soak, skip_without_hosts};
pub use tmux::{TestPane, TestTmuxServer};
pub use typescript::runnable_typescript;
pub use wait::{WaitResult, wait_for, wait_for_next_second, wait_until};
pub use world::TestWorld;
