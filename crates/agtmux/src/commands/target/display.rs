//! Text output for targets.

use agtmux_api::wire::{EvidenceKind, TargetCheckReport, TargetItem, TargetList};
use agtmux_core::sanitize::for_terminal;
use agtmux_core::target::TargetKind;

use crate::message::CliMessage;

pub(super) fn target_lines(item: &TargetItem) -> Vec<String> {
    let by = item.ssh_target.as_ref().map(|host| format!(" (ssh {host})")).unwrap_or_default();
    let evidence = evidence(item);
    vec![for_terminal(&format!(
        "{}{by}: {}, {evidence}, {} panes, {} agents",
        item.name, item.health, item.panes, item.agents
    ))]
}

fn evidence(item: &TargetItem) -> String {
    match (item.evidence, &item.agtmux_version) {
        (EvidenceKind::Native, Some(version)) => format!("native evidence (agtmux {version} is installed)"),
        (EvidenceKind::Native, None) => "native evidence".into(),
        (EvidenceKind::Screen, _) => "screens only (agtmux is not installed)".into(),
        (EvidenceKind::Nothing, _) => "no evidence yet".into(),
    }
}

/// Problems of targets and possible improvements.
pub(super) fn advice(targets: &TargetList) -> Vec<CliMessage> {
    let of = |item: &TargetItem| {
        if let Some(why) = &item.message {
            let message = CliMessage::new(format!("{} is {}", item.name, item.health)).because(why);
            return Some(item.hint.iter().fold(message, CliMessage::hint));
        }
        let screens = item.kind == TargetKind::Ssh && item.evidence == EvidenceKind::Screen;
        screens.then(|| {
            CliMessage::new(format!("{}: agtmux sees only screens and processes", item.name))
                .because("agtmux is not installed there, so events of the agents are missing")
                .hint(format!("agtmux target doctor {}   (shows how to install it)", item.name))
        })
    };
    targets.items.iter().filter_map(of).collect()
}

pub(super) fn checkup_lines(checkup: &TargetCheckReport) -> Vec<String> {
    let mut lines = target_lines(&checkup.target);
    for check in &checkup.checks {
        let mark = if check.ok { "ok " } else { "NO " };
        lines.push(for_terminal(&format!("{mark} {:<7} {}: {}", check.name, check.found, check.means)));
        lines.extend(check.run.as_ref().map(|run| format!("            run: {}", for_terminal(run))));
    }
    lines
}
