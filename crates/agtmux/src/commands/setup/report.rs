//! The output of setup: a diff of each file, or JSON.

use std::path::Path;

use agtmux_api::SCHEMA_VERSION;
use agtmux_core::sanitize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::agents::SetupAgent;
use super::plan::{AgentPlans, FileChange, FileOutcome, FilePlan};

const CONTEXT: usize = 3;

pub(super) fn diff(path: &Path, change: &FileChange) -> String {
    let name = |exists: bool| if exists { path.display().to_string() } else { "/dev/null".to_owned() };
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&name(change.before.is_some()), &name(change.after.is_some()))
        .to_string()
}

/// The level of detail with which the text output shows a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeDetail {
    /// One line per file.
    Summary,
    /// The diff of each file.
    Diff,
}

/// Text output: one heading per agent, then its files.
pub(super) fn lines(agent: &SetupAgent, files: &[FilePlan], nothing: &str, detail: ChangeDetail) -> Vec<String> {
    let mut lines = vec![agent.setup.title.clone()];
    for file in files {
        let path = sanitize::for_terminal(&file.path.display().to_string());
        match &file.outcome {
            FileOutcome::Nothing => lines.push(format!("  {path}: {nothing}")),
            FileOutcome::Refused(why) => lines.push(format!("  {path}: refused: {}", sanitize::for_terminal(why))),
            FileOutcome::Change(change) if detail == ChangeDetail::Summary => {
                lines.push(format!("  {path}: {}", summary(change)));
            }
            FileOutcome::Change(change) => {
                let shown = |line: &str| sanitize::keeping_tabs(line.trim_end_matches('\r'));
                lines.extend(diff(&file.path, change).lines().map(shown));
            }
        }
    }
    lines
}

/// What a change does, in a few words.
fn summary(change: &FileChange) -> String {
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    let (mut added, mut removed) = (0, 0);
    for line in TextDiff::from_lines(before, after).iter_all_changes() {
        match line.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    match (&change.before, &change.after) {
        (None, _) => format!("create, {added} lines"),
        (_, None) => "remove".to_owned(),
        _ => format!("add {added} lines, remove {removed}"),
    }
}

pub(super) fn document(reports: &AgentPlans, missing: &[&str]) -> Value {
    let file = |FilePlan { path, outcome, result }: &FilePlan| {
        let (action, diff, refusal) = match outcome {
            FileOutcome::Nothing => ("none", None, None),
            FileOutcome::Refused(why) => ("refused", None, Some(why.clone())),
            FileOutcome::Change(change) => {
                let action = match (&change.before, &change.after) {
                    (None, _) => "create",
                    (_, None) => "remove",
                    _ => "change",
                };
                (action, Some(diff(path, change)), None)
            }
        };
        json!({
            "path": path, "action": action, "diff": diff, "applied": result.applied, "backup": result.backup,
            "error": result.error.clone().or(refusal),
        })
    };
    let agent = |(agent, files): &(&SetupAgent, Vec<FilePlan>)| {
        let files: Vec<Value> = files.iter().map(file).collect();
        json!({"agent": agent.name, "files": files, "next": agent.setup.next})
    };
    json!({
        "schema_version": SCHEMA_VERSION,
        "agents": reports.iter().map(agent).collect::<Vec<_>>(),
        "not_found": missing,
    })
}
