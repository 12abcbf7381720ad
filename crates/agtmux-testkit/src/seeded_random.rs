//! A seeded random number generator.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A random number generator (SplitMix64). Two generators with the same seed make the same choices.
#[derive(Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Takes the seed from `AGTMUX_SEED`, or from the clock if that is not set. Prints the seed, so that a failed run
    /// can be repeated.
    pub fn new() -> Self {
        let given = std::env::var("AGTMUX_SEED").ok();
        let seed = given.map(|seed| seed.parse().expect("AGTMUX_SEED is a number")).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
            u64::from(now.subsec_nanos()) << 20 ^ now.as_secs()
        });
        println!("AGTMUX_SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("it is less than `end`")
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }

    /// A random duration below `end`.
    pub fn duration_below(&mut self, end: Duration) -> Duration {
        let micros = self.below(usize::try_from(end.as_micros()).expect("a short time"));
        Duration::from_micros(micros as u64)
    }
}
