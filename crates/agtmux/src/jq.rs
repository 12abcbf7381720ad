//! `--jq`: filters JSON output with an expression of the jq language.

use std::fmt;
use std::sync::Arc;

use clap::builder::ArgPredicate;
use clap::{Arg, ArgMatches, Command, Id};
use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader, lex, parse};
use jaq_core::{Compiler, Ctx, Filter, Vars, compile, unwrap_valr};
use jaq_json::{Val, read};

use crate::error::{CliError, CliResult};

/// The id of the `--jq` option in clap.
pub(crate) const OPTION: &str = "jq";
const JSON: &str = "json";

/// A filter that was parsed and compiled.
#[derive(Clone)]
pub(crate) struct JqFilter(Arc<Filter<JustLut<Val>>>);

/// One output of a filter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JqOutput {
    Text(String),
    /// A value that is not a text, as compact JSON.
    Json(String),
}

impl fmt::Debug for JqFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JqFilter")
    }
}

impl JqFilter {
    /// Parses a filter. The error says what is wrong with the filter, and where.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let arena = Arena::default();
        let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let modules = Loader::new(definitions).load(&arena, File { code: text, path: () });
        let modules = modules.map_err(|errors| first(errors, |error| load_error(text, error)))?;
        let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let compiled = Compiler::default().with_funs(functions).compile(modules);
        let compiled = compiled.map_err(|errors| first(errors, |error| undefined_error(text, error)))?;
        Ok(Self(Arc::new(compiled)))
    }

    /// Applies the filter to each of the JSON documents, and passes each output to `print` as soon as the filter has
    /// produced it.
    pub(crate) fn apply(&self, documents: &str, mut print: impl FnMut(JqOutput) -> CliResult) -> CliResult {
        for document in read::parse_many(documents.as_bytes()) {
            let document = document.map_err(|error| CliError::io("read JSON", error))?;
            let context = Ctx::<JustLut<Val>>::new(&self.0.lut, Vars::new([]));
            for output in self.0.id.run((context, document)).map(unwrap_valr) {
                let output = output.map_err(|error| {
                    let message = format!("the --jq filter does not fit the data: {error}");
                    CliError::failed(message).hint("repeat the command with --json and without --jq to see the data")
                })?;
                print(JqOutput::from(output))?;
            }
        }
        Ok(())
    }
}

impl From<Val> for JqOutput {
    fn from(value: Val) -> Self {
        match value {
            Val::TStr(bytes) => Self::Text(String::from_utf8_lossy(&bytes).into_owned()),
            other => Self::Json(other.to_string()),
        }
    }
}

/// Adds `--jq` to every command that has `--json`. The option implies `--json` and conflicts with the same options as
/// `--json`.
pub(crate) fn add_option(command: Command) -> Command {
    let command = command.mut_subcommands(add_option);
    let Some(json) = command.get_arguments().find(|argument| argument.get_id() == JSON) else { return command };
    let is_json = |argument: &&Arg| argument.get_id() == JSON;
    let excludes_json = |other: &&Arg| command.get_arg_conflicts_with(other).iter().any(is_json);
    let excluded = command.get_arg_conflicts_with(json).into_iter();
    let conflicts: Vec<Id> =
        excluded.chain(command.get_arguments().filter(excludes_json)).map(|other| other.get_id().clone()).collect();
    let option = Arg::new(OPTION)
        .long("jq")
        .value_name("FILTER")
        .value_parser(JqFilter::parse)
        .conflicts_with_all(conflicts)
        .help("Filter the JSON with this jq expression; print strings without quotes");
    command.mut_arg(JSON, |json| json.default_value_if(OPTION, ArgPredicate::IsPresent, "true")).arg(option)
}

/// The filter on the command line.
pub(crate) fn from_matches(matches: &ArgMatches) -> Option<JqFilter> {
    match matches.subcommand() {
        Some((_, inner)) => from_matches(inner),
        None => matches.try_get_one::<JqFilter>(OPTION).ok().flatten().cloned(),
    }
}

/// Describes the first of these errors.
fn first<C, E>(errors: Vec<(File<C, ()>, E)>, describe: impl FnOnce(E) -> String) -> String {
    errors.into_iter().next().map_or_else(|| "invalid filter".to_owned(), |(_, error)| describe(error))
}

fn load_error(filter: &str, error: load::Error<&str>) -> String {
    let unknown = || "invalid filter".to_owned();
    match error {
        load::Error::Io(errors) => {
            errors.into_iter().next().map_or_else(unknown, |(name, why)| format!("{name}: {why}"))
        }
        load::Error::Lex(errors) => errors.into_iter().next().map_or_else(unknown, |error| lex_error(filter, error)),
        load::Error::Parse(errors) => {
            errors.into_iter().next().map_or_else(unknown, |error| parse_error(filter, error))
        }
    }
}

