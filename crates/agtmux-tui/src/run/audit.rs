//! The audit log as lines to read.

use agtmux_api::wire::{ActionRecord, ActionStatus};
use jiff::tz::TimeZone;

use crate::text;

/// One line for each action, the newest first.
pub(super) fn lines(items: &[ActionRecord], zone: &TimeZone) -> Vec<String> {
    match items {
        [] => vec!["no actions are recorded".to_owned()],
        items => items.iter().rev().map(|item| line(item, zone)).collect(),
    }
}

fn line(item: &ActionRecord, zone: &TimeZone) -> String {
    let at = item.at.to_zoned(zone.clone()).strftime("%m-%d %H:%M:%S");
    let (colour, status) = match item.status {
        ActionStatus::Done => (32, "done"),
        ActionStatus::Begun => (33, "begun"),
        ActionStatus::Refused => (33, "refused"),
        ActionStatus::Failed => (31, "failed"),
    };
    let who = item.caller.client.as_deref().or(item.caller.program.as_deref()).unwrap_or(&item.caller.via);
    let on = match (&item.pane_id, &item.server) {
        (Some(pane), Some(server)) => format!("{pane} on {server}"),
        _ => item.r#ref.clone(),
    };
    let said = item.text.as_deref().map(|text| format!(" \"{text}\"")).unwrap_or_default();
    let what = item.what.as_deref().map(|what| format!(" {what}")).unwrap_or_default();
    let why = item.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let rest = text::safe(&format!("{who:<10} {on:<16} {}{what}{said}{why}", item.kind.as_str()));
    format!("{at}  \u{1b}[{colour}m{status:<8}\u{1b}[0m {rest}")
}
