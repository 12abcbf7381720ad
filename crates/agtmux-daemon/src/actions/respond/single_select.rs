//! Taking one option.

use std::time::Duration;

use agtmux_agents::OptionKeys;
use agtmux_tmux::{PaneInput, TmuxKey};
use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use super::super::pane_screen::PaneScreen;
use super::super::{ActionFailure, ActionPane, guards};
use super::open_dialog::OpenDialog;

/// A selection is drawn this soon after the key that moved it.
const MOVE_TIMEOUT: Duration = Duration::from_millis(1500);
const MAX_MOVES: u32 = 4;
/// A dialog that is older takes keys, and one that was drawn this long ago without a change, too.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
const STABLE_FOR: Duration = Duration::from_millis(300);
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(30);
const DIALOG_CHANGED: &str = "it asks something else now; nothing was typed";
/// The numbers that are one key.
pub(super) const MAX_DIGIT_OPTION: u32 = 9;

pub(super) async fn select_option(scene: &ActionPane<'_>, open: &OpenDialog, n: u32) -> Result<(), ActionFailure> {
    let Some(way) = open.keys.option else {
        return Err(ActionFailure::precondition("its options cannot be taken by number", open.accepted_answers()));
    };
    // Where there is a tenth, a digit may be half a number, or be taken at once. Where words go in, it is a word.
    let is_one_key =
        open.dialog.options.iter().all(|option| option.n <= MAX_DIGIT_OPTION) && !open.is_text_option_selected();
    let digit = char::from_digit(n, 10).filter(|_| way == OptionKeys::Digits && is_one_key);
    if let Some(digit) = digit {
        return press_settled(scene, open, &TmuxKey::Character(digit)).await;
    }
    move_selection(scene, open, n).await?;
    // Somebody may have moved it on meanwhile, or it may be called something else: Enter would take another one.
    let label = open.label(n)?;
    let is_it = |seen: &OpenDialog| seen.selected == Some(n) && seen.label(n).is_ok_and(|now| now == label);
    let taken = press_while(scene, open, &TmuxKey::enter(), is_it).await;
    taken.map_err(ActionFailure::after_typing)
}

/// The keys of one answer. The first is pressed while the dialog is just as it was read; by that it may close, or show the key, but
/// if another one is seen there by then, the next key would be an answer to that one.
pub(super) async fn press_answer(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    keys: &[TmuxKey],
) -> Result<(), ActionFailure> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    press_settled(scene, open, first).await?;
    for key in rest {
        pause(scene).await;
        let pressed = press_if(scene, key, |seen| seen.is_none_or(|seen| seen.is_unchanged_since(open))).await;
        pressed.map_err(ActionFailure::after_typing)?;
    }
    Ok(())
}

/// Keys that choose nothing by themselves, while the same is asked.
pub(super) async fn press_keys(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    keys: &[TmuxKey],
) -> Result<(), ActionFailure> {
    for (n, key) in keys.iter().enumerate() {
        let same = |seen: Option<OpenDialog>| seen.is_some_and(|seen| seen.is_same_question(open));
        let pressed = async {
            if n > 0 {
                wait_until_drawn(scene).await?;
            }
            press_if(scene, key, same).await
        };
        pressed.await.map_err(|failure| if n > 0 { failure.after_typing() } else { failure })?;
    }
    Ok(())
}

