//! Waits until an answered dialog closes.

use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::wire::{Verification, VerifiedBy};
use agtmux_core::dialog::Dialog;
use agtmux_core::state::State;
use tokio::time::{Instant, sleep};

use super::super::pane_screen::{POLL_INTERVAL, PaneScreen};
use super::super::{ActionPane, after_typing};
use super::open_dialog::OpenDialog;
use crate::engine::LocatedAgent;

/// How long an agent may take to close an answered dialog.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

/// How an answered dialog closed.
pub(super) struct DialogClosing<'a> {
    pub(super) verified: Verification,
    pub(super) by: VerifiedBy,
    /// The dialog that is open after the answer, if any.
    pub(super) next: Option<OpenDialog<'a>>,
    pub(super) event_ids: Vec<String>,
}

/// Waits until two captures in a row do not show the dialog. One capture is not enough, because the screen is blank for
/// a moment while the agent redraws it.
pub(super) async fn wait_until_closed<'a>(open: &OpenDialog<'a>) -> ApiResult<DialogClosing<'a>> {
    wait_until_closed_or(open, |_| true).await
}

/// Like [`wait_until_closed`], but the dialog also counts as closed when its text changes. Use this only for dialogs
/// into which nothing was typed, because typed text changes a dialog that is still open.
pub(super) async fn wait_until_closed_or_changed<'a>(open: &OpenDialog<'a>) -> ApiResult<DialogClosing<'a>> {
    let is_unchanged = |capture: &PaneScreen| {
        let seen = OpenDialog::from_screen(open.pane, capture).ok().flatten();
        seen.is_some_and(|seen| seen.is_unchanged_since(open))
    };
    wait_until_closed_or(open, is_unchanged).await
}

/// Like [`wait_until_closed`], but the dialog also counts as closed when `shows` rejects the screen.
pub(super) async fn wait_until_closed_or<'a>(
    open: &OpenDialog<'a>,
    shows: impl Fn(&PaneScreen) -> bool,
) -> ApiResult<DialogClosing<'a>> {
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    let mut gone = 0;
    loop {
        sleep(POLL_INTERVAL).await;
        let timed_out = Instant::now() >= deadline;
        // The keys were pressed, so a failure here is a failure after typing.
        let capture = open.pane.capture().await.map_err(after_typing)?;
        let seen = OpenDialog::from_screen(open.pane, &capture)?;
        let is_open = seen.as_ref().is_some_and(|seen| seen.is_same_question(open)) && shows(&capture);
        gone = if is_open { 0 } else { gone + 1 };
        let verified = if gone > 1 { Verification::Confirmed } else { Verification::Failed };
        if gone > 1 || timed_out {
            let next = seen.filter(|_| gone > 1);
            return Ok(DialogClosing { verified, by: VerifiedBy::Dialog, next, event_ids: Vec::new() });
        }
    }
}

/// Waits until the engine knows that the dialog closed. The caller of the action may then answer the next dialog or
/// wait for a state at once. Returns the next dialog as clients see it.
pub(super) async fn wait_until_engine_knows(open: &OpenDialog<'_>, closing: &DialogClosing<'_>) -> Option<Dialog> {
    let next = closing.next.as_ref();
    let known = |agent: &LocatedAgent| agent.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
    let knows = |agent: &LocatedAgent| match (next, known(agent)) {
        (Some(next), dialog) => dialog == Some(next.shown_to(agent).fingerprint),
        (None, Some(dialog)) => dialog != open.shown.fingerprint,
        (None, None) => !matches!(agent.record.state, State::WaitingApproval | State::WaitingInput),
    };
    let agent = match closing.verified {
        Verification::Confirmed => open.pane.wait_for_engine(knows).await,
        _ => None,
    };
    next.map(|next| agent.map_or_else(|| next.shown.clone(), |agent| next.shown_to(&agent)))
}

/// Waits until the engine knows an open dialog of this agent, and returns the fingerprint of the dialog.
pub(super) async fn wait_for_known_dialog(pane: &ActionPane<'_>) -> Option<String> {
    let agent = pane.wait_for_engine(|agent| agent.dialog.is_some()).await?;
    agent.dialog.map(|dialog| dialog.fingerprint)
}
