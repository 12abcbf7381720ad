//! Reads the body of a respond request.

use agtmux_api::wire::{BridgeAnswers, BridgeChoice, BridgeMode, BridgeRespondRequest, DialogAnswer};
use serde::Deserialize;
use serde_json::Value;

use super::failure::BridgeFailure;
use crate::serve::extract::shorten;

/// An option index must be smaller than this. No dialog offers as many options.
const MAX_OPTIONS: u32 = 1000;

pub(super) fn read(value: &Value) -> Result<BridgeRespondRequest, BridgeFailure> {
    let is_bad = |field: &str, reads: fn(&Value) -> bool| value.get(field).is_some_and(|given| !reads(given));
    if is_bad("mode", |mode| BridgeMode::deserialize(mode).is_ok()) {
        return Err(BridgeFailure::bad_request(
            "invalid_mode",
            "unknown mode",
            "use the mode 'text', 'select', 'other' or 'multi_select'",
        ));
    }
    if is_bad("answers", |answers| Option::<BridgeAnswers>::deserialize(answers).is_ok()) {
        return Err(invalid_answers());
    }
    BridgeRespondRequest::deserialize(value).map_err(|error| {
        let error_type = match is_bad("option_index", |index| Option::<u32>::deserialize(index).is_ok()) {
            true => "invalid_option_index",
            false => "missing_text",
        };
        let hint = "send JSON such as {\"mode\": \"text\", \"text\": \"yes\"}";
        BridgeFailure::bad_request(error_type, format!("invalid request: {}", shorten(&error)), hint)
    })
}

/// The answers of the request: one per question, in the order of the questions.
pub(super) fn answers(request: &BridgeRespondRequest) -> Result<Vec<DialogAnswer>, BridgeFailure> {
    let missing_text = || {
        BridgeFailure::bad_request(
            "missing_text",
            "the field 'text' is missing or empty",
            "send the field 'text', or the mode 'select' with the field 'option_index'",
        )
    };
    let no_index = || {
        let message = "the field 'option_index' is missing or invalid";
        let hint = "options are numbered from 0, in the order of the dialog";
        BridgeFailure::bad_request("invalid_option_index", message, hint)
    };
    match request.mode {
        BridgeMode::Text | BridgeMode::Other => {
            text_answer(request.text.as_deref()).map(|answer| vec![answer]).ok_or_else(missing_text)
        }
        BridgeMode::Select => {
            option_number(request.option_index).map(|n| vec![DialogAnswer::Option(n)]).ok_or_else(no_index)
        }
        BridgeMode::MultiSelect => {
            let answers = match request.answers.as_ref() {
                Some(BridgeAnswers::Indices(indices)) => options_answer(indices).map(|answer| vec![answer]),
                Some(BridgeAnswers::Questions(choices)) => choices.iter().map(answer_of).collect(),
                None => None,
            };
            answers.filter(|answers| !answers.is_empty()).ok_or_else(invalid_answers)
        }
    }
}

/// The answer that a choice contains. `None` if the choice is not valid: exactly one of its three fields must be set.
fn answer_of(choice: &BridgeChoice) -> Option<DialogAnswer> {
    match choice {
        BridgeChoice { option_index: Some(index), option_indices: None, text: None } => {
            option_number(Some(*index)).map(DialogAnswer::Option)
        }
        BridgeChoice { option_index: None, option_indices: Some(indices), text: None } => options_answer(indices),
        BridgeChoice { option_index: None, option_indices: None, text } => text_answer(text.as_deref()),
        _ => None,
    }
}

fn text_answer(text: Option<&str>) -> Option<DialogAnswer> {
    text.filter(|text| !text.trim().is_empty()).map(|text| DialogAnswer::Text(text.to_owned()))
}

fn options_answer(indices: &[u32]) -> Option<DialogAnswer> {
    let numbers: Option<Vec<u32>> = indices.iter().map(|index| option_number(Some(*index))).collect();
    numbers.filter(|numbers| !numbers.is_empty()).map(DialogAnswer::Options)
}

/// Converts an option index of the API to the option number on the screen. The API counts from 0, the screen from 1.
fn option_number(index: Option<u32>) -> Option<u32> {
    index.filter(|index| *index < MAX_OPTIONS).map(|index| index + 1)
}

fn invalid_answers() -> BridgeFailure {
    let hint = "send option indices, starting with 0, such as {\"answers\": [0, 2]}, or for each question one of \
                {\"option_index\": 0}, {\"option_indices\": [0, 2]} and {\"text\": \"green\"}";
    BridgeFailure::bad_request("invalid_answers", "the field 'answers' is missing, empty or invalid", hint)
}
