//! Text output for targets.

use agtmux_api::wire::{EvidenceKind, TargetCheckReport, TargetItem, TargetList, TargetStatus};
use agtmux_core::sanitize::for_terminal;
use agtmux_core::target::TargetKind;

use crate::message::CliMessage;

pub(super) fn target_lines(TargetItem { status, panes, agents }: &TargetItem) -> Vec<String> {
    let by = status.ssh_target.as_ref().map(|host| format!(" (ssh {host})")).unwrap_or_default();
    let (name, health, evidence) = (&status.name, status.health, evidence(status));
    vec![for_terminal(&format!("{name}{by}: {health}, {evidence}, {panes} panes, {agents} agents"))]
}

fn evidence(target: &TargetStatus) -> String {
    match (target.evidence, &target.agtmux_version) {
        (EvidenceKind::Native, Some(version)) => format!("native evidence (agtmux {version} is installed)"),
        (EvidenceKind::Native, None) => "native evidence".into(),
        (EvidenceKind::Screen, _) => "screens only (agtmux is not installed)".into(),
        (EvidenceKind::Nothing, _) => "no evidence yet".into(),
    }
}

/// Messages about problems with targets, and about possible improvements.
pub(super) fn advice(targets: &TargetList) -> Vec<CliMessage> {
    targets.items.iter().filter_map(|item| advice_for(&item.status)).collect()
}

fn advice_for(target: &TargetStatus) -> Option<CliMessage> {
    let name = &target.name;
    if let Some(why) = &target.message {
        let message = CliMessage::new(format!("{name} is {}", target.health)).because(why);
        return Some(target.hint.iter().fold(message, CliMessage::hint));
    }
    let screens = target.kind == TargetKind::Ssh && target.evidence == EvidenceKind::Screen;
    screens.then(|| {
        CliMessage::new(format!("{name}: agtmux sees only screens and processes"))
            .because("agtmux is not installed on the host, so events of the agents are missing")
            .hint(format!("agtmux target doctor {name}   (shows how to install agtmux on the host)"))
    })
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
