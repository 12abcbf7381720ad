//! Answering in words of one's own, in the place that the dialog has for them.

use std::time::Duration;

use agtmux_agents::{Pattern, TextWay};
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::refs::Ref;
use agtmux_core::state::State;
use agtmux_tmux::{Key, Typing};
use tokio::time::{Instant, sleep};

use super::super::look::Look;
use super::super::sender::{Message, Sender, squashed};
use super::super::{Failure, Scene, guards};
use super::closing::{Closing, closed, closed_unless};
use super::open::Open;
use super::{many, options};

/// How long the place for words takes at the most to come up, and the words to stand in it.
const READY_WITHIN: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// So much of the end of a text is looked for.
const END: usize = 24;

pub(super) async fn say(scene: &Scene<'_>, open: &Open, text: &str) -> Result<Closing, Failure> {
    let Some(way) = &open.keys.text else {
        return Err(Failure::precondition("this dialog takes no words", open.takes()));
    };
    if way.one_line && text.contains('\n') {
        return Err(Failure::precondition("this dialog takes no more than one line", "put it into one line"));
    }
    let option = |label: &Pattern| {
        let missing = || Failure::precondition("the place where it takes words is not there", open.takes());
        open.option_like(label).ok_or_else(missing)
    };
    let keys = options::parsed(&way.keys)?;
    let place = way.at.as_ref().or(way.take.as_ref()).map(option).transpose()?;
    // What is ticked already would go with the words.
    let (open, ticked) = match open.keys.many.is_some() {
        true => many::tick(scene, open, &[]).await?,
        false => (open.clone(), false),
    };
    let open = &open;
    let placed = match place {
        Some(place) if way.at.is_some() => options::go_to(scene, open, place).await,
        Some(place) => options::take(scene, open, place).await,
        None => Ok(()),
    };
    placed.map_err(|failure| if ticked { failure.after_all() } else { failure })?;
    let moved = ticked || place.is_some();
    let pressed = match moved {
        true => options::press_keys(scene, open, &keys).await,
        false => options::press_answer(scene, open, &keys).await,
    };
    pressed.map_err(|failure| if moved { failure.after_all() } else { failure })?;
    match way.opens {
        true => elsewhere(scene, open, text).await,
        false => here(scene, open, way, text, !moved && keys.is_empty()).await,
    }
    // Only the very first key can have been refused without anything done.
    .map_err(|failure| if moved || !keys.is_empty() { failure.after_all() } else { failure })
}

/// Into the dialog itself. Where nothing was done to it, it must be just as it was.
async fn here(scene: &Scene<'_>, open: &Open, way: &TextWay, text: &str, untouched: bool) -> Result<Closing, Failure> {
    let asked = |look: &Look| Ok::<_, Failure>(Open::seen(scene, look)?.is_some_and(|seen| seen.asks_the_same(open)));
    let same = |look: &Look| match untouched {
        true => Ok(Open::seen(scene, look)?.is_some_and(|seen| seen.is_untouched(open))),
        false => asked(look),
    };
    let before = until(scene, |look| {
        let shown = look.screen.inner_text();
        Ok((same(look)? && way.ready.as_ref().is_none_or(|ready| ready.is_match(&shown))).then_some(shown))
    });
    let before = before.await?.ok_or_else(|| lost("the place where it takes words did not come up"))?;
    let end = end_of(text);
    let count = |shown: &str| squashed(shown).matches(&end).count();
    let is_still = |look: &Look| match same(look)? {
        true => Ok(()),
        false => Err(lost("it asks something else now; nothing was typed")),
    };
    Sender::of(scene, None)?.type_text(text, is_still).await?;
    let shows = |look: &Look| {
        let shown = look.screen.inner_text();
        let is_folded = shown.matches("[Past").count() > before.matches("[Past").count();
        is_folded || count(&shown) > count(&before)
    };
    let stands = until(scene, |look| Ok((asked(look)? && shows(look)).then_some(())));
    // Whatever it was typed into, it is not there: an Enter could answer something else.
    let missing = || lost("the text was typed and is not seen in the dialog; Enter was not pressed");
    stands.await.map_err(Failure::after_all)?.ok_or_else(|| missing().after_all())?;
    if !way.leave.is_empty() {
        leave(scene, open, way).await.map_err(Failure::after_all)?;
    }
    // Somebody may have moved the selection on: Enter would take another option.
    let place = way.at.as_ref().or(way.take.as_ref()).and_then(|label| open.option_like(label));
    let is_there = |seen: &Open| seen.asks_the_same(open) && seen.selected.is_none_or(|at| Some(at) == place);
    let still = |look: &Look| match Open::seen(scene, look)?.is_some_and(|seen| is_there(&seen)) {
        true => Ok(()),
        false => Err(lost("it asks something else now; Enter was not pressed")),
    };
    let entered = scene.types_seeing(Typing::Keys(&[Key::enter()]), still).await;
    entered.map_err(Failure::after_all)?;
    // What is all text looks the same when the next is asked, but for what was typed.
    let all_text = open.dialog.options.is_empty();
    match all_text {
        true => closed_unless(scene, open, shows).await,
        false => closed(scene, open).await,
    }
}

