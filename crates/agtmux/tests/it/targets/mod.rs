//! Remote hosts, each with a real sshd, its own home and its own tmux servers.

mod attach;
mod hostile;
mod injection;
mod network_cuts;
mod new_agents;
mod noisy_host;
mod outages;
mod remote_agents;
