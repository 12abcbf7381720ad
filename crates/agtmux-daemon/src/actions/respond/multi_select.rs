//! Ticks the given options of a dialog and unticks all others. The number key of an option ticks or unticks the option.
//! Each change is verified before the next key is pressed.

use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_tmux::TmuxKey;

use super::super::{after_typing, after_typing_if, guards};
use super::closing::{DialogClosing, wait_until_closed};
use super::open_dialog::OpenDialog;
use super::single_select::{self, MAX_DIGIT_OPTION, move_selection, press_while};

/// How long an agent may take to draw the tick after the number key of an option is pressed.
const TICK_TIMEOUT: Duration = Duration::from_millis(1500);

/// Ticks these options, unticks the others, and submits the dialog.
pub(super) async fn select_options<'a>(
    open: &OpenDialog<'a>,
    numbers: &[u32],
) -> ApiResult<(String, DialogClosing<'a>)> {
    let labels = check_tickable(open, numbers)?;
    let submit = single_select::parse_keys(open.keys.many.as_deref().unwrap_or_default())?;
    let (seen, pressed) = tick_exactly(open, numbers).await?;
    // The submit keys work only while an ordinary option is selected.
    let aside = leave_text_option(&seen).await.map_err(after_typing_if(pressed))?;
    for (n, key) in submit.iter().enumerate() {
        let is_first = n == 0 && !pressed && !aside;
        // A person may have changed the ticks meanwhile.
        let done = press_while(open, key, |seen| n > 0 || seen.has_ticked(numbers)).await;
        done.map_err(after_typing_if(!is_first))?;
    }
    Ok((labels.join(", "), wait_until_closed(open).await?))
}

/// The labels of these options. Fails if an option cannot be ticked.
fn check_tickable(open: &OpenDialog<'_>, numbers: &[u32]) -> ApiResult<Vec<String>> {
    let wrong = |message: String| ApiError::new(ErrorCode::BadRequest, message).with_hint(open.accepted_answers());
    if open.keys.many.is_none() || open.ticks.is_empty() {
        return Err(wrong("the dialog takes one answer, not several".into()));
    }
    if numbers.is_empty() {
        return Err(wrong("no option was given".into()));
    }
    if open.dialog.options.iter().any(|option| option.n > MAX_DIGIT_OPTION) {
        return Err(wrong(format!("a dialog with more than {MAX_DIGIT_OPTION} options cannot be answered by number")));
    }
    let label = |n: &u32| {
        let label = open.label(*n)?;
        let can_be = open.ticks.iter().any(|(ticked, _)| ticked == n) && !open.is_text_option(*n);
        if can_be { Ok(label) } else { Err(wrong(format!("option {n} cannot be ticked"))) }
    };
    numbers.iter().map(label).collect()
}

/// Ticks these options and unticks all others. Returns the resulting dialog, and whether a key was pressed.
pub(super) async fn tick_exactly<'a>(open: &OpenDialog<'a>, wanted: &[u32]) -> ApiResult<(OpenDialog<'a>, bool)> {
    let (mut seen, mut pressed) = (open.clone(), false);
    // A person may change ticks at the same time, so the number of key presses is limited.
    for _ in 0..=open.ticks.len() {
        let wrong = |(n, ticked): &&(u32, bool)| wanted.contains(n) != *ticked;
        let Some(&(n, _)) = seen.ticks.iter().find(wrong) else { return Ok((seen, pressed)) };
        let done = async {
            // In the text field a digit would be typed as text.
            leave_text_option(&seen).await?;
            let digit = char::from_digit(n, 10).unwrap_or_default();
            // Ticks and text may change, but the number must still stand for the same option.
            let label = open.label(n)?;
            let is_same_option = |seen: &OpenDialog<'_>| seen.label(n).is_ok_and(|now| now == label);
            press_while(open, &TmuxKey::Character(digit), is_same_option).await
        };
        done.await.map_err(after_typing_if(pressed))?;
        pressed = true;
        seen = wait_for_tick(open, n, wanted.contains(&n)).await.map_err(after_typing)?;
    }
    Err(after_typing(not_submitted("the options could not be ticked")))
}

/// Waits until this option is ticked, or unticked if `wanted` is false, and returns the dialog.
async fn wait_for_tick<'a>(open: &OpenDialog<'a>, n: u32, wanted: bool) -> ApiResult<OpenDialog<'a>> {
    let ticked = open.pane.poll_screen(TICK_TIMEOUT, |capture| {
        Ok(open.still_on(capture)?.filter(|seen| seen.ticks.contains(&(n, wanted))))
    });
    ticked.await?.ok_or_else(|| not_submitted(&format!("option {n} could not be ticked")))
}

/// Moves the selection to an ordinary option, unless an ordinary option is already selected. Ordinary options can be
/// ticked and are not text fields. Returns whether the selection was moved.
async fn leave_text_option(open: &OpenDialog<'_>) -> ApiResult<bool> {
    let ordinary = open.ticks.iter().map(|(n, _)| *n).find(|n| !open.is_text_option(*n));
    let is_ordinary = |n: u32| open.ticks.iter().any(|(ticked, _)| *ticked == n) && !open.is_text_option(n);
    let Some(ordinary) = ordinary.filter(|_| !open.selected.is_some_and(is_ordinary)) else { return Ok(false) };
    let mut seen = open.clone();
    if seen.selected.is_none() {
        // No option is selected, so the selection is on the submit button, directly below the last option that can be
        // ticked.
        press_while(open, &TmuxKey::Named("Up".into()), |_| true).await?;
        let last = open.ticks.last().map(|(n, _)| *n);
        seen = single_select::wait_for_selection(open, last.unwrap_or(ordinary)).await?.unwrap_or(seen);
    }
    move_selection(&seen, ordinary).await?;
    Ok(true)
}

fn not_submitted(message: &str) -> ApiError {
    guards::state_changed(format!("{message}; nothing was submitted"))
}
