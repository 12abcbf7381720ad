//! Medians and percentiles.

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

/// The percentile of the times in milliseconds.
pub(crate) fn percentile_ms(times: &[Duration], share: f64) -> f64 {
    percentile(&times.iter().copied().map(millis).collect::<Vec<_>>(), share)
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
