//! Other hosts, each with a real sshd, a home and tmux servers of its own.

#[path = "../support/trial_agtmux.rs"]
mod agtmux;
mod attach;
mod hostile;
#[path = "../support/trial_http.rs"]
mod http;
#[path = "../support/targets_hub.rs"]
mod hub;
mod injection;
mod network_cuts;
mod outages;
mod remote_agents;
#[path = "../support/trial_terminal.rs"]
mod terminal;
