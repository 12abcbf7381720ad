//! How long agtmux took to see each kind of operation.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct LatencyTable(BTreeMap<&'static str, Vec<Duration>>);

impl LatencyTable {
    pub(crate) fn record(&mut self, kind: &'static str, took: Duration) {
        self.0.entry(kind).or_default().push(took);
    }
}

impl fmt::Display for LatencyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24}{:>6}{:>9}{:>9}{:>9}   (ms until agtmux agreed with tmux)",
            "operation", "n", "p50", "p95", "max"
        )?;
        for (kind, times) in &self.0 {
            line(f, kind, times.clone())?;
        }
        line(f, "all", self.0.values().flatten().copied().collect())
    }
}

fn line(f: &mut fmt::Formatter<'_>, kind: &str, mut times: Vec<Duration>) -> fmt::Result {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    let ms = |time: Option<&Duration>| time.map_or(0, Duration::as_millis);
    writeln!(f, "{kind:<24}{:>6}{:>9}{:>9}{:>9}", times.len(), ms(at(50)), ms(at(95)), ms(times.last()))
}
