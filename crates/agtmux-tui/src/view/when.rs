//! Since when an agent is in its state. An agent that works or waits has an age. An agent at rest has a time of day,
//! which does not change, so that a screen at rest needs no redraw.

use agtmux_core::state::State;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::age;
use crate::model::AgentRow;

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;

/// The age or the time, in at most five columns.
pub(super) fn column(row: &AgentRow, zone: &TimeZone, now: Timestamp) -> String {
    let Some(since) = row.item.since.filter(|_| !row.has_ended) else { return String::new() };
    if shows_time(row, since, now) { time_of_day(since, zone) } else { age::age(since, now) }
}

/// `for 3m`, or `since 14:05`.
pub(super) fn words(row: &AgentRow, zone: &TimeZone, now: Timestamp) -> Option<String> {
    let since = row.item.since.filter(|_| !row.has_ended)?;
    Some(match shows_time(row, since, now) {
        true => format!("since {}", time_of_day(since, zone)),
        false => format!("for {}", age::age(since, now)),
    })
}

/// The moment from which the shown age counts, if it must be drawn again as it grows.
pub(super) fn ticks(row: &AgentRow, now: Timestamp) -> Option<Timestamp> {
    let since = row.item.since.filter(|_| !row.has_ended)?;
    let grows = !shows_time(row, since, now) || seconds(since, now) >= HOUR;
    grows.then_some(since)
}

fn shows_time(row: &AgentRow, since: Timestamp, now: Timestamp) -> bool {
    let is_active = row.asks() || row.item.state == Some(State::Running);
    !is_active && (MINUTE..DAY).contains(&seconds(since, now))
}

fn seconds(since: Timestamp, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(since.as_second())
}

fn time_of_day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M").to_string()
}
