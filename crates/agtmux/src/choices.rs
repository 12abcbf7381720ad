//! Options that accept one of several words.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A parser that accepts one of these words and returns the value that belongs to the word.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<(&'static str, T)> = choices.into_iter().collect();
    PossibleValuesParser::new(choices.iter().map(|(word, _)| *word)).try_map(move |given| {
        let choice = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(&given));
        choice.map(|(_, value)| value.clone()).ok_or("not one of the possible values")
    })
}
