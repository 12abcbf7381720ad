//! Daily times at which no notice is sent.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// A daily span of local time. It may include midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: Time,
    to: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a span of time; write it like 22:00-07:30")]
pub struct QuietHoursError(String);

impl QuietHours {
    /// The time at which the quiet hours around `now` end. `None` if `now` is outside of them.
    pub fn end(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(now);
        let time = local.time();
        let is_quiet = match self.from < self.to {
            true => (self.from..self.to).contains(&time),
            false => time >= self.from || time < self.to,
        };
        let date = if time < self.to { local.date() } else { local.date().tomorrow().ok()? };
        // When clocks are set back, the end occurs twice. The later one is never in the past.
        let end = zone.to_ambiguous_timestamp(date.to_datetime(self.to)).later().ok()?;
        is_quiet.then_some(end)
    }
}

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, QuietHoursError> {
        let parse = |time: &str| Time::strptime("%H:%M", time.trim()).ok();
        let span = text.split_once('-').and_then(|(from, to)| Some(Self { from: parse(from)?, to: parse(to)? }));
        span.filter(|span| span.from != span.to).ok_or_else(|| QuietHoursError(text.to_owned()))
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from.strftime("%H:%M"), self.to.strftime("%H:%M"))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;

    fn end(hours: &str, now: &str, zone: &str) -> Option<String> {
        let zone = TimeZone::get(zone).expect("a zone");
        let hours: QuietHours = hours.parse().expect("valid");
        Some(hours.end(now.parse().expect("a time"), &zone)?.to_string())
    }

    #[test]
    fn quiet_hours_end_at_the_next_local_end() {
        for (hours, now, expected) in [
            ("22:00-07:30", "2026-11-19T21:30:00Z", Some("2026-11-20T06:30:00Z")),
            ("22:00-07:30", "2026-11-20T03:00:00Z", Some("2026-11-20T06:30:00Z")),
            ("22:00-07:30", "2026-11-20T06:30:00Z", None),
            ("22:00-07:30", "2026-11-20T12:00:00Z", None),
            ("12:00-13:00", "2026-11-20T11:30:00Z", Some("2026-11-20T12:00:00Z")),
            ("12:00-13:00", "2026-11-20T10:59:59Z", None),
        ] {
            assert_eq!(end(hours, now, "Europe/Berlin").as_deref(), expected, "{hours} at {now}");
        }
    }

    #[test]
    fn the_end_is_right_when_clocks_are_set_back() {
        // In Berlin, 02:30 occurs twice on this day: at 00:30 and at 01:30 UTC.
        for now in ["2026-10-25T00:10:00Z", "2026-10-25T01:10:00Z"] {
            assert_eq!(end("22:00-02:30", now, "Europe/Berlin").as_deref(), Some("2026-10-25T01:30:00Z"), "{now}");
        }
    }

    #[test]
    fn only_a_span_of_two_times_is_valid() {
        for text in ["", "22:00", "22:00-22:00", "25:00-07:00", "22-7", "a-b", "22:00-07:00-08:00"] {
            let error = text.parse::<QuietHours>().expect_err(text).to_string();
            assert!(error.contains("write it like"), "{error}");
        }
        assert_eq!("7:05 - 23:59".parse::<QuietHours>().expect("valid").to_string(), "07:05-23:59");
    }

    proptest! {
        #[test]
        fn the_end_is_soon_and_never_in_the_past(from in 0_u16..1440, to in 0_u16..1440, second in 0_i64..40_000_000) {
            prop_assume!(from != to);
            let text = format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
            let hours: QuietHours = text.parse().expect("valid");
            let zone = TimeZone::get("America/New_York").expect("a zone");
            let now = Timestamp::from_second(1_790_000_000 + second).expect("a time");
            if let Some(end) = hours.end(now, &zone) {
                prop_assert!(end > now && end.duration_since(now) <= SignedDuration::from_hours(26));
            }
        }
    }
}
