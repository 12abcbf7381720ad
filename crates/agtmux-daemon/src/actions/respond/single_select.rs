//! Selects one option of a dialog.

use std::time::Duration;

use agtmux_agents::OptionKeys;
use agtmux_api::error::{ApiResult, ErrorCode};
use agtmux_tmux::{PaneInput, TmuxKey};
use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use super::super::pane_screen::{POLL_INTERVAL, PaneScreen};
use super::super::{ActionPane, after_typing, after_typing_if, guards, precondition};
use super::open_dialog::OpenDialog;

/// How long an agent may take to show the moved selection after the key press.
const MOVE_TIMEOUT: Duration = Duration::from_millis(1500);
const MAX_MOVES: u32 = 4;
/// An agent may ignore keys while it draws a new dialog. agtmux therefore waits until a dialog that is younger than
/// this stops changing. The wait lasts at most this long.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
const STABLE_FOR: Duration = Duration::from_millis(300);
/// If the screen has not changed when this time has passed since a key press, the agent has ignored the key.
const IGNORED_AFTER: Duration = Duration::from_millis(600);
const MAX_PRESSES: u32 = 4;
const DIALOG_CHANGED: &str = "the dialog has changed; nothing was typed";
/// The largest option number that can be typed with a single key.
pub(super) const MAX_DIGIT_OPTION: u32 = 9;

pub(super) async fn select_option(open: &OpenDialog<'_>, n: u32) -> ApiResult<()> {
    let Some(method) = open.keys.option else {
        return Err(precondition("the options of this dialog cannot be selected by number", open.accepted_answers()));
    };
    // With ten or more options a digit may be the start of a number. In a text field, a digit is text.
    let is_one_key =
        open.dialog.options.iter().all(|option| option.n <= MAX_DIGIT_OPTION) && !open.is_text_option_selected();
    let digit = char::from_digit(n, 10).filter(|_| method == OptionKeys::Digits && is_one_key);
    if let Some(digit) = digit {
        return press_settled(open, &TmuxKey::Character(digit)).await;
    }
    move_selection(open, n).await?;
    // A person may have moved the selection, or the option may have changed. Enter would then choose another option.
    let label = open.label(n)?;
    let is_same_option =
        |seen: &OpenDialog<'_>| seen.selected == Some(n) && seen.label(n).is_ok_and(|now| now == label);
    let taken = press_while(open, &TmuxKey::enter(), is_same_option).await;
    taken.map_err(after_typing)
}

/// Presses the keys of one answer.
///
/// Presses the first key only if the dialog is unchanged. This key may close the dialog, and another dialog may open.
/// In that case the remaining keys are not pressed, because they would answer the other dialog.
pub(super) async fn press_answer(open: &OpenDialog<'_>, keys: &[TmuxKey]) -> ApiResult<()> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    press_settled(open, first).await?;
    for key in rest {
        pause(open.pane).await;
        let pressed = press_if(open.pane, key, |seen| seen.is_none_or(|seen| seen.is_unchanged_since(open))).await;
        pressed.map_err(after_typing)?;
    }
    Ok(())
}

/// Presses keys that do not answer the dialog, such as arrow keys. Fails if the screen no longer shows the same
/// question.
pub(super) async fn press_keys(open: &OpenDialog<'_>, keys: &[TmuxKey]) -> ApiResult<()> {
    for (n, key) in keys.iter().enumerate() {
        let same = |seen: Option<OpenDialog<'_>>| seen.is_some_and(|seen| seen.is_same_question(open));
        let pressed = async {
            if n > 0 {
                wait_until_drawn(open.pane).await?;
            }
            press_if(open.pane, key, same).await
        };
        pressed.await.map_err(after_typing_if(n > 0))?;
    }
    Ok(())
}

/// Waits after a key press until the screen shows a dialog again. No dialog is visible while the agent redraws the
/// screen.
async fn wait_until_drawn(pane: &ActionPane<'_>) -> ApiResult<()> {
    pause(pane).await;
    pane.poll_screen(MOVE_TIMEOUT, |capture| OpenDialog::from_screen(pane, capture)).await.map(drop)
}

