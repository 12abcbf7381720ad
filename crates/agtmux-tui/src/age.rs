//! Ages, and when the next one changes on the screen.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const TWO_DAYS: i64 = 172_800;

/// The time since this moment in one unit: `3s`, `5m`, `2h`, `4d`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    in_one_unit(seconds(since, now))
}

fn in_one_unit(seconds: i64) -> String {
    match seconds {
        s @ 0..MINUTE => format!("{s}s"),
        s @ MINUTE..HOUR => format!("{}m", s / MINUTE),
        s @ HOUR..TWO_DAYS => format!("{}h", s / HOUR),
        s => format!("{}d", s / (24 * HOUR)),
    }
}

/// A duration in one unit.
pub(crate) fn duration(milliseconds: i64) -> String {
    in_one_unit(milliseconds.max(0) / 1000)
}

/// When ages like these must be drawn again. Seconds are exact, because they show that something has just happened.
/// Minutes and hours change at full minutes and hours of the clock, so that many agents cause one redraw and not one
/// each. Without a young age nothing is due for an hour, so that an idle interface writes nothing.
pub(crate) fn next_change(visible: impl IntoIterator<Item = Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let youngest = visible.into_iter().map(|since| seconds(since, now)).min()?;
    let step = match youngest {
        0..MINUTE => 1,
        MINUTE..HOUR => MINUTE,
        _ => HOUR,
    };
    let due = (now.as_second().div_euclid(step) + 1) * step;
    Timestamp::from_second(due).ok()
}

/// Clocks of two hosts can differ: a time in the future counts as now.
fn seconds(since: Timestamp, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(since.as_second()).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn an_age_is_shown_in_one_unit() {
        for (seconds, text) in [(-5, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (172_800, "2d")] {
            assert_eq!(age(at(0), at(seconds)), text);
        }
        assert_eq!(duration(90_000), "1m");
        assert_eq!(duration(-1), "0s");
        assert_eq!(duration(i64::MAX), "106751991167d", "another host may report any duration");
    }

    #[test]
    fn only_young_ages_are_redrawn_soon() {
        let now = at(100_000);
        let due = |ages: &[i64]| next_change(ages.iter().map(|age| at(100_000 - age)), now).map(|at| at.as_second());
        assert_eq!(due(&[5, 7000]), Some(100_001));
        assert_eq!(due(&[65, 7000]), Some(100_020), "the next full minute");
        assert_eq!(due(&[7000]), Some(100_800), "the next full hour");
        assert_eq!(due(&[]), None);
    }
}
