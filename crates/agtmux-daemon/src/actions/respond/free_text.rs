//! Answering in words of one's own, in the place that the dialog has for them.

use std::time::Duration;

use agtmux_agents::{Pattern, TextAnswerMethod};
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::super::pane_screen::PaneScreen;
use super::super::sender::{SendMessage, TextSender, without_whitespace};
use super::super::{ActionFailure, ActionPane, guards};
use super::closing::{DialogClosing, wait_until_closed, wait_until_closed_or};
use super::open_dialog::OpenDialog;
use super::{multi_select, single_select};

/// How long the place for words takes at the most to come up, and the words to stand in it.
const READY_TIMEOUT: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// So much of the end of a text is looked for.
const END_CHARS: usize = 24;

pub(super) async fn answer_with_text(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    text: &str,
) -> Result<DialogClosing, ActionFailure> {
    let Some(way) = &open.keys.text else {
        return Err(ActionFailure::precondition("this dialog takes no words", open.accepted_answers()));
    };
    if way.one_line && text.contains('\n') {
        return Err(ActionFailure::precondition("this dialog takes no more than one line", "put it into one line"));
    }
    let option = |label: &Pattern| {
        let missing =
            || ActionFailure::precondition("the place where it takes words is not there", open.accepted_answers());
        open.option_with_label(label).ok_or_else(missing)
    };
    let keys = single_select::parse_keys(&way.keys)?;
    let place = way.at.as_ref().or(way.take.as_ref()).map(option).transpose()?;
    // What is ticked already would go with the words.
    let (open, ticked) = match open.keys.many.is_some() {
        true => multi_select::tick_exactly(scene, open, &[]).await?,
        false => (open.clone(), false),
    };
    let open = &open;
    let placed = match place {
        Some(place) if way.at.is_some() => single_select::move_selection(scene, open, place).await,
        Some(place) => single_select::select_option(scene, open, place).await,
        None => Ok(()),
    };
    placed.map_err(|failure| if ticked { failure.after_typing() } else { failure })?;
    let moved = ticked || place.is_some();
    let pressed = match moved {
        true => single_select::press_keys(scene, open, &keys).await,
        false => single_select::press_answer(scene, open, &keys).await,
    };
    pressed.map_err(|failure| if moved { failure.after_typing() } else { failure })?;
    match way.opens {
        true => type_into_next(scene, open, text).await,
        false => type_into_dialog(scene, open, way, text, !moved && keys.is_empty()).await,
    }
    // Only the very first key can have been refused without anything done.
    .map_err(|failure| if moved || !keys.is_empty() { failure.after_typing() } else { failure })
}

/// Into the dialog itself. Where nothing was done to it, it must be just as it was.
async fn type_into_dialog(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    way: &TextAnswerMethod,
    text: &str,
    untouched: bool,
) -> Result<DialogClosing, ActionFailure> {
    let asked = |look: &PaneScreen| {
        Ok::<_, ActionFailure>(OpenDialog::from_screen(scene, look)?.is_some_and(|seen| seen.is_same_question(open)))
    };
    let same = |look: &PaneScreen| match untouched {
        true => Ok(OpenDialog::from_screen(scene, look)?.is_some_and(|seen| seen.is_unchanged_since(open))),
        false => asked(look),
    };
    let before = poll_screen(scene, |look| {
        let shown = look.screen.inner_text();
        Ok((same(look)? && way.ready.as_ref().is_none_or(|ready| ready.is_match(&shown))).then_some(shown))
    });
    let before = before.await?.ok_or_else(|| state_lost("the place where it takes words did not come up"))?;
    let end = text_end(text);
    let count = |shown: &str| without_whitespace(shown).matches(&end).count();
    let is_still = |look: &PaneScreen| match same(look)? {
        true => Ok(()),
        false => Err(state_lost("it asks something else now; nothing was typed")),
    };
    TextSender::for_pane(scene, None)?.paste_and_wait(text, is_still).await?;
    let shows = |look: &PaneScreen| {
        let shown = look.screen.inner_text();
        let is_folded = shown.matches("[Past").count() > before.matches("[Past").count();
        is_folded || count(&shown) > count(&before)
    };
    let stands = poll_screen(scene, |look| Ok((asked(look)? && shows(look)).then_some(())));
    // Whatever it was typed into, it is not there: an Enter could answer something else.
    let missing = || state_lost("the text was typed and is not seen in the dialog; Enter was not pressed");
    stands.await.map_err(ActionFailure::after_typing)?.ok_or_else(|| missing().after_typing())?;
    if !way.leave.is_empty() {
        leave_text_field(scene, open, way).await.map_err(ActionFailure::after_typing)?;
    }
    // Somebody may have moved the selection on: Enter would take another option.
    let place = way.at.as_ref().or(way.take.as_ref()).and_then(|label| open.option_with_label(label));
    let is_there = |seen: &OpenDialog| seen.is_same_question(open) && seen.selected.is_none_or(|at| Some(at) == place);
    let still = |look: &PaneScreen| match OpenDialog::from_screen(scene, look)?.is_some_and(|seen| is_there(&seen)) {
        true => Ok(()),
        false => Err(state_lost("it asks something else now; Enter was not pressed")),
    };
    let entered = scene.type_if(PaneInput::Keys(&[TmuxKey::enter()]), still).await;
    entered.map_err(ActionFailure::after_typing)?;
    // What is all text looks the same when the next is asked, but for what was typed.
    let all_text = open.dialog.options.is_empty();
    match all_text {
        true => wait_until_closed_or(scene, open, shows).await,
        false => wait_until_closed(scene, open).await,
    }
}