/// Goes from the words to what sends them off: Enter must not be pressed where they stand.
async fn leave(scene: &Scene<'_>, open: &Open, way: &TextWay) -> Result<(), Failure> {
    options::press_keys(scene, open, &options::parsed(&way.leave)?).await?;
    let left = until(scene, |look| {
        let seen = Open::seen(scene, look)?.filter(|seen| seen.asks_the_same(open));
        // What somebody has ticked meanwhile would go with the words.
        let words_only = |seen: &Open| seen.ticks.iter().filter(|(_, ticked)| *ticked).count() == 1;
        Ok(seen.filter(|seen| seen.selected.is_none() && words_only(seen)).map(|_| ()))
    });
    left.await?.ok_or_else(|| lost("the text was typed, and what sends it off could not be reached"))
}

/// What takes words instead of the dialog.
enum Place {
    Dialog(Box<Open>),
    InputBox,
}

/// Into what came up instead of it.
async fn elsewhere(scene: &Scene<'_>, open: &Open, text: &str) -> Result<Closing, Failure> {
    let agent_type = scene.agent()?.runtime.agent_type.clone();
    let place = until(scene, |look| {
        let has_box = || scene.actions.0.discovery.registry().typed(agent_type.as_str(), &look.screen).is_some();
        Ok(match Open::seen(scene, look)? {
            Some(seen) if seen.asks_the_same(open) => None,
            Some(seen) => Some(Place::Dialog(Box::new(seen))),
            None => has_box().then_some(Place::InputBox),
        })
    });
    match place.await?.ok_or_else(|| lost("it was answered, but no place for words came up"))? {
        Place::InputBox => submit(scene, text).await,
        Place::Dialog(next) => match &next.keys.text {
            Some(way) if way.at.is_none() && way.take.is_none() && !way.opens => {
                here(scene, &next, way, text, false).await
            }
            _ => Err(lost("it was answered, but it asks something else now that takes no words")),
        },
    }
}

/// As a prompt, once the agent is known to ask nothing any more.
async fn submit(scene: &Scene<'_>, text: &str) -> Result<Closing, Failure> {
    let runtime = scene.agent()?.runtime.id.clone();
    let deadline = Instant::now() + READY_WITHIN;
    let located = loop {
        let located = scene.actions.0.engine.locate(Ref::Runtime(runtime.clone())).await?;
        let state = located.living.as_ref().map(|living| living.record.state);
        match state {
            Some(State::WaitingApproval | State::WaitingInput) if Instant::now() < deadline => sleep(LOOK_EVERY).await,
            _ => break located,
        }
    };
    let scene = scene.actions.scene(located, false)?;
    let message = Message { text: Some(text), keys: &[], enter: true };
    let sent = Sender::of(&scene, None)?.send(&message).await.map_err(|mut failure| {
        failure.error.message = format!("it was answered, but the words were not sent: {}", failure.error.message);
        failure
    })?;
    Ok(Closing { verified: sent.verified, by: sent.by, next: None, event_ids: sent.event_ids })
}

/// The first look that shows it; none when the time is up.
async fn until<T>(
    scene: &Scene<'_>,
    mut shows: impl FnMut(&Look) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        let late = Instant::now() >= deadline;
        if let Some(found) = shows(&scene.look().await?)? {
            return Ok(Some(found));
        }
        if late {
            return Ok(None);
        }
        sleep(LOOK_EVERY).await;
    }
}

/// What is looked for on the screen: the end of it, for a field may show no more.
fn end_of(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
    let squashed = squashed(last);
    let skipped = squashed.chars().count().saturating_sub(END);
    squashed.chars().skip(skipped).collect()
}

fn lost(message: &str) -> Failure {
    let error = ApiError::new(ErrorCode::StateChanged, message);
    Failure::refused(error.with_hint(guards::LOOK_AGAIN))
}
