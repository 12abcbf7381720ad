//! A seeded random number generator.

use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64*. The same seed gives the same run.
#[derive(Debug, Clone)]
pub(crate) struct XorshiftRandom {
    seed: u64,
    state: u64,
}

impl XorshiftRandom {
    /// Seeded from `AGTMUX_SEED`, or from the clock.
    pub(crate) fn from_env() -> Self {
        let given = std::env::var("AGTMUX_SEED").ok();
        let seed = given.map(|seed| seed.parse().expect("AGTMUX_SEED is a number")).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
            now.as_secs() ^ u64::from(now.subsec_nanos()) << 20
        });
        // A zero state would stay zero.
        Self { seed, state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).expect("31 bits fit") % end
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }
}
