//! The rules that say how to answer a dialog.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::pattern::{Pattern, check_all};

/// The table `answers` of a manifest. The keys directly in this table are the defaults. For a single dialog, a table in
/// `dialogs` overrides them.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AnswersToml {
    approve: Option<AnswerMethod>,
    deny: Option<AnswerMethod>,
    option: Option<String>,
    text: Option<TextAnswerMethod>,
    #[serde(default)]
    dialogs: BTreeMap<String, DialogAnswersToml>,
}

#[derive(Debug, Deserialize)]
struct DialogAnswersToml {
    approve: Option<AnswerMethod>,
    deny: Option<AnswerMethod>,
    option: Option<String>,
    many: Option<Vec<String>>,
    text: Option<TextAnswerMethod>,
    #[serde(default)]
    then: BTreeMap<String, SimpleAnswer>,
}

/// An answer that needs neither a text nor an option.
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

/// How to approve or deny a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum AnswerMethod {
    /// Press these keys, named as tmux names them.
    Keys(Vec<String>),
    /// Choose the first option whose label matches.
    Option(OptionPattern),
}

/// Selects options by their labels.
#[derive(Debug, Clone, Deserialize)]
pub struct OptionPattern {
    #[serde(rename = "option")]
    include: Pattern,
    /// An option whose label matches this pattern is never chosen, because it allows more than the agent asks for: for
    /// example "always".
    except: Option<Pattern>,
}

impl OptionPattern {
    pub fn is_match(&self, label: &str) -> bool {
        self.include.is_match(label) && !self.except.as_ref().is_some_and(|except| except.is_match(label))
    }
}

/// How to answer with free text: the steps before and after the text is typed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextAnswerMethod {
    /// The first step: move the selection to the option whose label matches this pattern.
    pub at: Option<Pattern>,
    /// The first step if `at` is not set: choose the option whose label matches this pattern.
    pub take: Option<Pattern>,
    /// The keys to press after the first step and before the text.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The text is typed only after the screen matches this pattern.
    pub ready: Option<Pattern>,
    /// Press these keys after the text and before Enter. They move the selection to the control that submits the text.
    #[serde(default)]
    pub leave: Vec<String>,
    /// Whether the steps before the text close the dialog. If true, the text is typed into what appears next: another
    /// dialog that accepts text, or the input box.
    #[serde(default)]
    pub opens: bool,
    /// Whether the text field of the dialog accepts only a single line.
    #[serde(default)]
    pub one_line: bool,
    /// The dialog accepts no text. Overrides a text answer in the defaults of the manifest.
    #[serde(default)]
    none: bool,
}

/// The ways to answer one dialog. If a field is None, agtmux cannot give that answer.
#[derive(Debug, Clone, Default)]
pub struct AnswerKeys {
    pub approve: Option<AnswerMethod>,
    pub deny: Option<AnswerMethod>,
    pub option: Option<OptionKeys>,
    /// The keys that submit all ticked options. They are pressed while the selection is on an option. None if the
    /// dialog accepts only one option.
    pub many: Option<Vec<String>>,
    pub text: Option<TextAnswerMethod>,
    /// The dialogs that may open after an answer to this dialog, and how agtmux answers each of them.
    pub then: BTreeMap<String, SimpleAnswer>,
}

#[derive(Debug, Default)]
pub(crate) struct AnswerRules {
    default_keys: AnswerKeys,
    by_dialog: BTreeMap<String, AnswerKeys>,
}

impl AnswerRules {
    /// Completes the answers of each dialog: answers that the dialog does not set are taken from the defaults.
    pub(super) fn new(raw: AnswersToml) -> Result<Self, String> {
        let AnswersToml { approve, deny, option, text, dialogs } = raw;
        let given = DialogAnswersToml { approve, deny, option, many: None, text, then: BTreeMap::new() };
        let default_keys = AnswerKeys::new(DEFAULTS_TABLE, given, &AnswerKeys::default())?;
        let with_defaults = |(name, given): (String, DialogAnswersToml)| {
            let keys = AnswerKeys::new(&dialog_table(&name), given, &default_keys)?;
            Ok((name, keys))
        };
        let by_dialog = dialogs.into_iter().map(with_defaults).collect::<Result<_, String>>()?;
        Ok(Self { default_keys, by_dialog })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.default_keys.check(DEFAULTS_TABLE)?;
        self.by_dialog.iter().try_for_each(|(name, keys)| keys.check(&dialog_table(name)))
    }

    pub(crate) fn for_dialog(&self, dialog: &str) -> &AnswerKeys {
        self.by_dialog.get(dialog).unwrap_or(&self.default_keys)
    }

    /// The names of all dialogs that the answer rules mention.
    pub(super) fn dialog_names(&self) -> impl Iterator<Item = &String> {
        self.by_dialog.iter().flat_map(|(name, keys)| keys.then.keys().chain([name]))
    }
}

const DEFAULTS_TABLE: &str = "answers";

fn dialog_table(name: &str) -> String {
    format!("answers.dialogs.{name}")
}

impl AnswerKeys {
    /// The ways to answer one dialog. Keys that the dialog does not set take their value from the defaults.
    fn new(table: &str, given: DialogAnswersToml, defaults: &Self) -> Result<Self, String> {
        let option = match given.option.as_deref() {
            None => defaults.option,
            Some("{n}") => Some(OptionKeys::Digits),
            Some("down") => Some(OptionKeys::Down),
            Some("right") => Some(OptionKeys::Right),
            Some("") => None,
            Some(other) => return Err(format!("'{table}.option' must be '{{n}}', 'down' or 'right', not '{other}'")),
        };
        // An empty list of keys means that the answer is not supported.
        let is_supported = |method: &AnswerMethod| !matches!(method, AnswerMethod::Keys(keys) if keys.is_empty());
        Ok(Self {
            approve: given.approve.or_else(|| defaults.approve.clone()).filter(is_supported),
            deny: given.deny.or_else(|| defaults.deny.clone()).filter(is_supported),
            option,
            many: given.many,
            text: given.text.or_else(|| defaults.text.clone()).filter(|text| !text.none),
            then: given.then,
        })
    }

    fn check(&self, table: &str) -> Result<(), String> {
        for (key, method) in [("approve", &self.approve), ("deny", &self.deny)] {
            if let Some(AnswerMethod::Option(pattern)) = method {
                check_all(&format!("'{table}.{key}'"), pattern.except.iter().chain([&pattern.include]))?;
            }
        }
        if let Some(text) = &self.text {
            text.check(table)?;
        }
        let chooses_option =
            [&self.approve, &self.deny].iter().any(|method| matches!(method, Some(AnswerMethod::Option(_))));
        let chooses_option = chooses_option || self.text.as_ref().is_some_and(|text| text.take.is_some());
        if chooses_option && self.option.is_none() {
            return Err(format!("'{table}' chooses an option, so it requires the key 'option'"));
        }
        if self.many.is_some() && self.option != Some(OptionKeys::Digits) {
            return Err(format!(
                "'{table}.many' requires 'option' = '{{n}}': agtmux selects each option by typing its number"
            ));
        }
        Ok(())
    }
}

impl TextAnswerMethod {
    fn check(&self, table: &str) -> Result<(), String> {
        if self.at.is_some() && self.take.is_some() {
            return Err(format!("'{table}.text' has both 'at' and 'take': use one of them"));
        }
        for (key, pattern) in [("at", &self.at), ("take", &self.take), ("ready", &self.ready)] {
            check_all(&format!("'{table}.text.{key}'"), pattern)?;
        }
        Ok(())
    }
}
