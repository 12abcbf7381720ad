//! What a request to answer says, read strictly.

use agtmux_api::wire::{Answer, BridgeAnswers, BridgeChoice, BridgeMode, BridgeRespond};
use axum::body::{Body, to_bytes};
use serde::Deserialize;
use serde_json::Value;

use super::fault::Fault;

const LARGEST_BODY: usize = 5 << 20;
/// No dialog offers as many options, or asks as many questions.
const MOST: u32 = 1000;

pub(super) async fn read(body: Body) -> Result<BridgeRespond, Fault> {
    let hint = "send JSON such as {\"mode\": \"text\", \"text\": \"yes\"}";
    let bytes =
        to_bytes(body, LARGEST_BODY).await.map_err(|_| Fault::bad("missing_text", "the body is too large", hint))?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|_| Fault::bad("missing_text", "the body is no JSON", hint))?;
    if !value.is_object() {
        return Err(Fault::bad("missing_text", "the body is not a JSON object", hint));
    }
    let is_bad = |field: &str, reads: fn(&Value) -> bool| value.get(field).is_some_and(|given| !reads(given));
    if is_bad("mode", |mode| BridgeMode::deserialize(mode).is_ok()) {
        return Err(Fault::bad("invalid_mode", "there is no such mode", "use text, select, other or multi_select"));
    }
    if is_bad("answers", |answers| Option::<BridgeAnswers>::deserialize(answers).is_ok()) {
        return Err(invalid_answers());
    }
    BridgeRespond::deserialize(&value).map_err(|error| {
        let error_type = match is_bad("option_index", |index| Option::<u32>::deserialize(index).is_ok()) {
            true => "invalid_option_index",
            false => "missing_text",
        };
        Fault::bad(error_type, &format!("the request cannot be read: {error}"), hint)
    })
}

/// One for each question, in the order in which they are asked.
pub(super) fn answers(request: &BridgeRespond) -> Result<Vec<Answer>, Fault> {
    let missing_text =
        || Fault::bad("missing_text", "there is no text", "send a text, or mode select with option_index");
    let no_index = || {
        let message = "option_index is missing or no index";
        Fault::bad("invalid_option_index", message, "count from 0 as in the dialog")
    };
    match request.mode {
        BridgeMode::Text | BridgeMode::Other => {
            words(request.text.as_deref()).map(|answer| vec![answer]).ok_or_else(missing_text)
        }
        BridgeMode::Select => number(request.option_index).map(|n| vec![Answer::Option(n)]).ok_or_else(no_index),
        BridgeMode::MultiSelect => {
            let answers = match request.answers.as_ref() {
                Some(BridgeAnswers::Indices(indices)) => options(indices).map(|answer| vec![answer]),
                Some(BridgeAnswers::Questions(choices)) => choices.iter().map(chosen).collect(),
                None => None,
            };
            answers.filter(|answers| !answers.is_empty()).ok_or_else(invalid_answers)
        }
    }
}

/// Just one of the three says what is chosen.
fn chosen(choice: &BridgeChoice) -> Option<Answer> {
    match choice {
        BridgeChoice { option_index: Some(index), option_indices: None, text: None } => {
            number(Some(*index)).map(Answer::Option)
        }
        BridgeChoice { option_index: None, option_indices: Some(indices), text: None } => options(indices),
        BridgeChoice { option_index: None, option_indices: None, text } => words(text.as_deref()),
        _ => None,
    }
}

fn words(text: Option<&str>) -> Option<Answer> {
    text.filter(|text| !text.trim().is_empty()).map(|text| Answer::Text(text.to_owned()))
}

fn options(indices: &[u32]) -> Option<Answer> {
    let numbers: Option<Vec<u32>> = indices.iter().map(|index| number(Some(*index))).collect();
    numbers.filter(|numbers| !numbers.is_empty()).map(Answer::Options)
}

/// They count from 0, the screen from 1.
fn number(index: Option<u32>) -> Option<u32> {
    index.filter(|index| *index < MOST).map(|index| index + 1)
}

fn invalid_answers() -> Fault {
    let hint = "send indices that count from 0, such as {\"answers\": [0, 2]}, or for each question one of \
                {\"option_index\": 0}, {\"option_indices\": [0, 2]} and {\"text\": \"green\"}";
    Fault::bad("invalid_answers", "answers is missing or chooses nothing", hint)
}