/// Goes from the words to what sends them off: Enter must not be pressed where they stand.
async fn leave_text_field(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    way: &TextAnswerMethod,
) -> Result<(), ActionFailure> {
    single_select::press_keys(scene, open, &single_select::parse_keys(&way.leave)?).await?;
    let left = poll_screen(scene, |look| {
        let seen = OpenDialog::from_screen(scene, look)?.filter(|seen| seen.is_same_question(open));
        // What somebody has ticked meanwhile would go with the words.
        let words_only = |seen: &OpenDialog| seen.ticks.iter().filter(|(_, ticked)| *ticked).count() == 1;
        Ok(seen.filter(|seen| seen.selected.is_none() && words_only(seen)).map(|_| ()))
    });
    left.await?.ok_or_else(|| state_lost("the text was typed, and what sends it off could not be reached"))
}

/// What takes words instead of the dialog.
enum TextTarget {
    Dialog(Box<OpenDialog>),
    InputBox,
}

/// Into what came up instead of it.
async fn type_into_next(scene: &ActionPane<'_>, open: &OpenDialog, text: &str) -> Result<DialogClosing, ActionFailure> {
    let agent_type = scene.agent()?.runtime.agent_type.clone();
    let place = poll_screen(scene, |look| {
        let has_box = || scene.actions.0.discovery.registry().typed_text(agent_type.as_str(), &look.screen).is_some();
        Ok(match OpenDialog::from_screen(scene, look)? {
            Some(seen) if seen.is_same_question(open) => None,
            Some(seen) => Some(TextTarget::Dialog(Box::new(seen))),
            None => has_box().then_some(TextTarget::InputBox),
        })
    });
    match place.await?.ok_or_else(|| state_lost("it was answered, but no place for words came up"))? {
        TextTarget::InputBox => submit_as_prompt(scene, text).await,
        TextTarget::Dialog(next) => match &next.keys.text {
            Some(way) if way.at.is_none() && way.take.is_none() && !way.opens => {
                type_into_dialog(scene, &next, way, text, false).await
            }
            _ => Err(state_lost("it was answered, but it asks something else now that takes no words")),
        },
    }
}

/// As a prompt, once the agent is known to ask nothing any more.
async fn submit_as_prompt(scene: &ActionPane<'_>, text: &str) -> Result<DialogClosing, ActionFailure> {
    let runtime = scene.agent()?.runtime.id.clone();
    let deadline = Instant::now() + READY_TIMEOUT;
    let located = loop {
        let located = scene.actions.0.engine.locate(PaneRef::Runtime(runtime.clone())).await?;
        let state = located.agent.as_ref().map(|living| living.record.state);
        match state {
            Some(State::WaitingApproval | State::WaitingInput) if Instant::now() < deadline => {
                sleep(POLL_INTERVAL).await
            }
            _ => break located,
        }
    };
    let scene = scene.actions.action_pane(located, false)?;
    let message = SendMessage { text: Some(text), keys: &[], enter: true };
    let sent = TextSender::for_pane(&scene, None)?.send(&message).await.map_err(|mut failure| {
        failure.error.message = format!("it was answered, but the words were not sent: {}", failure.error.message);
        failure
    })?;
    Ok(DialogClosing { verified: sent.verified, by: sent.by, next: None, event_ids: sent.event_ids })
}

/// The first look that shows it; none when the time is up.
async fn poll_screen<T>(
    scene: &ActionPane<'_>,
    mut shows: impl FnMut(&PaneScreen) -> Result<Option<T>, ActionFailure>,
) -> Result<Option<T>, ActionFailure> {
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let late = Instant::now() >= deadline;
        if let Some(found) = shows(&scene.capture().await?)? {
            return Ok(Some(found));
        }
        if late {
            return Ok(None);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// What is looked for on the screen: the end of it, for a field may show no more.
fn text_end(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
    let squashed = without_whitespace(last);
    let skipped = squashed.chars().count().saturating_sub(END_CHARS);
    squashed.chars().skip(skipped).collect()
}

fn state_lost(message: &str) -> ActionFailure {
    let error = ApiError::new(ErrorCode::StateChanged, message);
    ActionFailure::refused(error.with_hint(guards::LIST_PANES_HINT))
}
