//! Medians and percentiles.

#![allow(dead_code, reason = "each benchmark uses a part of this module")]

use std::time::Duration;

/// The percentile of the samples; `share` is between 0 and 1.
pub(crate) fn percentile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    percentile(samples, 0.5)
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The percentile of the times; `percent` is between 0 and 100.
pub(crate) fn percentile_of(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}
