//! Whether a dialog went away by what was answered.

use std::time::Duration;

use agtmux_api::wire::{Verification, VerifiedBy};
use agtmux_core::state::State;
use tokio::time::{Instant, sleep};

use super::super::pane_screen::PaneScreen;
use super::super::{ActionFailure, ActionPane};
use super::open_dialog::OpenDialog;

/// How long an agent takes at the most to close what was answered.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// How a dialog ended.
#[derive(Debug)]
pub(super) struct DialogClosing {
    pub(super) verified: Verification,
    pub(super) by: VerifiedBy,
    /// What it asks now.
    pub(super) next: Option<OpenDialog>,
    pub(super) event_ids: Vec<String>,
}

/// Looks until two looks in a row do not show it: a screen that is being drawn shows nothing for a moment.
pub(super) async fn wait_until_closed(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
) -> Result<DialogClosing, ActionFailure> {
    wait_until_closed_or(scene, open, |_| true).await
}

/// The same for one into which nothing was typed: once it asks something else, it is another one.
pub(super) async fn wait_until_closed_or_changed(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
) -> Result<DialogClosing, ActionFailure> {
    let is_it = |look: &PaneScreen| matches!(OpenDialog::from_screen(scene, look), Ok(Some(seen)) if seen.is_unchanged_since(open));
    wait_until_closed_or(scene, open, is_it).await
}

/// The same for one that is open only as long as something else is seen as well.
pub(super) async fn wait_until_closed_or(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    shows: impl Fn(&PaneScreen) -> bool,
) -> Result<DialogClosing, ActionFailure> {
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    let mut gone = 0;
    loop {
        sleep(POLL_INTERVAL).await;
        let late = Instant::now() >= deadline;
        // Whatever happens now, the keys were pressed.
        let look = scene.capture().await.map_err(ActionFailure::after_typing)?;
        let seen = OpenDialog::from_screen(scene, &look)?;
        let is_open = seen.as_ref().is_some_and(|seen| seen.is_same_question(open)) && shows(&look);
        gone = if is_open { 0 } else { gone + 1 };
        let verified = if gone > 1 { Verification::Confirmed } else { Verification::Failed };
        if gone > 1 || late {
            let next = seen.filter(|_| gone > 1);
            return Ok(DialogClosing { verified, by: VerifiedBy::Dialog, next, event_ids: Vec::new() });
        }
    }
}

/// Returns when everybody else knows of it too, so that whoever is told of it now can go on from there at once: answer what
/// it asks next, or wait for what it does.
pub(super) async fn wait_until_engine_knows(scene: &ActionPane<'_>, open: &OpenDialog, closing: &DialogClosing) {
    if closing.verified != Verification::Confirmed {
        return;
    }
    let (before, next) = (&open.dialog.fingerprint, closing.next.as_ref().map(|next| &next.dialog.fingerprint));
    scene
        .wait_for_engine(|state, dialog| match (next, dialog) {
            (Some(next), dialog) => dialog == Some(next),
            (None, Some(dialog)) => dialog != before,
            (None, None) => !matches!(state, State::WaitingApproval | State::WaitingInput),
        })
        .await;
}

/// The dialog that the engine knows of, once it does.
pub(super) async fn wait_for_known_dialog(scene: &ActionPane<'_>) -> Option<String> {
    scene.wait_for_engine(|_, dialog| dialog.is_some()).await.flatten()
}
