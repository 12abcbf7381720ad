//! The keys that answer a dialog.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Default, Deserialize)]
pub(super) struct Written {
    approve: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    option: Option<String>,
    #[serde(default)]
    dialogs: BTreeMap<String, WrittenKeys>,
}

#[derive(Deserialize)]
struct WrittenKeys {
    approve: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    option: Option<String>,
}

/// How one option is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKeys {
    /// Its number is typed.
    Digits,
    /// The selection is walked down to it, then confirmed with Enter.
    Walk,
}

/// Names of keys as tmux has them. What is not known is none, and such a dialog is not answered by keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerKeys {
    pub approve: Option<Vec<String>>,
    pub deny: Option<Vec<String>>,
    pub option: Option<OptionKeys>,
}

#[derive(Debug, Default)]
pub(crate) struct Answers {
    usual: AnswerKeys,
    pub(super) by_dialog: BTreeMap<String, AnswerKeys>,
}

impl Answers {
    pub(crate) fn to(&self, dialog: &str) -> &AnswerKeys {
        self.by_dialog.get(dialog).unwrap_or(&self.usual)
    }
}

pub(super) fn compile(written: Written) -> Result<Answers, String> {
    let given = WrittenKeys { approve: written.approve, deny: written.deny, option: written.option };
    let usual = keys("answers", given, &AnswerKeys::default())?;
    let own = |(name, given): (String, WrittenKeys)| {
        let keys = keys(&format!("answers.dialogs.{name}"), given, &usual)?;
        Ok((name, keys))
    };
    let by_dialog = written.dialogs.into_iter().map(own).collect::<Result<_, String>>()?;
    Ok(Answers { usual, by_dialog })
}

/// What a dialog does not say for itself is as usual. An empty list says that there is no such key.
fn keys(place: &str, written: WrittenKeys, usual: &AnswerKeys) -> Result<AnswerKeys, String> {
    let or_usual = |given: Option<Vec<String>>, usual: &Option<Vec<String>>| match given {
        Some(keys) => (!keys.is_empty()).then_some(keys),
        None => usual.clone(),
    };
    let option = match written.option.as_deref() {
        None => usual.option,
        Some("{n}") => Some(OptionKeys::Digits),
        Some("down") => Some(OptionKeys::Walk),
        Some("") => None,
        Some(other) => return Err(format!("'{place}.option' is '{{n}}' or 'down', not '{other}'")),
    };
    Ok(AnswerKeys {
        approve: or_usual(written.approve, &usual.approve),
        deny: or_usual(written.deny, &usual.deny),
        option,
    })
}
