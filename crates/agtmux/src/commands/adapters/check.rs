//! `agtmux adapters check`: what is wrong with a manifest, or what it amounts to.

use std::path::{Path, PathBuf};

use agtmux_agents::{Checked, LARGEST_MANIFEST, ManifestError, Origin, check};
use agtmux_api::paths::Paths;
use agtmux_api::{SCHEMA_VERSION, files};
use agtmux_core::sanitize;
use clap::Args;
use serde_json::{Value, json};

use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::{known, output};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The manifest
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckArgs) -> Result<Exit, CliError> {
    let checked = read(&args.file).and_then(|text| check(&known::shown(&args.file), &text));
    if args.json {
        let json = serde_json::to_vec(&document(&args.file, &checked));
        output::line(&json.map_err(|error| CliError::io("write JSON", error))?)?;
        return Ok(if checked.is_ok() { Exit::Ok } else { Exit::Usage });
    }
    output::lines(&told(&args.file, &checked.map_err(|error| refusal(&error))?))?;
    Ok(Exit::Ok)
}

pub(crate) fn read(file: &Path) -> Result<String, ManifestError> {
    let unreadable = |error: std::io::Error| ManifestError {
        file: known::shown(file),
        line: None,
        problem: match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".into(),
            _ => error.to_string(),
        },
    };
    files::plain(file, LARGEST_MANIFEST).map_err(unreadable)
}

/// A manifest is part of the configuration, and so is its exit code.
pub(crate) fn refusal(error: &ManifestError) -> CliError {
    let hint = "agtmux adapters new NAME --stdout   (a start with every key, explained)";
    CliError::new(Exit::Usage, Message::new(error.to_string()).hint(hint))
}

fn told(file: &Path, checked: &Checked) -> Vec<String> {
    let adapter = &checked.adapter;
    let list = |words: Vec<&str>| if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    let rules: Vec<String> = checked.rules.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut lines = vec![
        format!("{} is fine: the agent '{}', version {}", known::shown(file), adapter.name, adapter.version),
        format!("  recognised by  {}", checked.programs.join(", ")),
        format!("  rules          {}", rules.join(", ")),
        format!("  evidence       {}", list(adapter.sources.iter().map(|source| source.as_str()).collect())),
        format!("  can tell       {}", list(adapter.states.iter().map(|state| state.as_str()).collect())),
    ];
    if replaces(checked) {
        lines.push(format!("  replaces       the built-in agent '{}'", adapter.name));
    }
    lines.extend(adapter.warnings.iter().map(|warning| format!("warning: {warning}")));
    let dir = Paths::from_env().map(|paths| paths.agents_dir()).ok();
    let here = |dir: &PathBuf| std::path::absolute(file).is_ok_and(|file| file.parent() == Some(dir));
    if let Some(dir) = dir.filter(|dir| !here(dir)) {
        lines.push(format!("to use it, put it into {}", known::shown(&dir)));
    }
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

fn replaces(checked: &Checked) -> bool {
    matches!(checked.adapter.origin, Origin::File { replaces: true, .. })
}

fn document(file: &Path, checked: &Result<Checked, ManifestError>) -> Value {
    let file = known::shown(file);
    match checked {
        Ok(checked) => json!({
            "schema_version": SCHEMA_VERSION,
            "file": file,
            "ok": true,
            "name": checked.adapter.name,
            "version": checked.adapter.version,
            "programs": checked.programs,
            "rules": checked.rules.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
            "sources": checked.adapter.sources,
            "states": checked.adapter.states,
            "replaces_built_in": replaces(checked),
            "warnings": checked.adapter.warnings,
            "line": null,
            "error": null,
        }),
        Err(error) => json!({
            "schema_version": SCHEMA_VERSION,
            "file": file,
            "ok": false,
            "line": error.line,
            "error": error.problem,
        }),
    }
}
