//! The integration tests on real tmux servers and hosts.

mod answers;
mod host;
mod host_ssh;
mod typing;
