use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The age in one unit: `3s`, `5m`, `2h`, `4d`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    // Clocks of two hosts can differ: a time in the future counts as now.
    in_one_unit(now.as_second().saturating_sub(since.as_second()).max(0))
}

/// A date and time in this time zone, without the zone.
pub(crate) fn local_time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A duration in one unit, such as `250ms` or `3s`.
pub(crate) fn short_duration(milliseconds: i64) -> String {
    if (0..1000).contains(&milliseconds) {
        format!("{milliseconds}ms")
    } else {
        in_one_unit(milliseconds.max(0) / 1000)
    }
}

fn in_one_unit(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_in_one_unit() {
        let ago = |seconds: i64| {
            let now = Timestamp::UNIX_EPOCH;
            age(Timestamp::from_second(-seconds).expect("in range"), now)
        };
        for (seconds, text) in
            [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (172_800, "2d")]
        {
            assert_eq!(ago(seconds), text);
        }
    }
}
