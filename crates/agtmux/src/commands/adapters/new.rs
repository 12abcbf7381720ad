//! `agtmux adapters new`: creates a manifest from a template.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agtmux_agents::{AgentRegistry, ManifestOrigin, check_manifest};
use agtmux_api::paths::{Paths, owned_dir};
use clap::Args;

use crate::error::{CliError, CliResult};
use crate::message::CliMessage;
use crate::{agent_registry, output};

const TEMPLATE: &str = include_str!("start.toml");

#[derive(Debug, Args)]
pub(crate) struct AdapterNewArgs {
    /// The name of the agent: lower case letters, digits and '-'
    name: String,
    /// Print to stdout instead of writing a file; if NAME is a built-in agent, print its manifest
    #[arg(long)]
    stdout: bool,
}

pub(super) fn run(args: &AdapterNewArgs) -> CliResult {
    let name = args.name.as_str();
    let text = TEMPLATE.replace("NAME", name);
    if let Err(error) = check_manifest(name, &text) {
        return Err(CliError::usage(format!("'{name}' is not a valid agent name: {}", error.problem))
            .hint("agtmux adapters new my-agent"));
    }
    if args.stdout {
        return output::verbatim(AgentRegistry::builtin_manifest_text(name).unwrap_or(&text).as_bytes());
    }
    if let Some(taken) = name_taken(name, &agent_registry::load()?) {
        return Err(taken);
    }
    let path = Paths::from_env()?.agents_dir().join(format!("{name}.toml"));
    write(&path, &text)?;
    output::verbatim(path.as_os_str().as_encoded_bytes())?;
    CliMessage::new(format!("created a manifest for '{name}'"))
        .because("the daemon loads the manifest at once; the agent's state is unknown until the manifest has rules")
        .hint(format!("agtmux adapters check {}", agent_registry::display_path(&path)))
        .print_stderr();
    Ok(())
}

fn name_taken(name: &str, known: &AgentRegistry) -> Option<CliError> {
    Some(match known.agent(name)?.origin() {
        ManifestOrigin::BuiltIn => CliError::failed(format!("'{name}' is a built-in agent"))
            .because("a manifest with that name would replace the built-in one")
            .hint(format!("agtmux adapters new {name} --stdout   (prints the built-in manifest, to edit)"))
            .hint(format!("agtmux adapters new my-{name}")),
        ManifestOrigin::File { path, .. } => {
            CliError::failed(format!("the agent '{name}' already exists, in '{path}'"))
                .hint(format!("agtmux adapters check {path}"))
        }
    })
}

fn write(path: &Path, text: &str) -> CliResult {
    let shown = agent_registry::display_path(path);
    if let Some(dir) = path.parent() {
        owned_dir(dir, "AGTMUX_CONFIG")?;
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::failed(format!("'{shown}' already exists and was not changed"))
            .hint(format!("agtmux adapters check {shown}")),
        _ => CliError::io(&format!("write '{shown}'"), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_valid_with_and_without_its_examples() {
        let text = TEMPLATE.replace("NAME", "otto");
        let checked = check_manifest("otto.toml", &text).expect("valid");
        assert_eq!((checked.name().as_str(), checked.programs()), ("otto", &["otto".to_owned()][..]));
        // Comments have a space after '#', examples do not.
        let example =
            |line: &str| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned();
        let all = text.lines().map(example).collect::<Vec<_>>().join("\n");
        let checked = check_manifest("otto.toml", &all).unwrap_or_else(|error| panic!("{error}\n{all}"));
        assert_eq!(agtmux_agents::Adapter::from(&checked).warnings, Vec::<String>::new());
        assert!(checked.rule_counts().iter().all(|(_, count)| *count > 0), "{:?}", checked.rule_counts());
    }
}
