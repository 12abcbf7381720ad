//! Remote hosts, each with a real sshd, its own home and its own tmux servers.

#[path = "../support/agtmux_binary.rs"]
mod agtmux;
mod attach;
mod hostile;
#[path = "../support/http.rs"]
mod http;
#[path = "../support/hub_fixture.rs"]
mod hub_fixture;
mod injection;
mod network_cuts;
mod outages;
mod remote_agents;
#[path = "../support/terminal.rs"]
mod terminal;
