//! The integration tests of the agent manifests.

mod cursor;
mod damaged_screens;
mod dialogs;
mod failed_turns;
mod hostile_processes;
mod identify;
mod misleading_screens;
mod process_tree;
mod quoted_text;
mod screen_cases;
mod screens;
mod truncated_dialogs;
mod typed_text;
mod user_manifests;
mod yielding_rules;

use agtmux_agents::{AgentRegistry, KnownAgent};

fn builtin(name: &str) -> &'static KnownAgent {
    AgentRegistry::builtin().agent(name).expect("the agent is built in")
}
