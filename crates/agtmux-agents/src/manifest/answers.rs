//! How a dialog is answered.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;

use super::pattern::compile as compile_pattern;

#[derive(Default, Deserialize)]
pub(super) struct AnswersToml {
    approve: Option<AnswerMethodToml>,
    deny: Option<AnswerMethodToml>,
    option: Option<String>,
    text: Option<TextAnswerToml>,
    #[serde(default)]
    dialogs: BTreeMap<String, DialogAnswersToml>,
}

#[derive(Deserialize)]
struct DialogAnswersToml {
    approve: Option<AnswerMethodToml>,
    deny: Option<AnswerMethodToml>,
    option: Option<String>,
    many: Option<Vec<String>>,
    text: Option<TextAnswerToml>,
    #[serde(default)]
    then: BTreeMap<String, SimpleAnswer>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnswerMethodToml {
    Keys(Vec<String>),
    Option { option: String, except: Option<String> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextAnswerToml {
    at: Option<String>,
    take: Option<String>,
    #[serde(default)]
    keys: Vec<String>,
    ready: Option<String>,
    #[serde(default)]
    leave: Vec<String>,
    #[serde(default)]
    opens: bool,
    #[serde(default)]
    one_line: bool,
    #[serde(default)]
    none: bool,
}

/// An answer that needs nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimpleAnswer {
    Approve,
    Deny,
}

/// How one option is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKeys {
    /// Its number is typed.
    Digits,
    /// The selection is moved up or down to it, then confirmed with Enter.
    Down,
    /// The same to the left or to the right.
    Right,
}

/// How a plain answer is given.
#[derive(Debug, Clone)]
pub enum AnswerMethod {
    /// By keys, with the names that tmux has for them.
    Keys(Vec<String>),
    /// By the first option that fits.
    Option(OptionPattern),
}

/// Which options are meant, by their labels.
#[derive(Debug, Clone)]
pub struct OptionPattern {
    include: Regex,
    /// Those that would allow more than what is asked for.
    except: Option<Regex>,
}

impl OptionPattern {
    pub fn is_match(&self, label: &str) -> bool {
        self.include.is_match(label) && !self.except.as_ref().is_some_and(|except| except.is_match(label))
    }
}

/// How words of one's own are given: what has to be done before they can be typed.
#[derive(Debug, Clone)]
pub struct TextAnswerMethod {
    /// The selection is moved to the option that fits.
    pub at: Option<Regex>,
    /// The option that fits is taken.
    pub take: Option<Regex>,
    /// Then these keys are pressed.
    pub keys: Vec<String>,
    /// Then this must be on the screen.
    pub ready: Option<Regex>,
    /// Once the words stand there, these are pressed before Enter, and lead to what sends them off.
    pub leave: Vec<String>,
    /// The dialog closes by that. The words go to what comes up instead: another dialog that takes them, or the input box.
    pub opens: bool,
    /// It has no room for a second line.
    pub one_line: bool,
}

/// What is not known is none, and cannot be answered.
#[derive(Debug, Clone, Default)]
pub struct AnswerKeys {
    pub approve: Option<AnswerMethod>,
    pub deny: Option<AnswerMethod>,
    pub option: Option<OptionKeys>,
    /// Its options are ticked, and these keys on one of them send off what is ticked.
    pub many: Option<Vec<String>>,
    pub text: Option<TextAnswerMethod>,
    /// Dialogs that an answer may bring up and that belong to it, and how they are answered.
    pub then: BTreeMap<String, SimpleAnswer>,
}

#[derive(Debug, Default)]
pub(crate) struct AnswerRules {
    default_keys: AnswerKeys,
    by_dialog: BTreeMap<String, AnswerKeys>,
}

impl AnswerRules {
    pub(crate) fn for_dialog(&self, dialog: &str) -> &AnswerKeys {
        self.by_dialog.get(dialog).unwrap_or(&self.default_keys)
    }

