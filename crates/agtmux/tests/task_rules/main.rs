//! Each rule of what is told of tasks, on a real tmux. `docs/tasks.md` names the test of each rule.

#[path = "../support/trial_agtmux.rs"]
mod agtmux;
mod bells;
mod disappearances;
mod exits;
mod followers;
#[path = "../support/trial_http.rs"]
mod http;
mod listing;
mod locked_store;
mod output;
mod prompts;
mod runtime;
#[path = "../support/task_stage.rs"]
mod stage;
mod startup;
mod stream;
