//! Locks with names. Requests for the same lock get it in the order in which they asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

#[derive(Debug, Default)]
pub(crate) struct NamedLocks(Mutex<HashMap<String, Arc<Turn<()>>>>);

impl NamedLocks {
    pub(crate) async fn take(&self, name: String) -> OwnedMutexGuard<()> {
        let turn = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Drop locks that are neither held nor waited for.
            locks.retain(|_, turn| Arc::strong_count(turn) > 1);
            locks.entry(name).or_default().clone()
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lock_has_one_holder_and_unused_locks_are_dropped() {
        let locks = NamedLocks::default();
        let first = locks.take("a".into()).await;
        let other = locks.take("b".into()).await;
        let again = tokio::time::timeout(std::time::Duration::from_millis(20), locks.take("a".into())).await;
        assert!(again.is_err(), "the lock is held");
        drop((first, other));
        drop(locks.take("a".into()).await);
        assert_eq!(locks.0.lock().expect("the mutex is not poisoned").len(), 1);
    }
}
