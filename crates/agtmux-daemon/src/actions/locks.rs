//! One at a time, in the order in which they came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

#[derive(Debug, Default)]
pub(crate) struct NamedLocks(Mutex<HashMap<String, Arc<Turn<()>>>>);

impl NamedLocks {
    pub(crate) async fn take(&self, name: String) -> OwnedMutexGuard<()> {
        let turn = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody holds and nobody waits for are of no use.
            locks.retain(|_, turn| Arc::strong_count(turn) > 1);
            locks.entry(name).or_default().clone()
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_holds_it_at_a_time_and_others_are_not_kept() {
        let locks = NamedLocks::default();
        let first = locks.take("a".into()).await;
        let other = locks.take("b".into()).await;
        let again = tokio::time::timeout(std::time::Duration::from_millis(20), locks.take("a".into())).await;
        assert!(again.is_err(), "it is held");
        drop((first, other));
        drop(locks.take("a".into()).await);
        assert_eq!(locks.0.lock().expect("whole").len(), 1);
    }
}
