//! Refuses to approve a dialog that does not show its whole subject, such as a long command.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{DialogAnswer, RespondAction};
use agtmux_core::evidence::DialogKind;

use super::open_dialog::OpenDialog;

/// A dialog option whose label begins with one of these words is a refusal.
const REFUSALS: [&str; 10] = ["no", "not", "deny", "reject", "cancel", "decline", "skip", "exit", "quit", "stop"];
/// An option that begins with "Don't" or "Do not" is a refusal if one of these words follows. "Don't ask again" is no
/// refusal, so "ask" is not in the list.
const REFUSED: [&str; 9] = ["allow", "approve", "trust", "run", "proceed", "accept", "apply", "continue", "do"];

/// Fails if the answer approves something that the caller cannot see in full. A denial is always allowed.
pub(super) fn check(open: &OpenDialog<'_>, action: &RespondAction) -> ApiResult<()> {
    if !open.shown.subject_truncated || action.accept_truncated || !approves(open, &action.answer) {
        return Ok(());
    }
    let reference = &action.guards.r#ref;
    let message = "not approved: only a part of the dialog's subject is visible; nothing was typed";
    Err(ApiError::new(ErrorCode::SubjectTruncated, message).with_hint(format!(
        "read the dialog in the pane (agtmux attach {reference}) or enlarge the pane; --accept-truncated approves anyway"
    )))
}

fn approves(open: &OpenDialog<'_>, answer: &DialogAnswer) -> bool {
    let refuses = |n: &u32| {
        let label = open.dialog.options.iter().find(|option| option.n == *n).map(|option| &option.label);
        label.is_none_or(|label| is_refusal(label))
    };
    open.dialog.kind == DialogKind::Approval
        && match answer {
            DialogAnswer::Approve => true,
            // A text approves nothing: it tells the agent what to do instead.
            DialogAnswer::Deny | DialogAnswer::Text(_) => false,
            DialogAnswer::Option(n) => !refuses(n),
            DialogAnswer::Options(numbers) => !numbers.iter().all(refuses),
        }
}

fn is_refusal(label: &str) -> bool {
    let label = label.replace('’', "'");
    let is_part = |c: char| c.is_alphanumeric() || c == '\'';
    let mut words = label.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let Some(first) = words.next() else { return false };
    let mut next_is_one_of = |list: &[&str]| words.next().is_some_and(|word| list.contains(&word.as_str()));
    match first.as_str() {
        "do" => next_is_one_of(&["not"]) && next_is_one_of(&REFUSED),
        "don't" => next_is_one_of(&REFUSED),
        first => REFUSALS.contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_no_is_a_refusal() {
        for label in [
            "No",
            "No, and tell Claude what to do differently (esc)",
            "Reject",
            "Do not trust",
            "Don't allow",
            "Don’t allow",
            "Skip (esc)",
        ] {
            assert!(is_refusal(label), "{label}");
        }
        for label in [
            "Yes",
            "Yes, always",
            "Allow once",
            "Do it",
            "Nothing",
            "Proceed",
            "(Y)es",
            "Don't ask again (allow)",
            "Do not ask again",
            "",
        ] {
            assert!(!is_refusal(label), "{label}");
        }
    }
}
