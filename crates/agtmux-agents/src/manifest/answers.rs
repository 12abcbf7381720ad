//! The rules that say how to answer a dialog.

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

/// An answer without any text or option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimpleAnswer {
    Approve,
    Deny,
}

/// How to choose one option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKeys {
    /// Type the number of the option.
    Digits,
    /// Move the selection up or down to the option, then press Enter.
    Down,
    /// Move the selection left or right to the option, then press Enter.
    Right,
}

/// How to approve or deny.
#[derive(Debug, Clone)]
pub enum AnswerMethod {
    /// Press these keys, named as tmux names them.
    Keys(Vec<String>),
    /// Choose the first option that matches.
    Option(OptionPattern),
}

/// Selects options by their labels.
#[derive(Debug, Clone)]
pub struct OptionPattern {
    include: Regex,
    /// Excludes options that allow more than the request.
    except: Option<Regex>,
}

impl OptionPattern {
    pub fn is_match(&self, label: &str) -> bool {
        self.include.is_match(label) && !self.except.as_ref().is_some_and(|except| except.is_match(label))
    }
}

/// How to answer with free text: the steps before and after typing it.
#[derive(Debug, Clone)]
pub struct TextAnswerMethod {
    /// Move the selection to the option that matches.
    pub at: Option<Regex>,
    /// Choose the option that matches.
    pub take: Option<Regex>,
    /// Then press these keys.
    pub keys: Vec<String>,
    /// Then wait until the screen matches this pattern.
    pub ready: Option<Regex>,
    /// After the text is typed, press these keys before Enter. They move to the control that submits it.
    pub leave: Vec<String>,
    /// These steps close the dialog. The text goes to its successor: another dialog that accepts text, or the input
    /// box.
    pub opens: bool,
    /// The field accepts a single line only.
    pub one_line: bool,
}

/// The answers to one dialog. An answer that is None is not supported.
#[derive(Debug, Clone, Default)]
pub struct AnswerKeys {
    pub approve: Option<AnswerMethod>,
    pub deny: Option<AnswerMethod>,
    pub option: Option<OptionKeys>,
    /// Set if several options can be ticked. These keys, pressed on an option, submit the ticked ones.
    pub many: Option<Vec<String>>,
    pub text: Option<TextAnswerMethod>,
    /// Dialogs that an answer may open and that belong to it, with the answer to each.
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

    /// The names of all dialogs that the answer rules mention.
    pub(super) fn dialog_names(&self) -> impl Iterator<Item = &String> {
        self.by_dialog.iter().flat_map(|(name, keys)| keys.then.keys().chain([name]))
    }
}

pub(super) fn compile(raw: AnswersToml) -> Result<AnswerRules, String> {
    let AnswersToml { approve, deny, option, text, dialogs } = raw;
    let given = DialogAnswersToml { approve, deny, option, many: None, text, then: BTreeMap::new() };
    let defaults = compile_answers("answers", given, &AnswerKeys::default())?;
    let compile_dialog = |(name, given): (String, DialogAnswersToml)| {
        let keys = compile_answers(&format!("answers.dialogs.{name}"), given, &defaults)?;
        Ok((name, keys))
    };
    let by_dialog = dialogs.into_iter().map(compile_dialog).collect::<Result<_, String>>()?;
    Ok(AnswerRules { default_keys: defaults, by_dialog })
}

/// Compiles the answers of one dialog. Missing keys take their value from the defaults.
fn compile_answers(table: &str, raw: DialogAnswersToml, defaults: &AnswerKeys) -> Result<AnswerKeys, String> {
    let option = match raw.option.as_deref() {
        None => defaults.option,
        Some("{n}") => Some(OptionKeys::Digits),
        Some("down") => Some(OptionKeys::Down),
        Some("right") => Some(OptionKeys::Right),
        Some("") => None,
        Some(other) => return Err(format!("'{table}.option' must be '{{n}}', 'down' or 'right', not '{other}'")),
    };
    let keys = AnswerKeys {
        approve: compile_method(&format!("'{table}.approve'"), raw.approve, &defaults.approve)?,
        deny: compile_method(&format!("'{table}.deny'"), raw.deny, &defaults.deny)?,
        option,
        many: raw.many,
        text: match raw.text {
            None => defaults.text.clone(),
            Some(given) if given.none => None,
            Some(given) => Some(compile_text(&format!("'{table}.text"), given)?),
        },
        then: raw.then,
    };
    let chooses_option =
        [&keys.approve, &keys.deny].iter().any(|method| matches!(method, Some(AnswerMethod::Option(_))));
    let chooses_option = chooses_option || keys.text.as_ref().is_some_and(|text| text.take.is_some());
    if chooses_option && keys.option.is_none() {
        return Err(format!("'{table}' chooses an option, but has no 'option' that says how"));
    }
    if keys.many.is_some() && keys.option != Some(OptionKeys::Digits) {
        return Err(format!("'{table}.many' requires 'option' = '{{n}}': options are ticked by number"));
    }
    Ok(keys)
}

/// An empty list of keys means that the answer is not supported.
fn compile_method(
    what: &str,
    raw: Option<AnswerMethodToml>,
    defaults: &Option<AnswerMethod>,
) -> Result<Option<AnswerMethod>, String> {
    Ok(match raw {
        None => defaults.clone(),
        Some(AnswerMethodToml::Keys(keys)) => (!keys.is_empty()).then_some(AnswerMethod::Keys(keys)),
        Some(AnswerMethodToml::Option { option, except }) => {
            let except = except.map(|except| compile_pattern(what, &except)).transpose()?;
            Some(AnswerMethod::Option(OptionPattern { include: compile_pattern(what, &option)?, except }))
        }
    })
}

fn compile_text(what: &str, raw: TextAnswerToml) -> Result<TextAnswerMethod, String> {
    if raw.at.is_some() && raw.take.is_some() {
        return Err(format!("{what}' has both 'at' and 'take': use one of them"));
    }
    let compile_key = |key: &str, pattern: Option<String>| {
        pattern.map(|pattern| compile_pattern(&format!("{what}.{key}'"), &pattern)).transpose()
    };
    Ok(TextAnswerMethod {
        at: compile_key("at", raw.at)?,
        take: compile_key("take", raw.take)?,
        keys: raw.keys,
        ready: compile_key("ready", raw.ready)?,
        leave: raw.leave,
        opens: raw.opens,
        one_line: raw.one_line,
    })
}
