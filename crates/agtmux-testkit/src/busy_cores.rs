//! Puts load on the machine.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Keeps some cores of the machine busy until this value is dropped.
#[derive(Debug)]
pub struct BusyCores {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCores {
    pub fn start(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let burn = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| thread::spawn(burn(Arc::clone(&stop)))).collect();
        Self { stop, threads }
    }

    /// Keeps every core of the machine busy.
    pub fn all() -> Self {
        Self::start(thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread only spins and cannot panic. A drop must not panic either.
            let _ = thread.join();
        }
    }
}
