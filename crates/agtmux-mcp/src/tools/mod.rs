//! The tools. Each has a type for its arguments, a type for its result, and a text of the same facts.

mod agent_facts;
mod bash;
mod get_agent;
mod list_agents;
mod list_tasks;
mod person_commands;
mod read_output;
mod read_terminal;
mod respond;
mod run_task;
mod send;
mod stop_task;
mod task_news;
mod task_output;
mod task_session;
mod terminal;
mod wait_for;
mod wait_task;

use rmcp::model::JsonObject;

use crate::answer::ToolResult;
use crate::registry::ToolSpec;
use crate::tool_call::{ToolCall, arguments};

pub(crate) static ALL: &[ToolSpec] = &[
    list_agents::SPEC,
    get_agent::SPEC,
    read_output::SPEC,
    wait_for::SPEC,
    run_task::SPEC,
    list_tasks::SPEC,
    task_output::SPEC,
    wait_task::SPEC,
    bash::SPEC,
    read_terminal::SPEC,
    send::SPEC,
    respond::SPEC,
    stop_task::SPEC,
];

pub(crate) fn find(name: &str) -> Option<&'static ToolSpec> {
    ALL.iter().find(|spec| spec.name == name)
}

/// Runs the tool with this name, which must be one of [`ALL`]. Adds what happened to the client's tasks.
pub(crate) async fn run(name: &str, call: &ToolCall<'_>, given: JsonObject) -> ToolResult {
    let answer = match name {
        "list_agents" => list_agents::run(call, arguments(given)?).await,
        "get_agent" => get_agent::run(call, arguments(given)?).await,
        "read_output" => read_output::run(call, arguments(given)?).await,
        "wait_for" => wait_for::run(call, arguments(given)?).await,
        "run_task" => run_task::run(call, arguments(given)?).await,
        "list_tasks" => list_tasks::run(call, arguments(given)?).await,
        "task_output" => task_output::run(call, arguments(given)?).await,
        "wait_task" => wait_task::run(call, arguments(given)?).await,
        "bash" => bash::run(call, arguments(given)?).await,
        "read_terminal" => read_terminal::run(call, arguments(given)?).await,
        "send" => send::run(call, arguments(given)?).await,
        "respond" => respond::run(call, arguments(given)?).await,
        _ => stop_task::run(call, arguments(given)?).await,
    };
    task_news::add(call, answer?).await
}

/// Whether a flag is unset, for results that leave such flags out.
fn is_false(value: &bool) -> bool {
    !value
}
