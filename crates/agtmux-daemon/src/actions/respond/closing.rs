//! Whether a dialog went away by what was answered.

use std::time::Duration;

use agtmux_api::wire::{Verified, VerifiedBy};
use agtmux_core::state::State;
use tokio::time::{Instant, sleep};

use super::super::look::Look;
use super::super::{Failure, Scene};
use super::open::Open;

/// How long an agent takes at the most to close what was answered.
const CLOSED_WITHIN: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_millis(40);

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
    closed_unless(scene, open, |_| true).await
}

/// The same for one into which nothing was typed: once it asks something else, it is another one.
pub(super) async fn closed_as_it_was(scene: &Scene<'_>, open: &Open) -> Result<Closing, Failure> {
    let is_it = |look: &Look| matches!(Open::seen(scene, look), Ok(Some(seen)) if seen.is_untouched(open));
    closed_unless(scene, open, is_it).await
}

/// The same for one that is open only as long as something else is seen as well.
pub(super) async fn closed_unless(
    scene: &Scene<'_>,
    open: &Open,
    shows: impl Fn(&Look) -> bool,
) -> Result<Closing, Failure> {
    let deadline = Instant::now() + CLOSED_WITHIN;
    let mut gone = 0;
    loop {
        sleep(LOOK_EVERY).await;
        let late = Instant::now() >= deadline;
        // Whatever happens now, the keys were pressed.
        let look = scene.look().await.map_err(Failure::after_all)?;
        let seen = Open::seen(scene, &look)?;
        let is_open = seen.as_ref().is_some_and(|seen| seen.asks_the_same(open)) && shows(&look);
        gone = if is_open { 0 } else { gone + 1 };
        let verified = if gone > 1 { Verified::Confirmed } else { Verified::Failed };
        if gone > 1 || late {
            let next = seen.filter(|_| gone > 1);
            return Ok(Closing { verified, by: VerifiedBy::Dialog, next, event_ids: Vec::new() });
        }
    }
}

/// Returns when everybody else knows of it too, so that whoever is told of it now can go on from there at once: answer what
/// it asks next, or wait for what it does.
pub(super) async fn known(scene: &Scene<'_>, open: &Open, closing: &Closing) {
    if closing.verified != Verified::Confirmed {
        return;
    }
    let (before, next) = (&open.dialog.fingerprint, closing.next.as_ref().map(|next| &next.dialog.fingerprint));
    scene
        .heard(|state, dialog| match (next, dialog) {
            (Some(next), dialog) => dialog == Some(next),
            (None, Some(dialog)) => dialog != before,
            (None, None) => !matches!(state, State::WaitingApproval | State::WaitingInput),
        })
        .await;
}

/// The dialog that the engine knows of, once it does.
pub(super) async fn becomes_known(scene: &Scene<'_>) -> Option<String> {
    scene.heard(|_, dialog| dialog.is_some()).await.flatten()
}
