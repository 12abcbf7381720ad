//! Takes the results of requests.

use std::collections::VecDeque;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{KillReport, KillSignal, RespondReport, SendReport, Verification};
use jiff::Timestamp;

use super::{RequestFailure, TuiEffect, TuiOutcome, picker, preview, tasks, typing};
use crate::model::{AgentKey, AgentTarget, ReaderSubject, TuiModel, TuiNotice, TuiOverlay};

pub(super) fn done(model: &mut TuiModel, outcome: TuiOutcome, now: Timestamp) -> Vec<TuiEffect> {
    match outcome {
        TuiOutcome::Responded { key, result } => responded(model, &key, result),
        TuiOutcome::Sent { agent, result } => model.notice = Some(sent(model, &agent, result)),
        TuiOutcome::Typed { key, result } => return typing::typed(model, &key, result, now),
        TuiOutcome::MarkedSeen { agent, result } => {
            model.notice = Some(match result {
                Ok(()) => TuiNotice::info(format!("{} is marked as seen", agent.label)),
                Err(why) => why.notice("not marked"),
            });
        }
        TuiOutcome::Tasks(result) => match result {
            Ok(events) => tasks::receive(model, &events, now),
            Err(why) => model.notice = Some(why.notice("the tasks were not read")),
        },
        TuiOutcome::Targets(result) => match result {
            Ok(targets) => picker::receive_targets(model, &targets, now),
            Err(why) => model.notice = Some(why.notice("the targets were not read")),
        },
        TuiOutcome::Connected { name, result } => {
            model.notice = Some(match result {
                Ok(target) => TuiNotice::info(format!("{name}: {}", target.status.health)),
                Err(why) => why.notice(&format!("not connected to {name}")),
            });
            return vec![TuiEffect::ReadTargets];
        }
        TuiOutcome::Killed { agent, result } => {
            model.notice = Some(result.map_or_else(|why| why.notice("not stopped"), |report| killed(&agent, &report)));
        }
        TuiOutcome::Resumed { agent, result } => {
            model.notice = Some(match result {
                Ok(report) if report.resumed_runtime_id.is_some() => {
                    TuiNotice::info(format!("resumed {}", agent.label))
                }
                Ok(report) => TuiNotice::error(format!("the agent did not start: {}", report.command), None),
                Err(why) => why.notice("not resumed"),
            });
        }
        TuiOutcome::Read { key, subject, result } => read(model, key.as_ref(), subject, result),
        TuiOutcome::Preview { key, has_history, result } => {
            return preview::received(model, &key, has_history, result, now);
        }
        TuiOutcome::Attached { agent, result: Err(why) } => {
            model.notice = Some(TuiNotice::error(format!("not attached to {}: {why}", agent.label), None));
        }
        TuiOutcome::Ran { name, result: Err(why) } => {
            model.notice = Some(TuiNotice::error(format!("'{name}' failed: {why}"), None));
        }
        TuiOutcome::Attached { result: Ok(()), .. } | TuiOutcome::Ran { result: Ok(()), .. } => {}
    }
    Vec::new()
}

/// After an answer, selects the next waiting agent, unless the person has selected another one since.
fn responded(model: &mut TuiModel, key: &AgentKey, result: Result<RespondReport, RequestFailure>) {
    if model.answering.as_ref() == Some(key) {
        model.answering = None;
    }
    let report = match result {
        Ok(report) => report,
        Err(why) => return model.notice = Some(not_answered(why)),
    };
    if report.verified == Verification::Failed {
        let hint = Some("Enter attaches".to_owned());
        return model.notice = Some(TuiNotice::error("the keys were typed, but the dialog is still open", hint));
    }
    let others = model.list.all().iter().filter(|row| row.is_waiting() && row.key != *key).count();
    let left = others + usize::from(report.asks_now.is_some());
    model.notice = Some(TuiNotice::info(format!("answered {} · {left} left", report.answered)));
    if model.list.selected().is_some_and(|row| row.key == *key) {
        model.list.step(true, true, |row| row.is_waiting() && row.key != *key);
    }
}

fn not_answered(why: RequestFailure) -> TuiNotice {
    match why.code {
        Some(ErrorCode::StateChanged) => {
            TuiNotice::error("the dialog changed, so nothing was typed; read the new one", None)
        }
        Some(ErrorCode::SubjectTruncated) => TuiNotice::error(
            "only a part of what you would approve is visible, so nothing was typed",
            Some("Enter attaches: read it there".to_owned()),
        ),
        _ => why.notice("not answered"),
    }
}

fn sent(model: &mut TuiModel, agent: &AgentTarget, result: Result<SendReport, RequestFailure>) -> TuiNotice {
    let text = model.texts_in_flight.get_mut(&agent.key).and_then(VecDeque::pop_front);
    let is_sent = result.as_ref().is_ok_and(|report| report.verified != Verification::Failed);
    if let Some(text) = text.filter(|_| !is_sent) {
        // The person may have begun another text meanwhile.
        model.drafts.entry(agent.key.clone()).or_insert(text);
    }
    let draft = Some("s opens your text again".to_owned());
    let report = match result {
        Ok(report) => report,
        // A second text would be wrong if the first one has arrived.
        Err(why) if why.may_have_acted => {
            let hint = why.hint.clone().or_else(|| Some("o shows the output".to_owned()));
            return TuiNotice { hint, ..why.notice("not sent") };
        }
        Err(why) => return TuiNotice { hint: draft, ..why.notice("not sent") },
    };
    match report.verified {
        Verification::Failed => TuiNotice::error("not submitted: the text is still in the input box", draft),
        verified => {
            let doubt =
                if verified == Verification::Inconclusive { "; could not verify that it was submitted" } else { "" };
            TuiNotice::info(format!("sent to {}{doubt}", agent.label))
        }
    }
}

fn killed(agent: &AgentTarget, report: &KillReport) -> TuiNotice {
    TuiNotice::info(match (report.ended, report.signal) {
        (true, _) => format!("{} has ended", agent.label),
        (false, KillSignal::Int) => format!("interrupted {} with Ctrl-C", agent.label),
        (false, signal) => format!("sent {signal} to {}; it has not ended yet", agent.label),
    })
}

fn read(
    model: &mut TuiModel,
    key: Option<&AgentKey>,
    subject: ReaderSubject,
    result: Result<Vec<String>, RequestFailure>,
) {
    let height = model.drawn.reader_height;
    let Some(TuiOverlay::Reader(reader)) = &mut model.overlay else { return };
    if reader.key.as_ref() != key || reader.subject != subject {
        return;
    }
    let failed = |why: RequestFailure| {
        let hint = why.hint.map(|hint| format!("try: {hint}"));
        [Some(why.message), hint].into_iter().flatten().collect()
    };
    reader.receive(result.unwrap_or_else(failed), height.max(1));
}
