//! Tasks while something goes wrong: a daemon that is killed, a store that fails, programs that hang, files that are not what they
//! should be, sessions of others. And the contract of the helper, with whatever a folder or a command can be called.

mod agent;
#[path = "../support/trial_agtmux.rs"]
mod agtmux;
mod contract;
mod fault;
mod files;
mod keepers;
mod killed;
mod on_event;
#[path = "../support/task_stage.rs"]
mod stage;
mod store;
mod unseen;
mod waits;
