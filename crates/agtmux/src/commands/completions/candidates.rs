//! Which arguments complete names that the daemon knows.

use clap::{Arg, Command};
use clap_complete::engine::ArgValueCandidates;

use super::live;

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedThing {
    Agent,
    Session,
    Target,
    Task,
}

/// Adds candidates to the arguments of all commands.
pub(super) fn add(command: Command) -> Command {
    add_below(command, &[])
}

fn add_below(command: Command, path: &[String]) -> Command {
    let path = [path, &[command.get_name().to_owned()]].concat();
    let command = command.mut_args(|argument| with_candidates(argument, &path));
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |inner| add_below(inner, &path)))
}

fn with_candidates(argument: Arg, path: &[String]) -> Arg {
    let candidates = match named_thing(&argument, path) {
        Some(NamedThing::Agent) => ArgValueCandidates::new(live::agents),
        Some(NamedThing::Session) => ArgValueCandidates::new(live::sessions),
        Some(NamedThing::Target) => ArgValueCandidates::new(live::targets),
        Some(NamedThing::Task) => ArgValueCandidates::new(live::tasks),
        None => return argument,
    };
    argument.add(candidates)
}

fn named_thing(argument: &Arg, path: &[String]) -> Option<NamedThing> {
    let is_below = |name: &str| path.get(1).is_some_and(|first| first == name);
    let last = path.last().map(String::as_str).unwrap_or_default();
    let value = argument.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    match (argument.get_id().as_str(), value) {
        (_, Some("REF")) => Some(NamedThing::Agent),
        // `task run` names a new task, and `target add` a new target.
        ("task", _) if is_below("task") && last != "run" => Some(NamedThing::Task),
        ("name", _) if is_below("target") && last != "add" => Some(NamedThing::Target),
        ("target", Some("NAME")) => Some(NamedThing::Target),
        ("session", Some("NAME")) => Some(NamedThing::Session),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn arguments_that_name_something_have_candidates() {
        fn collect(command: &Command, path: &[String], found: &mut Vec<String>) {
            let path = [path, &[command.get_name().to_owned()]].concat();
            let named = command.get_arguments().filter_map(|argument| {
                let thing = named_thing(argument, &path)?;
                Some(format!("{} {}: {thing:?}", path[1..].join(" "), argument.get_id()))
            });
            found.extend(named);
            command.get_subcommands().for_each(|inner| collect(inner, &path, found));
        }
        let mut found = Vec::new();
        collect(&cli::definition(), &[], &mut found);
        for expected in [
            "send reference: Agent",
            "wait references: Agent",
            "history reference: Agent",
            "list panes target: Target",
            "list panes session: Session",
            "target doctor name: Target",
            "task logs task: Task",
            "task stop task: Task",
            "task list session: Session",
        ] {
            assert!(found.iter().any(|line| line == expected), "{expected} in {found:#?}");
        }
        assert!(!found.iter().any(|line| line.starts_with("task run task") || line.starts_with("target add name")));
        add(cli::definition()).debug_assert();
    }
}