fn lex_error(filter: &str, (expected, found): lex::Error<&str>) -> String {
    match expected {
        lex::Expect::Delim(open) => format!("'{open}' is not closed, {}", place(filter, open)),
        expected => {
            let character = found.chars().next().map(String::from).unwrap_or_default();
            unexpected(filter, &character, found, expected.as_str())
        }
    }
}

fn parse_error(filter: &str, (expected, found): parse::Error<&str>) -> String {
    unexpected(filter, found, found, expected.as_str())
}

fn unexpected(filter: &str, shown: &str, found: &str, expected: &str) -> String {
    let place = place(filter, found);
    match found.is_empty() {
        true => format!("unexpected end, {place}; expected: {expected}"),
        false => format!("unexpected '{shown}', {place}; expected: {expected}"),
    }
}

fn undefined_error(filter: &str, errors: Vec<compile::Error<&str>>) -> String {
    let describe = |(name, kind): compile::Error<&str>| {
        let arguments = match kind {
            compile::Undefined::Filter(count) if count > 0 => format!(" with {count} arguments"),
            _ => String::new(),
        };
        format!("unknown {} '{name}'{arguments}, {}", kind.as_str(), place(filter, name))
    };
    errors.into_iter().next().map_or_else(|| "invalid filter".to_owned(), describe)
}

/// Where a part of the filter begins, for an error message. If `part` is not a slice of `filter`, the result is the end
/// of `filter`.
fn place(filter: &str, part: &str) -> String {
    let start = part.as_ptr().addr().checked_sub(filter.as_ptr().addr());
    let before = start.and_then(|start| filter.get(..start)).unwrap_or(filter);
    format!("at character {}", before.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(filter: &str, documents: &str) -> Vec<JqOutput> {
        let mut outputs = Vec::new();
        let filter = JqFilter::parse(filter).expect("a valid filter");
        let applied = filter.apply(documents, |output| {
            outputs.push(output);
            Ok(())
        });
        applied.expect("the filter fits");
        outputs
    }

    #[test]
    fn texts_have_no_quotes_and_other_values_are_compact_json() {
        let document = r#"{"items": [{"state": "idle", "n": 1.50}, {"state": null, "n": [ ]}], "a\u001b": {"b": "c"}}"#;
        let text = |text: &str| JqOutput::Text(text.into());
        let json = |json: &str| JqOutput::Json(json.into());
        assert_eq!(outputs(".items[].state", document), [text("idle"), json("null")]);
        assert_eq!(outputs(".items[].n", document), [json("1.50"), json("[]")]);
        assert_eq!(outputs(".items | length", document), [json("2")]);
        assert_eq!(outputs("del(.items)", document), [json(r#"{"a\u001b":{"b":"c"}}"#)]);
        assert_eq!(outputs(".items[] | select(.n == []) | keys | join(\" \")", document), [text("n state")]);
        assert_eq!(outputs("empty", document), []);
    }

    #[test]
    fn each_document_is_filtered() {
        assert_eq!(outputs(".a", "{\"a\":1}\n{\"a\":2}\n"), [JqOutput::Json("1".into()), JqOutput::Json("2".into())]);
    }

    #[test]
    fn a_wrong_filter_is_rejected_with_its_place() {
        for (filter, message) in [
            (".items[", "'[' is not closed, at character 7"),
            (".a | ü", "unexpected 'ü', at character 6"),
            ("\"é\" | )", "unexpected ')', at character 7"),
            (".a |", "unexpected end, at character 5; expected: term"),
            (".items | lenght", "unknown filter 'lenght', at character 10"),
            ("map(.a; .b)", "unknown filter 'map' with 2 arguments, at character 1"),
            ("$x", "unknown variable '$x', at character 1"),
            ("", "unexpected end, at character 1; expected: term"),
            ("import \"a\" as a; .", "a: module loading not supported"),
        ] {
            let error = JqFilter::parse(filter).expect_err("an invalid filter");
            assert!(error.contains(message), "{filter}: {error}");
        }
    }

    #[test]
    fn outputs_before_an_error_are_kept() {
        let mut outputs = 0;
        let filter = JqFilter::parse(".[] | .a").expect("a valid filter");
        let applied = filter.apply(r#"[{"a":1}, 2, {"a":3}]"#, |_| {
            outputs += 1;
            Ok(())
        });
        assert!(applied.is_err());
        assert_eq!(outputs, 1);
    }
}