/// After a key, some dialog is there again: it may be in the middle of drawing.
async fn wait_until_drawn(scene: &ActionPane<'_>) -> Result<(), ActionFailure> {
    pause(scene).await;
    let deadline = Instant::now() + MOVE_TIMEOUT;
    while Instant::now() < deadline && OpenDialog::from_screen(scene, &scene.capture().await?)?.is_none() {
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn pause(scene: &ActionPane<'_>) {
    sleep(Duration::from_millis(scene.actions.config().tmux_bridge.sequential_send_delay_ms)).await;
}

async fn press_if(
    scene: &ActionPane<'_>,
    key: &TmuxKey,
    allows: impl Fn(Option<OpenDialog>) -> bool,
) -> Result<(), ActionFailure> {
    let check = |look: &PaneScreen| match allows(OpenDialog::from_screen(scene, look)?) {
        true => Ok(()),
        false => Err(ActionFailure::refused(guards::state_changed(DIALOG_CHANGED.into()))),
    };
    scene.type_if(PaneInput::Keys(std::slice::from_ref(key)), check).await
}

/// Some agents take no key for a moment after a dialog was drawn, so that nobody answers by chance: one that has just been
/// asked has to hold still first. It must be just the same one then: of another that is asked in the same words the key could take
/// something else. No key is pressed twice: the same may be asked again.
pub(super) async fn press_settled(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    key: &TmuxKey,
) -> Result<(), ActionFailure> {
    wait_until_settled(scene).await?;
    press_if(scene, key, |seen| seen.is_some_and(|seen| seen.is_unchanged_since(open))).await
}

/// The same into one that we may have changed, where something else must be seen in it then.
pub(super) async fn press_while(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    key: &TmuxKey,
    holds: impl Fn(&OpenDialog) -> bool,
) -> Result<(), ActionFailure> {
    wait_until_settled(scene).await?;
    scene.type_if(PaneInput::Keys(std::slice::from_ref(key)), |look| check_dialog(scene, open, look, &holds)).await
}

async fn wait_until_settled(scene: &ActionPane<'_>) -> Result<(), ActionFailure> {
    let age = scene.actions.0.clock.now().duration_since(scene.agent()?.record.since);
    let is_new = age < SignedDuration::try_from(SETTLE_TIMEOUT).unwrap_or_default();
    let begun = Instant::now();
    let (mut look, mut since) = (scene.capture().await?, begun);
    while is_new && since.elapsed() < STABLE_FOR && begun.elapsed() < SETTLE_TIMEOUT {
        sleep(POLL_INTERVAL).await;
        let now = scene.capture().await?;
        if now.raw != look.raw {
            (look, since) = (now, Instant::now());
        }
    }
    Ok(())
}

fn check_dialog(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    look: &PaneScreen,
    holds: impl Fn(&OpenDialog) -> bool,
) -> Result<(), ActionFailure> {
    let why = match OpenDialog::from_screen(scene, look)?.filter(|seen| seen.is_same_question(open)) {
        Some(seen) if holds(&seen) => return Ok(()),
        Some(_) => "somebody else has changed the selection; nothing was taken",
        None => DIALOG_CHANGED,
    };
    Err(ActionFailure::refused(guards::state_changed(why.into())))
}

/// Moves the selection, and returns when it is seen there in the same dialog. Somebody else may be moving it as well: then
/// it is moved again from where it stands.
pub(super) async fn move_selection(scene: &ActionPane<'_>, open: &OpenDialog, n: u32) -> Result<(), ActionFailure> {
    let mut seen = open.clone();
    for attempt in 0..MAX_MOVES {
        let walked = press_arrows(scene, &seen, n).await;
        walked.map_err(|failure| if attempt > 0 { failure.after_typing() } else { failure })?;
        match wait_for_selection(scene, open, n).await.map_err(ActionFailure::after_typing)? {
            Some(now) if now.selected == Some(n) => return Ok(()),
            Some(now) => seen = now,
            None => break,
        }
    }
    let error = guards::state_changed(format!("option {n} could not be selected; no option was taken"));
    Err(ActionFailure::refused(error).after_typing())
}

/// Presses the keys that lead from where the selection is seen to this option.
async fn press_arrows(scene: &ActionPane<'_>, open: &OpenDialog, n: u32) -> Result<(), ActionFailure> {
    let position = |n: u32| open.dialog.options.iter().position(|option| option.n == n);
    let Some((from, to)) = open.selected.and_then(position).zip(position(n)) else {
        return Err(ActionFailure::precondition("it does not show which option is selected", open.accepted_answers()));
    };
    let (back, forth) = match open.keys.option {
        Some(OptionKeys::Right) => ("Left", "Right"),
        _ => ("Up", "Down"),
    };
    let key = TmuxKey::Named(if to < from { back } else { forth }.into());
    press_keys(scene, open, &vec![key; to.abs_diff(from)]).await
}

/// The dialog once the selection is there, or as it stands when it does not come; none when it is another one.
pub(super) async fn wait_for_selection(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    n: u32,
) -> Result<Option<OpenDialog>, ActionFailure> {
    let deadline = Instant::now() + MOVE_TIMEOUT;
    loop {
        let late = Instant::now() >= deadline;
        let seen = OpenDialog::from_screen(scene, &scene.capture().await?)?.filter(|seen| seen.is_same_question(open));
        let arrived = seen.as_ref().is_some_and(|seen| seen.selected == Some(n));
        // It may be in the middle of drawing.
        if arrived || late {
            return Ok(seen);
        }
        sleep(POLL_INTERVAL).await;
    }
}

pub(super) fn parse_keys(names: &[String]) -> Result<Vec<TmuxKey>, ActionFailure> {
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::InvalidKey| {
            ActionFailure::precondition(
                format!("its manifest has a key that is none: {error}"),
                "agtmux adapters check FILE",
            )
        };
        name.parse::<TmuxKey>().map_err(bad)
    };
    names.iter().map(key).collect()
}
