//! Taking several options, and no others. Each is ticked by its number, and seen to be ticked before the next.

use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_tmux::TmuxKey;
use tokio::time::{Instant, sleep};

use super::super::{ActionFailure, ActionPane, guards};
use super::closing::{DialogClosing, wait_until_closed};
use super::open_dialog::OpenDialog;
use super::single_select::{self, MAX_DIGIT_OPTION, POLL_INTERVAL, move_selection, press_while};

/// A tick is drawn this soon after its key.
const TICK_TIMEOUT: Duration = Duration::from_millis(1500);

/// Ticks these, unticks the others, and sends it off.
pub(super) async fn select_options(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    numbers: &[u32],
) -> Result<(String, DialogClosing), ActionFailure> {
    let labels = check_tickable(open, numbers)?;
    let submit = single_select::parse_keys(open.keys.many.as_deref().unwrap_or_default())?;
    let (seen, pressed) = tick_exactly(scene, open, numbers).await?;
    // What sends it off does so only from an ordinary option.
    let aside = leave_text_option(scene, &seen)
        .await
        .map_err(|failure| if pressed { failure.after_typing() } else { failure })?;
    for (n, key) in submit.iter().enumerate() {
        let is_first = n == 0 && !pressed && !aside;
        // Somebody else may have ticked something since.
        let done = press_while(scene, open, key, |seen| n > 0 || seen.has_ticked(numbers)).await;
        done.map_err(|failure| if is_first { failure } else { failure.after_typing() })?;
    }
    Ok((labels.join(", "), wait_until_closed(scene, open).await?))
}

/// What they are called, if it offers all of them for a tick.
fn check_tickable(open: &OpenDialog, numbers: &[u32]) -> Result<Vec<String>, ActionFailure> {
    let wrong = |message: String| {
        ActionFailure::refused(ApiError::new(ErrorCode::BadRequest, message).with_hint(open.accepted_answers()))
    };
    if open.keys.many.is_none() || open.ticks.is_empty() {
        return Err(wrong("it takes one answer, not several".into()));
    }
    if numbers.is_empty() {
        return Err(wrong("no option is named".into()));
    }
    if open.dialog.options.iter().any(|option| option.n > MAX_DIGIT_OPTION) {
        return Err(wrong(format!("more than {MAX_DIGIT_OPTION} options cannot be ticked by their numbers")));
    }
    let label = |n: &u32| {
        let label = open.label(*n)?;
        let can_be = open.ticks.iter().any(|(ticked, _)| ticked == n) && !open.is_text_option(*n);
        if can_be { Ok(label) } else { Err(wrong(format!("option {n} cannot be ticked"))) }
    };
    numbers.iter().map(label).collect()
}

/// Returns what is seen once just these are ticked, and whether anything was pressed for it.
pub(super) async fn tick_exactly(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    wanted: &[u32],
) -> Result<(OpenDialog, bool), ActionFailure> {
    let (mut seen, mut pressed) = (open.clone(), false);
    // Somebody else may be ticking as well: once around is enough.
    for _ in 0..=open.ticks.len() {
        let wrong = |(n, ticked): &&(u32, bool)| wanted.contains(n) != *ticked;
        let Some(&(n, _)) = seen.ticks.iter().find(wrong) else { return Ok((seen, pressed)) };
        let done = async {
            // There a digit would be one of the words.
            leave_text_option(scene, &seen).await?;
            let digit = char::from_digit(n, 10).unwrap_or_default();
            // Ticks and words may have changed since, but not what the number stands for.
            let label = open.label(n)?;
            let is_it = |seen: &OpenDialog| seen.label(n).is_ok_and(|now| now == label);
            press_while(scene, open, &TmuxKey::Character(digit), is_it).await
        };
        done.await.map_err(|failure| if pressed { failure.after_typing() } else { failure })?;
        pressed = true;
        seen = wait_for_tick(scene, open, n, wanted.contains(&n)).await.map_err(ActionFailure::after_typing)?;
    }
    Err(not_submitted("the options could not be ticked").after_typing())
}

/// The dialog once this option is ticked, or no longer.
async fn wait_for_tick(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    n: u32,
    wanted: bool,
) -> Result<OpenDialog, ActionFailure> {
    let deadline = Instant::now() + TICK_TIMEOUT;
    loop {
        let late = Instant::now() >= deadline;
        let seen = OpenDialog::from_screen(scene, &scene.capture().await?)?.filter(|seen| seen.is_same_question(open));
        match seen {
            Some(seen) if seen.ticks.contains(&(n, wanted)) => return Ok(seen),
            _ if late => return Err(not_submitted(&format!("option {n} could not be ticked"))),
            _ => sleep(POLL_INTERVAL).await,
        }
    }
}

/// Moves the selection to an ordinary option, if it is on none. Tells whether it was moved.
async fn leave_text_option(scene: &ActionPane<'_>, open: &OpenDialog) -> Result<bool, ActionFailure> {
    let ordinary = open.ticks.iter().map(|(n, _)| *n).find(|n| !open.is_text_option(*n));
    let is_ordinary = |n: u32| open.ticks.iter().any(|(ticked, _)| *ticked == n) && !open.is_text_option(n);
    let Some(ordinary) = ordinary.filter(|_| !open.selected.is_some_and(is_ordinary)) else { return Ok(false) };
    let mut seen = open.clone();
    if seen.selected.is_none() {
        // What sends it off comes right below the last that can be ticked.
        press_while(scene, open, &TmuxKey::Named("Up".into()), |_| true).await?;
        let last = open.ticks.last().map(|(n, _)| *n);
        seen = single_select::wait_for_selection(scene, open, last.unwrap_or(ordinary)).await?.unwrap_or(seen);
    }
    move_selection(scene, &seen, ordinary).await?;
    Ok(true)
}

fn not_submitted(message: &str) -> ActionFailure {
    ActionFailure::refused(guards::state_changed(format!("{message}; nothing was submitted")))
}
