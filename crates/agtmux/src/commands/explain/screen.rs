//! A saved screen, judged with no daemon.

use std::path::Path;

use agtmux_agents::{Judgement, Registry, SavedScreen, judge};
use agtmux_core::dialog::Dialog;
use agtmux_core::sanitize;

use super::ExplainArgs;
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;

const LARGEST_SCREEN: u64 = 16 << 20;

pub(super) fn run(file: &Path, args: &ExplainArgs) -> Result<Exit, CliError> {
    let agent = args.agent.as_deref().unwrap_or_default();
    if !Registry::builtin().agent_types().any(|known| known.as_str() == agent) {
        let known: Vec<_> = Registry::builtin().agent_types().map(ToString::to_string).collect();
        let message =
            Message::new(format!("there is no agent '{agent}'")).hint(format!("use one of {}", known.join(", ")));
        return Err(CliError::new(Exit::Usage, message));
    }
    let fault = |error: std::io::Error| CliError::io(&format!("read '{}'", file.display()), error);
    if std::fs::metadata(file).map_err(fault)?.len() > LARGEST_SCREEN {
        let message = Message::new(format!("'{}' has more than 16 MiB: that is no screen", file.display()));
        return Err(CliError::new(Exit::Usage, message.hint("tmux capture-pane -p -e > FILE")));
    }
    let text = std::fs::read(file).map_err(fault)?;
    let screen = SavedScreen { text: &text, title: args.title.as_deref(), command: args.command.as_deref() };
    let judgement = judge(Registry::builtin(), agent, &screen);
    if args.json {
        let json = serde_json::to_vec(&judgement).map_err(|error| CliError::io("write JSON", error))?;
        output::line(&json)?;
    } else {
        output::lines(&told(&judgement))?;
    }
    Ok(Exit::Ok)
}

fn told(judgement: &Judgement) -> Vec<String> {
    let sure = if judgement.conclusive { "conclusive" } else { "not conclusive" };
    let version = judgement.rule_version.map(|version| format!(" v{version}")).unwrap_or_default();
    let rule = judgement.rule.as_deref().map_or("no rule".into(), |rule| format!("rule {rule}{version}"));
    let mut lines = vec![format!("{} {} · {sure} · {rule}", judgement.agent_type, judgement.state)];
    lines.extend(judgement.evidence.as_ref().map(|evidence| format!("evidence: {evidence}")));
    lines.extend(judgement.dialog.iter().flat_map(asked));
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

fn asked(dialog: &Dialog) -> Vec<String> {
    let mut lines = vec![format!("asks for {}: {}", dialog.kind, dialog.question)];
    lines.extend(dialog.subject.iter().flat_map(|subject| subject.lines()).map(|line| format!("  about {line}")));
    lines.extend(dialog.options.iter().map(|option| format!("  {}. {}", option.n, option.label)));
    lines
}
