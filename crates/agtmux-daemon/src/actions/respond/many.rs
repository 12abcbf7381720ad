//! Taking several options, and no others. Each is ticked by its number, and seen to be ticked before the next.

use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_tmux::Key;
use tokio::time::{Instant, sleep};

use super::super::{Failure, Scene, guards};
use super::closing::{Closing, closed};
use super::open::Open;
use super::options::{self, LOOK_EVERY, ONE_DIGIT, go_to, press_while};

/// A tick is drawn this soon after its key.
const TICKED_WITHIN: Duration = Duration::from_millis(1500);

/// Ticks these, unticks the others, and sends it off.
pub(super) async fn take(scene: &Scene<'_>, open: &Open, numbers: &[u32]) -> Result<(String, Closing), Failure> {
    let labels = check(open, numbers)?;
    let submit = options::parsed(open.keys.many.as_deref().unwrap_or_default())?;
    let (seen, pressed) = tick(scene, open, numbers).await?;
    // What sends it off does so only from an ordinary option.
    let aside =
        leave_words(scene, &seen).await.map_err(|failure| if pressed { failure.after_all() } else { failure })?;
    for (n, key) in submit.iter().enumerate() {
        let is_first = n == 0 && !pressed && !aside;
        // Somebody else may have ticked something since.
        let done = press_while(scene, open, key, |seen| n > 0 || seen.has_ticked(numbers)).await;
        done.map_err(|failure| if is_first { failure } else { failure.after_all() })?;
    }
    Ok((labels.join(", "), closed(scene, open).await?))
}

/// What they are called, if it offers all of them for a tick.
fn check(open: &Open, numbers: &[u32]) -> Result<Vec<String>, Failure> {
    let wrong =
        |message: String| Failure::refused(ApiError::new(ErrorCode::BadRequest, message).with_hint(open.takes()));
    if open.keys.many.is_none() || open.ticks.is_empty() {
        return Err(wrong("it takes one answer, not several".into()));
    }
    if numbers.is_empty() {
        return Err(wrong("no option is named".into()));
    }
    if open.dialog.options.iter().any(|option| option.n > ONE_DIGIT) {
        return Err(wrong(format!("more than {ONE_DIGIT} options cannot be ticked by their numbers")));
    }
    let label = |n: &u32| {
        let label = open.label(*n)?;
        let can_be = open.ticks.iter().any(|(ticked, _)| ticked == n) && !open.is_for_words(*n);
        if can_be { Ok(label) } else { Err(wrong(format!("option {n} cannot be ticked"))) }
    };
    numbers.iter().map(label).collect()
}

/// Returns what is seen once just these are ticked, and whether anything was pressed for it.
pub(super) async fn tick(scene: &Scene<'_>, open: &Open, wanted: &[u32]) -> Result<(Open, bool), Failure> {
    let (mut seen, mut pressed) = (open.clone(), false);
    // Somebody else may be ticking as well: once around is enough.
    for _ in 0..=open.ticks.len() {
        let wrong = |(n, ticked): &&(u32, bool)| wanted.contains(n) != *ticked;
        let Some(&(n, _)) = seen.ticks.iter().find(wrong) else { return Ok((seen, pressed)) };
        let done = async {
            // There a digit would be one of the words.
            leave_words(scene, &seen).await?;
            let digit = char::from_digit(n, 10).unwrap_or_default();
            // Ticks and words may have changed since, but not what the number stands for.
            let label = open.label(n)?;
            let is_it = |seen: &Open| seen.label(n).is_ok_and(|now| now == label);
            press_while(scene, open, &Key::Character(digit), is_it).await
        };
        done.await.map_err(|failure| if pressed { failure.after_all() } else { failure })?;
        pressed = true;
        seen = ticked(scene, open, n, wanted.contains(&n)).await.map_err(Failure::after_all)?;
    }
    Err(not_so("the options could not be ticked").after_all())
}

/// The dialog once this option is ticked, or no longer.
async fn ticked(scene: &Scene<'_>, open: &Open, n: u32, wanted: bool) -> Result<Open, Failure> {
    let deadline = Instant::now() + TICKED_WITHIN;
    loop {
        let late = Instant::now() >= deadline;
        let seen = Open::seen(scene, &scene.look().await?)?.filter(|seen| seen.asks_the_same(open));
        match seen {
            Some(seen) if seen.ticks.contains(&(n, wanted)) => return Ok(seen),
            _ if late => return Err(not_so(&format!("option {n} could not be ticked"))),
            _ => sleep(LOOK_EVERY).await,
        }
    }
}

/// Moves the selection to an ordinary option, if it is on none. Tells whether it was moved.
async fn leave_words(scene: &Scene<'_>, open: &Open) -> Result<bool, Failure> {
    let ordinary = open.ticks.iter().map(|(n, _)| *n).find(|n| !open.is_for_words(*n));
    let is_ordinary = |n: u32| open.ticks.iter().any(|(ticked, _)| *ticked == n) && !open.is_for_words(n);
    let Some(ordinary) = ordinary.filter(|_| !open.selected.is_some_and(is_ordinary)) else { return Ok(false) };
    let mut seen = open.clone();
    if seen.selected.is_none() {
        // What sends it off comes right below the last that can be ticked.
        press_while(scene, open, &Key::Named("Up".into()), |_| true).await?;
        let last = open.ticks.last().map(|(n, _)| *n);
        seen = options::stands(scene, open, last.unwrap_or(ordinary)).await?.unwrap_or(seen);
    }
    go_to(scene, &seen, ordinary).await?;
    Ok(true)
}

fn not_so(message: &str) -> Failure {
    Failure::refused(guards::changed(format!("{message}; nothing was submitted")))
}
