//! Taking one option.

use std::time::Duration;

use agtmux_agents::OptionKeys;
use agtmux_tmux::{Key, Typing};
use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use super::super::look::Look;
use super::super::{Failure, Scene, guards};
use super::open::Open;

/// A selection is drawn this soon after the key that moved it.
const MOVED_WITHIN: Duration = Duration::from_millis(1500);
const MOST_WALKS: u32 = 4;
/// A dialog that is older takes keys, and one that was drawn this long ago without a change, too.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
const HOLDS_STILL: Duration = Duration::from_millis(300);
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(30);
const OTHER: &str = "it asks something else now; nothing was typed";
/// The numbers that are one key.
pub(super) const ONE_DIGIT: u32 = 9;

pub(super) async fn take(scene: &Scene<'_>, open: &Open, n: u32) -> Result<(), Failure> {
    let Some(way) = open.keys.option else {
        return Err(Failure::precondition("its options cannot be taken by number", open.takes()));
    };
    // Where there is a tenth, a digit may be half a number, or be taken at once. Where words go in, it is a word.
    let is_one_key = open.dialog.options.iter().all(|option| option.n <= ONE_DIGIT) && !open.is_at_words();
    let digit = char::from_digit(n, 10).filter(|_| way == OptionKeys::Digits && is_one_key);
    if let Some(digit) = digit {
        return press_settled(scene, open, &Key::Character(digit)).await;
    }
    go_to(scene, open, n).await?;
    // Somebody may have moved it on meanwhile, or it may be called something else: Enter would take another one.
    let label = open.label(n)?;
    let is_it = |seen: &Open| seen.selected == Some(n) && seen.label(n).is_ok_and(|now| now == label);
    let taken = press_while(scene, open, &Key::enter(), is_it).await;
    taken.map_err(Failure::after_all)
}

/// The keys of one answer. The first is pressed while the dialog is just as it was read; by that it may close, or show the key, but
/// if another one is seen there by then, the next key would be an answer to that one.
pub(super) async fn press_answer(scene: &Scene<'_>, open: &Open, keys: &[Key]) -> Result<(), Failure> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    press_settled(scene, open, first).await?;
    for key in rest {
        pause(scene).await;
        let pressed = press_seeing(scene, key, |seen| seen.is_none_or(|seen| seen.is_untouched(open))).await;
        pressed.map_err(Failure::after_all)?;
    }
    Ok(())
}

/// Keys that choose nothing by themselves, while the same is asked.
pub(super) async fn press_keys(scene: &Scene<'_>, open: &Open, keys: &[Key]) -> Result<(), Failure> {
    for (n, key) in keys.iter().enumerate() {
        let same = |seen: Option<Open>| seen.is_some_and(|seen| seen.asks_the_same(open));
        let pressed = async {
            if n > 0 {
                drawn(scene).await?;
            }
            press_seeing(scene, key, same).await
        };
        pressed.await.map_err(|failure| if n > 0 { failure.after_all() } else { failure })?;
    }
    Ok(())
}

