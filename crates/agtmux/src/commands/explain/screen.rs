//! `agtmux explain --screen`: explains which state a saved screen shows, without the daemon.

use std::path::Path;
use std::sync::Arc;

use agtmux_agents::{Judgement, KnownAgent, ManifestFault, SavedScreen, check_manifest, judge};
use agtmux_core::dialog::Dialog;

use super::ExplainArgs;
use crate::commands::adapters::check;
use crate::error::{CliError, CliResult};
use crate::{agent_registry, output};

const MAX_SCREEN_BYTES: u64 = 16 << 20;

pub(super) fn run(file: &Path, args: &ExplainArgs) -> CliResult {
    let agent = match &args.manifest {
        Some(manifest) => by_manifest(manifest, args.agent.as_deref())?,
        None => by_name(args.agent.as_deref().unwrap_or_default())?,
    };
    let fault = |error: std::io::Error| CliError::io(&format!("read '{}'", file.display()), error);
    if std::fs::metadata(file).map_err(fault)?.len() > MAX_SCREEN_BYTES {
        return Err(CliError::usage(format!(
            "the file '{}' is too large: a saved screen has at most 16 MiB",
            file.display()
        ))
        .hint("tmux capture-pane -p -e -t %12 > FILE"));
    }
    let text = std::fs::read(file).map_err(fault)?;
    let screen = SavedScreen { text: &text, title: args.title.as_deref(), command: args.command.as_deref() };
    let judgement = judge(&agent, &screen);
    if args.json { output::json(&judgement) } else { output::lines(judgement_lines(&judgement)) }
}

/// The agent with this name. If the user has an invalid manifest for this agent, fails and does not use the built-in
/// manifest instead.
fn by_name(agent: &str) -> CliResult<Arc<KnownAgent>> {
    let registry = agent_registry::load()?;
    let own_file = |fault: &&ManifestFault| Path::new(&fault.error.file).file_stem().is_some_and(|stem| stem == agent);
    if let Some(fault) = registry.faults().iter().find(own_file) {
        return Err(check::manifest_error(&fault.error));
    }
    registry.agent(agent).cloned().ok_or_else(|| {
        let error = CliError::usage(format!("unknown agent '{agent}'"));
        let error = registry.faults().iter().fold(error, |error, fault| error.because(fault.error.to_string()));
        error.hint(format!("use one of {}", registry.names().join(", ")))
    })
}

fn by_manifest(manifest: &Path, agent: Option<&str>) -> CliResult<Arc<KnownAgent>> {
    let text = check::read(manifest).map_err(|error| check::manifest_error(&error))?;
    let path = agent_registry::display_path(manifest);
    let known = check_manifest(&path, &text).map_err(|error| check::manifest_error(&error))?;
    let name = known.name();
    if agent.is_some_and(|agent| agent != name.as_str()) {
        return Err(CliError::usage(format!(
            "'{path}' describes the agent '{name}', not '{}'",
            agent.unwrap_or_default()
        ))
        .hint(format!("use --agent {name}, or omit --agent")));
    }
    Ok(Arc::new(known))
}

fn judgement_lines(judgement: &Judgement) -> Vec<String> {
    let sure = if judgement.conclusive { "conclusive" } else { "not conclusive" };
    let version = judgement.rule_version.map(|version| format!(" v{version}")).unwrap_or_default();
    let rule = judgement.rule.as_deref().map_or("no rule".into(), |rule| format!("rule {rule}{version}"));
    let mut lines = vec![format!("{} {} · {sure} · {rule}", judgement.agent_type, judgement.state)];
    lines.extend(judgement.evidence.as_ref().map(|evidence| format!("evidence: {evidence}")));
    lines.extend(judgement.dialog.iter().flat_map(dialog_lines));
    lines
}

fn dialog_lines(dialog: &Dialog) -> Vec<String> {
    let mut lines = vec![format!("asks for {}: {}", dialog.kind, dialog.question)];
    lines.extend(dialog.subject.iter().flat_map(|subject| subject.lines()).map(|line| format!("  about {line}")));
    lines.extend(dialog.options.iter().map(|option| format!("  {}. {}", option.n, option.label)));
    lines
}
