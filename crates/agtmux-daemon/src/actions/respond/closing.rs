//! Whether a dialog went away by what was answered.

use std::time::Duration;

use agtmux_api::wire::{Verified, VerifiedBy};
use agtmux_core::refs::Ref;
use tokio::time::{Instant, sleep};

use super::super::{Failure, Scene};
use super::open::Open;

/// How long an agent takes at the most to close what was answered.
const CLOSED_WITHIN: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// How long the engine takes at the most to hear of the next one.
const KNOWN_WITHIN: Duration = Duration::from_millis(1500);

/// How a dialog ended.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) verified: Verified,
    pub(super) by: VerifiedBy,
    /// What it asks now.
    pub(super) next: Option<Open>,
    pub(super) event_ids: Vec<String>,
}

/// Looks until two looks in a row do not show it: a screen that is being drawn shows nothing for a moment.
pub(super) async fn closed(scene: &Scene<'_>, open: &Open) -> Result<Closing, Failure> {
    let deadline = Instant::now() + CLOSED_WITHIN;
    let mut gone = 0;
    loop {
        sleep(LOOK_EVERY).await;
        let late = Instant::now() >= deadline;
        // Whatever happens now, the keys were pressed.
        let look = scene.look().await.map_err(Failure::after_all)?;
        let seen = Open::seen(scene, &look)?;
        let is_open = seen.as_ref().is_some_and(|seen| seen.asks_the_same(open));
        gone = if is_open { 0 } else { gone + 1 };
        let verified = if gone > 1 { Verified::Confirmed } else { Verified::Failed };
        if gone > 1 || late {
            let next = seen.filter(|_| gone > 1);
            return Ok(Closing { verified, by: VerifiedBy::Dialog, next, event_ids: Vec::new() });
        }
    }
}

/// Returns when everybody else knows of it too, so that whoever is told of it now can answer it at once.
pub(super) async fn known(scene: &Scene<'_>, next: &Open) {
    let Some(runtime) = scene.located.living.as_ref().map(|living| living.runtime.id.clone()) else { return };
    let deadline = Instant::now() + KNOWN_WITHIN;
    while Instant::now() < deadline {
        let located = scene.actions.0.engine.locate(Ref::Runtime(runtime.clone())).await;
        let dialog = located.ok().and_then(|located| located.living?.dialog);
        if dialog.is_some_and(|dialog| dialog.fingerprint == next.dialog.fingerprint) {
            return;
        }
        sleep(LOOK_EVERY).await;
    }
}
