//! Tasks while something goes wrong: a daemon that is killed, a store that fails, programs that hang, files that are not what they
//! should be, sessions of others. And the contract of the helper, with whatever a folder or a command can be called.

#[path = "../support/trial_agtmux.rs"]
mod agtmux;
mod contract;
mod daemon_killed;
mod faulty_tmux;
mod files;
mod on_event;
mod scripted_agent;
mod session_owners;
#[path = "../support/task_stage.rs"]
mod stage;
mod store_failures;
mod unseen_exits;
mod waits;