async fn pause(pane: &ActionPane<'_>) {
    sleep(Duration::from_millis(pane.actions.config().tmux_bridge.sequential_send_delay_ms)).await;
}

async fn press_if(
    pane: &ActionPane<'_>,
    key: &TmuxKey,
    allows: impl Fn(Option<OpenDialog<'_>>) -> bool,
) -> ApiResult<()> {
    let check = |capture: &PaneScreen| match allows(OpenDialog::from_screen(pane, capture)?) {
        true => Ok(()),
        false => Err(guards::state_changed(DIALOG_CHANGED.into())),
    };
    pane.type_if(PaneInput::Keys(std::slice::from_ref(key)), check).await
}

/// Waits until the dialog has settled, and presses a key if the dialog is exactly the same as when it was read.
///
/// Some agents ignore keys for a moment after they draw a dialog, to prevent accidental answers. This function then
/// presses the key again, but only if the agent has read the first press and the whole screen is still the same. If
/// anything has changed, the agent may have accepted the key and asked the same question again.
pub(super) async fn press_settled(open: &OpenDialog<'_>, key: &TmuxKey) -> ApiResult<()> {
    wait_until_settled(open.pane).await?;
    for attempt in 0..MAX_PRESSES {
        let pressed = match press_on_unchanged(open, key).await {
            // The agent accepted the earlier key after all.
            Err(error) if attempt > 0 && error.code == ErrorCode::StateChanged => break,
            result => result.map_err(after_typing_if(attempt > 0))?,
        };
        // If only a part of the dialog is visible, the next dialog may look the same.
        let may_differ = open.shown.subject_truncated;
        if may_differ || !was_ignored(open.pane, &pressed).await.map_err(after_typing)? {
            break;
        }
    }
    Ok(())
}

/// Presses a key if the dialog is unchanged. Returns the screen as it was before the key press.
async fn press_on_unchanged(open: &OpenDialog<'_>, key: &TmuxKey) -> ApiResult<PaneScreen> {
    check_same_command(open).await?;
    let mut before = None;
    let is_unchanged = |capture: PaneScreen| {
        let seen = OpenDialog::from_screen(open.pane, &capture)?;
        before = Some(capture);
        match seen.is_some_and(|seen| seen.is_unchanged_since(open)) {
            true => Ok(()),
            false => Err(guards::state_changed(DIALOG_CHANGED.into())),
        }
    };
    open.pane.type_if_screen(PaneInput::Keys(std::slice::from_ref(key)), is_unchanged).await?;
    before.ok_or_else(|| guards::state_changed(DIALOG_CHANGED.into()))
}

/// Whether the agent ignored the key: it has read the key, and the screen still looks the same after a while.
async fn was_ignored(pane: &ActionPane<'_>, before: &PaneScreen) -> ApiResult<bool> {
    let changed = pane.poll_screen(IGNORED_AFTER, |capture| Ok((capture.raw != before.raw).then_some(()))).await?;
    // If the agent has not read the key yet, it would read the key twice after another press.
    Ok(changed.is_none() && pane.processes.unread_input(&pane.located.pane.tty) == Some(0))
}

/// If the screen shows only a part of the command, checks that the agent still asks about the same command. The visible
/// part of the next command may be the same.
async fn check_same_command(open: &OpenDialog<'_>) -> ApiResult<()> {
    if !open.is_completed() {
        return Ok(());
    }
    let now = open.pane.agent_now().await.map(|agent| open.shown_to(&agent).fingerprint);
    match now.as_ref() == Some(&open.shown.fingerprint) {
        true => Ok(()),
        false => Err(guards::state_changed(DIALOG_CHANGED.into())),
    }
}

/// Waits until the dialog has settled, and presses a key if `holds` accepts the dialog. Unlike [`press_settled`], this
/// function allows changes that the action itself has made to the dialog, such as ticks.
pub(super) async fn press_while(
    open: &OpenDialog<'_>,
    key: &TmuxKey,
    holds: impl Fn(&OpenDialog<'_>) -> bool,
) -> ApiResult<()> {
    wait_until_settled(open.pane).await?;
    check_same_command(open).await?;
    open.pane.type_if(PaneInput::Keys(std::slice::from_ref(key)), |capture| check_dialog(open, capture, &holds)).await
}

async fn wait_until_settled(pane: &ActionPane<'_>) -> ApiResult<()> {
    let age = pane.actions.0.clock.now().duration_since(pane.agent()?.record.updated_at);
    let is_new = age < SignedDuration::try_from(SETTLE_TIMEOUT).unwrap_or_default();
    let begun = Instant::now();
    let (mut capture, mut since) = (pane.capture().await?, begun);
    while is_new && since.elapsed() < STABLE_FOR && begun.elapsed() < SETTLE_TIMEOUT {
        sleep(POLL_INTERVAL).await;
        let now = pane.capture().await?;
        if now.raw != capture.raw {
            (capture, since) = (now, Instant::now());
        }
    }
    Ok(())
}

fn check_dialog(open: &OpenDialog<'_>, capture: &PaneScreen, holds: impl Fn(&OpenDialog<'_>) -> bool) -> ApiResult<()> {
    let why = match open.still_on(capture)? {
        Some(seen) if holds(&seen) => return Ok(()),
        Some(_) => "the selection was changed by another person or program; no option was chosen",
        None => DIALOG_CHANGED,
    };
    Err(guards::state_changed(why.into()))
}

/// Moves the selection to an option and waits until the screen shows the option as selected. Tries again if a person
/// moves the selection meanwhile.
pub(super) async fn move_selection(open: &OpenDialog<'_>, n: u32) -> ApiResult<()> {
    let mut seen = open.clone();
    for attempt in 0..MAX_MOVES {
        let moved = press_arrows(&seen, n).await;
        moved.map_err(after_typing_if(attempt > 0))?;
        match wait_for_selection(open, n).await.map_err(after_typing)? {
            Some(now) if now.selected == Some(n) => return Ok(()),
            Some(now) => seen = now,
            None => break,
        }
    }
    let error = guards::state_changed(format!("option {n} could not be selected; no option was chosen"));
    Err(after_typing(error))
}

/// Presses the arrow keys that move the selection to this option.
async fn press_arrows(open: &OpenDialog<'_>, n: u32) -> ApiResult<()> {
    let position = |n: u32| open.dialog.options.iter().position(|option| option.n == n);
    let Some((from, to)) = open.selected.and_then(position).zip(position(n)) else {
        return Err(precondition("the dialog does not show which option is selected", open.accepted_answers()));
    };
    let (back, forth) = match open.keys.option {
        Some(OptionKeys::Right) => ("Left", "Right"),
        _ => ("Up", "Down"),
    };
    let key = TmuxKey::Named(if to < from { back } else { forth }.into());
    press_keys(open, &vec![key; to.abs_diff(from)]).await
}

/// Waits until the option is selected, or until the timeout. Returns the dialog as the last capture shows it, or `None`
/// if that capture does not show the same question.
pub(super) async fn wait_for_selection<'a>(open: &OpenDialog<'a>, n: u32) -> ApiResult<Option<OpenDialog<'a>>> {
    // The agent may be redrawing, so keep looking until the timeout.
    let mut last = None;
    let selected = open.pane.poll_screen(MOVE_TIMEOUT, |capture| {
        last = open.still_on(capture)?;
        Ok(last.as_ref().is_some_and(|seen| seen.selected == Some(n)).then_some(()))
    });
    selected.await?;
    Ok(last)
}

pub(super) fn parse_keys(names: &[String]) -> ApiResult<Vec<TmuxKey>> {
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::InvalidKey| {
            precondition(
                format!("the agent's manifest names a key that agtmux cannot press: {error}"),
                "agtmux adapters check FILE",
            )
        };
        name.parse::<TmuxKey>().map_err(bad)
    };
    names.iter().map(key).collect()
}
