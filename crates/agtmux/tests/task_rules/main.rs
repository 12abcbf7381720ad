//! Each rule of what is told of tasks, on a real tmux. `docs/tasks.md` names the test of each rule.

#[path = "../support/trial_agtmux.rs"]
mod agtmux;
mod bells;
mod ends;
mod followers;
mod gone;
#[path = "../support/trial_http.rs"]
mod http;
mod output;
mod prompts;
mod runtime;
mod seen;
#[path = "../support/task_stage.rs"]
mod stage;
mod startup;
mod stored;
mod stream;
