//! The rules of task events, tested on a real tmux. `docs/dev/tasks.md` names the test of each rule.

#[path = "../support/agtmux_binary.rs"]
mod agtmux;
mod bells;
mod disappearances;
mod exits;
mod followers;
#[path = "../support/http.rs"]
mod http;
mod listing;
mod locked_store;
mod output;
mod prompts;
mod runtime;
mod startup;
mod stream;
#[path = "../support/task_fixture.rs"]
mod task_fixture;
