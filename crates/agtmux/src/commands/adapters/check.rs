//! `agtmux adapters check`: validates a manifest and prints a summary.

use std::path::{Path, PathBuf};

use agtmux_agents::{Adapter, KnownAgent, MAX_MANIFEST_BYTES, ManifestError, ManifestOrigin, check_manifest};
use agtmux_api::paths::Paths;
use agtmux_api::{SCHEMA_VERSION, files};
use clap::Args;
use serde_json::{Value, json};

use crate::error::{CliError, CliExit, CliResult};
use crate::{agent_registry, output};

#[derive(Debug, Args)]
pub(crate) struct AdapterCheckArgs {
    /// The manifest: a TOML file, as created by `agtmux adapters new`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AdapterCheckArgs) -> CliResult {
    let checked = read(&args.file).and_then(|text| check_manifest(&agent_registry::display_path(&args.file), &text));
    if args.json {
        output::json(&document(&args.file, &checked))?;
        return if checked.is_ok() { Ok(()) } else { Err(CliError::silent(CliExit::Usage)) };
    }
    output::lines(check_lines(&args.file, &checked.map_err(|error| manifest_error(&error))?))
}

pub(crate) fn read(file: &Path) -> Result<String, ManifestError> {
    let unreadable = |error: std::io::Error| ManifestError {
        file: agent_registry::display_path(file),
        line: None,
        problem: match error.kind() {
            std::io::ErrorKind::NotFound => "file not found".into(),
            _ => error.to_string(),
        },
    };
    files::read_plain(file, MAX_MANIFEST_BYTES).map_err(unreadable)
}

/// The error for an invalid manifest. It has the exit code of an invalid configuration.
pub(crate) fn manifest_error(error: &ManifestError) -> CliError {
    let hint = "agtmux adapters new NAME --stdout   (a template with every key explained)";
    CliError::usage(error.to_string()).hint(hint)
}

fn check_lines(file: &Path, checked: &KnownAgent) -> Vec<String> {
    let adapter = Adapter::from(checked);
    let list = |words: Vec<&str>| if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    let rules: Vec<String> = checked.rule_counts().iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut lines = vec![
        format!(
            "{} is valid: agent '{}', version {}",
            agent_registry::display_path(file),
            adapter.name,
            adapter.version
        ),
        format!("  recognised by  {}", checked.programs().join(", ")),
        format!("  rules          {}", rules.join(", ")),
        format!("  evidence       {}", list(adapter.sources.iter().map(|source| source.as_str()).collect())),
        format!("  states         {}", list(adapter.states.iter().map(|state| state.as_str()).collect())),
    ];
    if replaces(checked) {
        lines.push(format!("  replaces       the built-in agent '{}'", adapter.name));
    }
    lines.extend(adapter.warnings.iter().map(|warning| format!("warning: {warning}")));
    let dir = Paths::from_env().map(|paths| paths.agents_dir()).ok();
    let here = |dir: &PathBuf| std::path::absolute(file).is_ok_and(|file| file.parent() == Some(dir));
    if let Some(dir) = dir.filter(|dir| !here(dir)) {
        lines.push(format!("to use this manifest, move the file to {}", agent_registry::display_path(&dir)));
    }
    lines
}

fn replaces(checked: &KnownAgent) -> bool {
    matches!(checked.origin(), ManifestOrigin::File { replaces: true, .. })
}

fn document(file: &Path, checked: &Result<KnownAgent, ManifestError>) -> Value {
    let file = agent_registry::display_path(file);
    match checked.as_ref().map(|checked| (checked, Adapter::from(checked))) {
        Ok((checked, adapter)) => json!({
            "schema_version": SCHEMA_VERSION,
            "file": file,
            "ok": true,
            "name": adapter.name,
            "version": adapter.version,
            "programs": checked.programs(),
            "rules": std::collections::BTreeMap::from(checked.rule_counts()),
            "sources": adapter.sources,
            "states": adapter.states,
            "replaces_built_in": replaces(checked),
            "warnings": adapter.warnings,
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
