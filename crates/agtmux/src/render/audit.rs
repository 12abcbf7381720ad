//! The table of actions.

use agtmux_api::wire::{ActionRecord, ActionStatus, AuditCaller};
use jiff::tz::TimeZone;

use super::age::local_time;
use super::cell::TableCell;
use super::colour::Colour;
use super::table::{TableColumn, TextTable};

pub(crate) fn audit(items: &[ActionRecord], zone: &TimeZone) -> TextTable {
    TextTable::new(vec![
        TableColumn::required("WHEN", 8, items, |item| TableCell::new(&local_time(item.at, zone))),
        TableColumn::optional("WHO", 8, items, |item| TableCell::new(&who(&item.caller))),
        TableColumn::required("WHAT", 8, items, |item| TableCell::new(&what(item))),
        TableColumn::required("ON", 6, items, |item| TableCell::new(&on(item))),
        TableColumn::required("OUTCOME", 10, items, outcome),
    ])
}

/// The name of the client and its process.
fn who(caller: &AuditCaller) -> String {
    let process = match (&caller.program, caller.pid) {
        (Some(program), Some(pid)) => format!("{program} {pid}"),
        (None, Some(pid)) => format!("process {pid}"),
        _ => format!("via {}", caller.via),
    };
    match &caller.client {
        Some(client) => format!("{client} ({process})"),
        None => process,
    }
}

fn what(item: &ActionRecord) -> String {
    let size = item.bytes.map(|bytes| format!("{bytes} bytes"));
    let text = item.text.as_deref().map(|text| format!("\"{text}\""));
    let parts = [item.what.clone(), text.or(size)];
    let forced = if item.forced { ", forced" } else { "" };
    let more: String = parts.into_iter().flatten().map(|part| format!(" {part}")).collect();
    format!("{}{forced}{more}", item.kind.as_str())
}

fn on(item: &ActionRecord) -> String {
    match (&item.pane_id, &item.server) {
        (Some(pane), Some(server)) => format!("{pane} on {server}"),
        _ => item.r#ref.clone(),
    }
}

fn outcome(item: &ActionRecord) -> TableCell {
    let code = item.code.and_then(|code| serde_json::to_value(code).ok()?.as_str().map(str::to_owned));
    let message = item.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    match (item.status, code) {
        (ActionStatus::Done, _) => {
            let verified = item.result.as_ref().and_then(|result| result.get("verified")?.as_str());
            let verified = verified.map(|word| format!(", {word}")).unwrap_or_default();
            TableCell::new(&format!("done{verified}")).coloured(Colour::Green)
        }
        (ActionStatus::Begun, _) => TableCell::new("started, interrupted").coloured(Colour::Yellow),
        (status, code) => {
            let code = code.map(|code| format!(" {code}")).unwrap_or_default();
            let colour = if status == ActionStatus::Failed { Colour::Red } else { Colour::Yellow };
            TableCell::new(&format!("{}{code}{message}", status.as_str())).coloured(colour)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::{drawn, wide};
    use agtmux_api::error::ErrorCode;
    use agtmux_api::wire::ActionKind;
    use jiff::Timestamp;
    use serde_json::json;
    use unicode_width::UnicodeWidthStr;

    fn sent() -> ActionRecord {
        ActionRecord {
            action_id: "a1".into(),
            kind: ActionKind::Send,
            at: Timestamp::UNIX_EPOCH,
            finished_at: None,
            caller: AuditCaller {
                uid: Some(0),
                pid: Some(7),
                program: Some("agtmux".into()),
                via: "unix".into(),
                client: Some("cli".into()),
            },
            r#ref: "claude".into(),
            target: Some("host".into()),
            server: Some("default".into()),
            pane_id: Some("%3".into()),
            runtime_id: None,
            snapshot_id: None,
            forced: false,
            request_ref: None,
            status: ActionStatus::Done,
            code: None,
            message: None,
            what: None,
            text: Some("fix it".into()),
            bytes: Some(6),
            event_ids: Vec::new(),
            result: Some(json!({"verified": "confirmed"})),
        }
    }

    #[test]
    fn each_row_shows_caller_action_and_outcome() {
        let refused = ActionRecord {
            kind: ActionKind::Kill,
            what: Some("signal TERM".into()),
            text: None,
            bytes: None,
            pane_id: None,
            status: ActionStatus::Refused,
            code: Some(ErrorCode::RefNotFound),
            message: Some("no agent matches 'claude'".into()),
            forced: true,
            ..sent()
        };
        insta::assert_snapshot!(drawn(&audit(&[sent(), refused], &TimeZone::UTC), 140), @r#"
        WHEN                 WHO             WHAT                      ON             OUTCOME
        1970-01-01 00:00:00  cli (agtmux 7)  send "fix it"             %3 on default  done, confirmed
        1970-01-01 00:00:00  cli (agtmux 7)  kill, forced signal TERM  claude         refused E_REF_NOT_FOUND: no agent matches 'claude'
        "#);
    }

    #[test]
    fn hostile_text_stays_in_its_line_and_its_column() {
        let mut hostile = sent();
        hostile.text = Some("\x1b]0;x\x07\u{202e}evil\r\n".repeat(20_000));
        hostile.caller.program = Some("\x1b[2J\n".into());
        hostile.caller.client = Some("\u{9b}m".into());
        hostile.server = Some("a\nb".into());
        for width in 1..130 {
            let text = drawn(&audit(std::slice::from_ref(&hostile), &TimeZone::UTC), width);
            assert_eq!(text.lines().count(), 2, "at {width}");
            assert!(text.lines().all(|line| line.width() <= width), "at {width}: {text}");
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "at {width}: {text:?}");
        }
        assert!(wide(&audit(&[hostile], &TimeZone::UTC)).len() < 2000);
    }
}
