//! Explanations and histories as lines to read.

use agtmux_api::wire::{ExplainCandidate, Explanation, StateHistory};
use agtmux_core::evidence::{Assertion, DialogKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::{age, text};

/// The observations behind a state, those that count first.
pub(super) fn explanation_lines(why: &Explanation, zone: &TimeZone) -> Vec<String> {
    let reason = why.reason_code.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let mut lines = vec![
        format!("{}{reason}, confidence {}, since {}", why.state, why.confidence, local_time(why.since, zone)),
        String::new(),
    ];
    let (counting, others): (Vec<_>, Vec<_>) = why.candidates.iter().partition(|seen| seen.why_not.is_none());
    for (title, seen) in [("observations that count", counting), ("observations that do not count", others)] {
        if !seen.is_empty() {
            lines.push(heading(title));
            lines.extend(seen.into_iter().flat_map(candidate_lines));
            lines.push(String::new());
        }
    }
    if !why.would_change.is_empty() {
        lines.push(heading("would change the state"));
        lines.extend(why.would_change.iter().map(|change| text::safe(&format!("  {change}"))));
        lines.push(String::new());
    }
    lines.push(text::safe(&format!("runtime:{}", why.runtime_id)));
    lines
}

fn heading(title: &str) -> String {
    format!("\u{1b}[1m{title}\u{1b}[0m")
}

fn candidate_lines(seen: &ExplainCandidate) -> Vec<String> {
    let says = match seen.says {
        Assertion::Running => "running",
        Assertion::Completed => "completed",
        Assertion::Idle => "idle",
        Assertion::Failed => "failed",
        Assertion::DialogOpen(DialogKind::Approval) => "asks for an approval",
        Assertion::DialogOpen(DialogKind::Input) => "asks for input",
        Assertion::NoDialog => "asks nothing",
    };
    let age = age::duration(seen.age_ms);
    let first = format!("  {:<8} {says}, {age} ago, by the rule {}", seen.source.as_str(), seen.rule);
    let why_not = seen.why_not.iter().map(|why| format!("           {why}"));
    let evidence = (!seen.evidence.is_empty()).then(|| format!("           {}", seen.evidence));
    [first].into_iter().chain(why_not).chain(evidence).map(|line| text::safe(&line)).collect()
}

/// The states, the newest first.
pub(super) fn history_lines(history: &StateHistory, zone: &TimeZone) -> Vec<String> {
    let line = |past: &agtmux_api::wire::StateHistoryItem| {
        let reason = past.reason_code.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let lasted = past.duration_ms.map_or("until now".to_owned(), |ms| format!("for {}", age::duration(ms)));
        format!("{}   {:<10} {}{reason}", local_time(past.at, zone), lasted, past.state)
    };
    history.items.iter().rev().map(line).collect()
}

/// Output without the blank lines below the last text.
pub(super) fn without_blank_end(mut lines: Vec<String>) -> Vec<String> {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    lines.truncate(end);
    lines
}

fn local_time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