/// After a key, some dialog is there again: it may be in the middle of drawing.
async fn drawn(scene: &Scene<'_>) -> Result<(), Failure> {
    pause(scene).await;
    let deadline = Instant::now() + MOVED_WITHIN;
    while Instant::now() < deadline && Open::seen(scene, &scene.look().await?)?.is_none() {
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

async fn pause(scene: &Scene<'_>) {
    sleep(Duration::from_millis(scene.actions.config().tmux_bridge.sequential_send_delay_ms)).await;
}

async fn press_seeing(scene: &Scene<'_>, key: &Key, allows: impl Fn(Option<Open>) -> bool) -> Result<(), Failure> {
    let check = |look: &Look| match allows(Open::seen(scene, look)?) {
        true => Ok(()),
        false => Err(Failure::refused(guards::changed(OTHER.into()))),
    };
    scene.types_seeing(Typing::Keys(std::slice::from_ref(key)), check).await
}

/// Some agents take no key for a moment after a dialog was drawn, so that nobody answers by chance: one that has just been
/// asked has to hold still first. It must be just the same one then: of another that is asked in the same words the key could take
/// something else. No key is pressed twice: the same may be asked again.
pub(super) async fn press_settled(scene: &Scene<'_>, open: &Open, key: &Key) -> Result<(), Failure> {
    settled(scene).await?;
    press_seeing(scene, key, |seen| seen.is_some_and(|seen| seen.is_untouched(open))).await
}

/// The same into one that we may have changed, where something else must be seen in it then.
pub(super) async fn press_while(
    scene: &Scene<'_>,
    open: &Open,
    key: &Key,
    holds: impl Fn(&Open) -> bool,
) -> Result<(), Failure> {
    settled(scene).await?;
    scene.types_seeing(Typing::Keys(std::slice::from_ref(key)), |look| check(scene, open, look, &holds)).await
}

async fn settled(scene: &Scene<'_>) -> Result<(), Failure> {
    let age = scene.actions.0.clock.now().duration_since(scene.agent()?.record.since);
    let is_new = age < SignedDuration::try_from(SETTLED_WITHIN).unwrap_or_default();
    let begun = Instant::now();
    let (mut look, mut since) = (scene.look().await?, begun);
    while is_new && since.elapsed() < HOLDS_STILL && begun.elapsed() < SETTLED_WITHIN {
        sleep(LOOK_EVERY).await;
        let now = scene.look().await?;
        if now.raw != look.raw {
            (look, since) = (now, Instant::now());
        }
    }
    Ok(())
}

fn check(scene: &Scene<'_>, open: &Open, look: &Look, holds: impl Fn(&Open) -> bool) -> Result<(), Failure> {
    let why = match Open::seen(scene, look)?.filter(|seen| seen.asks_the_same(open)) {
        Some(seen) if holds(&seen) => return Ok(()),
        Some(_) => "somebody else has changed the selection; nothing was taken",
        None => OTHER,
    };
    Err(Failure::refused(guards::changed(why.into())))
}

/// Moves the selection, and returns when it is seen there in the same dialog. Somebody else may be moving it as well: then
/// it is moved again from where it stands.
pub(super) async fn go_to(scene: &Scene<'_>, open: &Open, n: u32) -> Result<(), Failure> {
    let mut seen = open.clone();
    for attempt in 0..MOST_WALKS {
        let walked = walk(scene, &seen, n).await;
        walked.map_err(|failure| if attempt > 0 { failure.after_all() } else { failure })?;
        match stands(scene, open, n).await.map_err(Failure::after_all)? {
            Some(now) if now.selected == Some(n) => return Ok(()),
            Some(now) => seen = now,
            None => break,
        }
    }
    let error = guards::changed(format!("option {n} could not be selected; no option was taken"));
    Err(Failure::refused(error).after_all())
}

/// Presses the keys that lead from where the selection is seen to this option.
async fn walk(scene: &Scene<'_>, open: &Open, n: u32) -> Result<(), Failure> {
    let position = |n: u32| open.dialog.options.iter().position(|option| option.n == n);
    let Some((from, to)) = open.selected.and_then(position).zip(position(n)) else {
        return Err(Failure::precondition("it does not show which option is selected", open.takes()));
    };
    let (back, forth) = match open.keys.option {
        Some(OptionKeys::Right) => ("Left", "Right"),
        _ => ("Up", "Down"),
    };
    let key = Key::Named(if to < from { back } else { forth }.into());
    press_keys(scene, open, &vec![key; to.abs_diff(from)]).await
}

/// The dialog once the selection is there, or as it stands when it does not come; none when it is another one.
pub(super) async fn stands(scene: &Scene<'_>, open: &Open, n: u32) -> Result<Option<Open>, Failure> {
    let deadline = Instant::now() + MOVED_WITHIN;
    loop {
        let late = Instant::now() >= deadline;
        let seen = Open::seen(scene, &scene.look().await?)?.filter(|seen| seen.asks_the_same(open));
        let arrived = seen.as_ref().is_some_and(|seen| seen.selected == Some(n));
        // It may be in the middle of drawing.
        if arrived || late {
            return Ok(seen);
        }
        sleep(LOOK_EVERY).await;
    }
}

pub(super) fn parsed(names: &[String]) -> Result<Vec<Key>, Failure> {
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::BadKey| {
            Failure::precondition(format!("its manifest has a key that is none: {error}"), "agtmux adapters check FILE")
        };
        name.parse::<Key>().map_err(bad)
    };
    names.iter().map(key).collect()
}
