//! What an agent asks, as it can be shown to a person and answered.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::evidence::DialogKind;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct Dialog {
    pub kind: DialogKind,
    pub question: String,
    /// What the question is about, such as the command to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub options: Vec<DialogOption>,
    /// Whether several of them can be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
    /// The same for the same dialog however often it is looked at, another one as soon as anything is asked anew.
    pub fingerprint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct DialogOption {
    pub n: u32,
    pub label: String,
}

/// So many characters of a subject are kept.
const MAX_SUBJECT_CHARS: usize = 4000;

const NAMESPACE: Uuid = Uuid::from_u128(0x5b0c_93de_17a2_4c86_a3f5_6e01_d84b_72c3);

impl Dialog {
    pub fn new(kind: DialogKind, question: String, subject: Option<String>, options: Vec<DialogOption>) -> Self {
        let fingerprint = fingerprint(kind, &question, subject.as_deref(), &options);
        Self { kind, question, subject: subject.map(truncate_subject), options, multiple: false, fingerprint }
    }
}

/// The start of what is too long, with a mark that tells two apart that end differently.
fn truncate_subject(subject: String) -> String {
    let Some((cut, _)) = subject.char_indices().nth(MAX_SUBJECT_CHARS) else { return subject };
    let mark = Uuid::new_v5(&NAMESPACE, subject.as_bytes()).simple().to_string();
    let more = subject[cut..].chars().count();
    format!("{}… ({more} more characters, {})", &subject[..cut], &mark[..8])
}

/// Over what is asked, not over how it looks right now: which option is selected changes with every key. The subject
/// counts, or the approval of one command would be good for the next.
fn fingerprint(kind: DialogKind, question: &str, subject: Option<&str>, options: &[DialogOption]) -> String {
    let mut name = String::from(kind.as_str());
    // Lengths keep two texts from running into each other.
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
    fn a_fingerprint_tells_dialogs_apart() {
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
    fn long_subjects_that_end_differently_are_told_apart() {
        let long = "é".repeat(MAX_SUBJECT_CHARS);
        assert_eq!(dialog("Proceed?", &long, &[]).subject, Some(long.clone()));
        let [one, other] = ["a", "b"].map(|end| dialog("Proceed?", &format!("{long}{end}"), &[]));
        assert_ne!(one.fingerprint, other.fingerprint);
        assert_ne!(one.subject, other.subject);
        let kept = one.subject.expect("it has one");
        assert!(kept.starts_with(&long) && kept.contains("… (1 more characters, "), "{}", kept.len());
    }

    #[test]
    fn a_dialog_reads_back() {
        let one = dialog("Proceed?", "touch a", &["Yes", "No"]);
        let json = serde_json::to_string(&one).expect("writes");
        assert_eq!(serde_json::from_str::<Dialog>(&json).expect("reads"), one);
    }
}