    /// The dialogs that are named.
    pub(super) fn dialog_names(&self) -> impl Iterator<Item = &String> {
        self.by_dialog.iter().flat_map(|(name, keys)| keys.then.keys().chain([name]))
    }
}

pub(super) fn compile(written: AnswersToml) -> Result<AnswerRules, String> {
    let AnswersToml { approve, deny, option, text, dialogs } = written;
    let given = DialogAnswersToml { approve, deny, option, many: None, text, then: BTreeMap::new() };
    let usual = compile_answers("answers", given, &AnswerKeys::default())?;
    let own = |(name, given): (String, DialogAnswersToml)| {
        let keys = compile_answers(&format!("answers.dialogs.{name}"), given, &usual)?;
        Ok((name, keys))
    };
    let by_dialog = dialogs.into_iter().map(own).collect::<Result<_, String>>()?;
    Ok(AnswerRules { default_keys: usual, by_dialog })
}

/// What a dialog does not say for itself is as usual.
fn compile_answers(place: &str, written: DialogAnswersToml, usual: &AnswerKeys) -> Result<AnswerKeys, String> {
    let option = match written.option.as_deref() {
        None => usual.option,
        Some("{n}") => Some(OptionKeys::Digits),
        Some("down") => Some(OptionKeys::Down),
        Some("right") => Some(OptionKeys::Right),
        Some("") => None,
        Some(other) => return Err(format!("'{place}.option' is '{{n}}', 'down' or 'right', not '{other}'")),
    };
    let keys = AnswerKeys {
        approve: compile_method(&format!("'{place}.approve'"), written.approve, &usual.approve)?,
        deny: compile_method(&format!("'{place}.deny'"), written.deny, &usual.deny)?,
        option,
        many: written.many,
        text: match written.text {
            None => usual.text.clone(),
            Some(given) if given.none => None,
            Some(given) => Some(compile_text(&format!("'{place}.text"), given)?),
        },
        then: written.then,
    };
    let takes = [&keys.approve, &keys.deny].iter().any(|way| matches!(way, Some(AnswerMethod::Option(_))));
    let takes = takes || keys.text.as_ref().is_some_and(|text| text.take.is_some());
    if takes && keys.option.is_none() {
        return Err(format!("'{place}' takes an option, but has no 'option' that says how"));
    }
    if keys.many.is_some() && keys.option != Some(OptionKeys::Digits) {
        return Err(format!("'{place}.many' needs an 'option' of '{{n}}': options are ticked by their numbers"));
    }
    Ok(keys)
}

/// An empty list says that there is no such key.
fn compile_method(
    what: &str,
    written: Option<AnswerMethodToml>,
    usual: &Option<AnswerMethod>,
) -> Result<Option<AnswerMethod>, String> {
    Ok(match written {
        None => usual.clone(),
        Some(AnswerMethodToml::Keys(keys)) => (!keys.is_empty()).then_some(AnswerMethod::Keys(keys)),
        Some(AnswerMethodToml::Option { option, except }) => {
            let except = except.map(|except| compile_pattern(what, &except)).transpose()?;
            Some(AnswerMethod::Option(OptionPattern { include: compile_pattern(what, &option)?, except }))
        }
    })
}

fn compile_text(what: &str, written: TextAnswerToml) -> Result<TextAnswerMethod, String> {
    if written.at.is_some() && written.take.is_some() {
        return Err(format!("{what}' has both 'at' and 'take': an option is either gone to or taken"));
    }
    let some = |key: &str, pattern: Option<String>| {
        pattern.map(|pattern| compile_pattern(&format!("{what}.{key}'"), &pattern)).transpose()
    };
    Ok(TextAnswerMethod {
        at: some("at", written.at)?,
        take: some("take", written.take)?,
        keys: written.keys,
        ready: some("ready", written.ready)?,
        leave: written.leave,
        opens: written.opens,
        one_line: written.one_line,
    })
}
