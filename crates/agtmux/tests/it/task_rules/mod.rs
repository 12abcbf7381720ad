//! The rules of task events, tested on a real tmux. `docs/dev/tasks.md` names the test of each rule.

mod bells;
mod disappearances;
mod exits;
mod followers;
mod listing;
mod locked_store;
mod output;
mod prompts;
mod runtime;
mod startup;
mod stream;
