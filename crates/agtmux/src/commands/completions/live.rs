//! Names that a running daemon knows. Without a daemon, or if the daemon does not answer at once, there are none.

use std::collections::BTreeMap;
use std::time::Duration;

use agtmux_api::paths::Paths;
use agtmux_api::wire::{ListQuery, ListResponse, PaneItem, SessionItem, TargetList, TaskList};
use agtmux_client::{ApiClient, parse};
use agtmux_core::ids::TargetName;
use agtmux_core::sanitize;
use clap_complete::engine::CompletionCandidate;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::commands::task;

/// A person waits for the candidates.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(800);
const MAX_HELP_COLUMNS: usize = 80;

pub(super) fn agents() -> Vec<CompletionCandidate> {
    let Some(list) = ask::<ListResponse<PaneItem>>("/v1/panes", &ListQuery::default()) else { return Vec::new() };
    let mut candidates = Vec::new();
    for pane in waiting_first(&list.items) {
        let reference = reference(pane, &list.items);
        candidates.extend(candidate(&reference, &describe(pane)));
        if let Some(name) = &pane.name {
            candidates.extend(candidate(name, &describe(pane)));
        }
    }
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for pane in &list.items {
        *types.entry(pane.agent_type.as_ref().map(ToString::to_string).unwrap_or_default()).or_default() += 1;
    }
    let unique = types.iter().filter(|(_, count)| **count == 1);
    candidates.extend(unique.filter_map(|(name, _)| candidate(name, "the only agent of this type")));
    candidates
}

pub(super) fn sessions() -> Vec<CompletionCandidate> {
    let query = ListQuery { all: true, ..ListQuery::default() };
    let list = ask::<ListResponse<SessionItem>>("/v1/sessions", &query);
    let items = list.map(|list| list.items).unwrap_or_default();
    items.iter().filter_map(|item| candidate(&item.identity.session_name, "")).collect()
}

pub(super) fn targets() -> Vec<CompletionCandidate> {
    let items = ask::<TargetList>("/v1/targets", &()).map(|list| list.items).unwrap_or_default();
    items.iter().filter_map(|item| candidate(&item.status.name, item.status.health.as_str())).collect()
}

pub(super) fn tasks() -> Vec<CompletionCandidate> {
    let Ok(session) = task::unnamed_session() else { return Vec::new() };
    let tasks = ask::<TaskList>("/v1/tasks", &session).map(|list| list.tasks).unwrap_or_default();
    tasks.iter().filter_map(|task| candidate(&task.window_name, &task.window_id.to_string())).collect()
}

/// Sends a request, and never starts the daemon.
fn ask<T: DeserializeOwned>(path: &str, query: &impl Serialize) -> Option<T> {
    let client = ApiClient::new(Paths::from_env().ok()?.socket);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, client.get_bytes(path, query)).await });
    parse(&answer.ok()?.ok()?).ok()
}

fn waiting_first(panes: &[PaneItem]) -> Vec<&PaneItem> {
    let mut sorted: Vec<&PaneItem> = panes.iter().collect();
    sorted.sort_by(|one, other| one.attention_order().cmp(&other.attention_order()));
    sorted
}

/// The pane id, if only one local agent has it. Otherwise the runtime.
fn reference(pane: &PaneItem, all: &[PaneItem]) -> String {
    let runtime = pane.runtime_id.as_deref().unwrap_or_default();
    let is_other = |other: &&PaneItem| {
        other.identity.pane_id == pane.identity.pane_id && other.runtime_id.as_deref() != Some(runtime)
    };
    match pane.identity.target == TargetName::LOCAL && !all.iter().any(|other| is_other(&other)) {
        true => pane.identity.pane_id.to_string(),
        false => format!("runtime:{runtime}"),
    }
}

fn describe(pane: &PaneItem) -> String {
    let kind = pane.agent_type.as_ref().map(ToString::to_string).unwrap_or_default();
    let state = pane.state.map(|state| state.as_str()).unwrap_or_default();
    let question = pane.dialog.as_ref().map(|dialog| format!(": {}", dialog.question)).unwrap_or_default();
    let place = format!("{}:{}", pane.identity.session_name, pane.window_index);
    format!("{kind} {place} {state}{question}")
}

/// A candidate with a description. `None` if a shell could take the value for more than a word.
fn candidate(value: &str, help: &str) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_alphanumeric() || "%@:._-/".contains(c);
    // bash ends a word at a colon, and would insert the value again after it.
    let is_cut = value.contains(':') && std::env::var_os(super::VARIABLE).is_some_and(|shell| shell == "bash");
    if value.is_empty() || value.starts_with('-') || !value.chars().all(is_plain) || is_cut {
        return None;
    }
    let one_line = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = sanitize::for_column(&one_line, MAX_HELP_COLUMNS);
    Some(CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_testkit::hostile_texts::{HOSTILE_TEXTS, assert_terminal_safe};

    #[test]
    fn values_are_single_words_and_descriptions_are_safe() {
        for text in HOSTILE_TEXTS {
            let text = String::from_utf8_lossy(text);
            if let Some(candidate) = candidate(&text, &text) {
                let value = candidate.get_value().to_string_lossy();
                assert!(
                    !value.contains(|c: char| c.is_whitespace() || "$`;'\"\\#*()[]{}<>|&!~".contains(c)),
                    "{value}"
                );
            }
            let described = candidate("work", &text).expect("a plain word");
            if let Some(help) = described.get_help() {
                assert_terminal_safe(help.to_string().as_bytes(), false);
                assert!(!help.to_string().contains('\n'));
            }
        }
    }
}
