//! Other hosts, each with a real sshd, a home and tmux servers of its own.

#[path = "../support/trial_agtmux.rs"]
mod agtmux;
mod going;
mod hostile;
#[path = "../support/trial_http.rs"]
mod http;
#[path = "../support/targets_hub.rs"]
mod hub;
mod injection;
mod links;
mod outages;
mod seen;
#[path = "../support/trial_terminal.rs"]
mod terminal;
