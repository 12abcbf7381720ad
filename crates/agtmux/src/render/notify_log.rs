//! The table of notices.

use agtmux_api::wire::{NotifyLogEvent, NotifyLogItem};
use jiff::tz::TimeZone;

use super::age::local_time;
use super::cell::TableCell;
use super::colour::Colour;
use super::table::{TableColumn, TextTable};

pub(crate) fn notify_log(items: &[NotifyLogItem], zone: &TimeZone) -> TextTable {
    TextTable::new(vec![
        TableColumn::required("WHEN", 8, items, |item| TableCell::new(&local_time(item.at, zone))),
        TableColumn::required("WHAT", 8, items, event),
        TableColumn::required("CHANNEL", 7, items, |item| TableCell::new(item.channel.map_or("-", |on| on.as_str()))),
        TableColumn::required("NOTICE", 12, items, |item| TableCell::new(&notice(item))),
        TableColumn::optional("WHY", 8, items, |item| TableCell::new(item.reason.as_deref().unwrap_or("-"))),
    ])
}

fn event(item: &NotifyLogItem) -> TableCell {
    let cell = TableCell::new(item.event.as_str());
    match item.event {
        NotifyLogEvent::Sent | NotifyLogEvent::Withdrawn => cell.coloured(Colour::Green),
        NotifyLogEvent::Held | NotifyLogEvent::Dropped => cell.coloured(Colour::Yellow),
        NotifyLogEvent::Failed => cell.coloured(Colour::Red),
    }
}

fn notice(item: &NotifyLogItem) -> String {
    let escalated = if item.notice.escalated { " (escalated)" } else { "" };
    let place = item.notice.text.lines().last().filter(|_| item.notice.agents.len() == 1);
    let place = place.map(|place| format!(", {place}")).unwrap_or_default();
    format!("{}{escalated}{place}", item.notice.title)
}
