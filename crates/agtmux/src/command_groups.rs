//! The groups of commands in `agtmux --help`. clap lists the commands of a program in one block.

use std::fmt::Write as _;

use clap::Command;

/// The title of each group, and its commands in the order in which the help lists them.
const GROUPS: [(&str, &[&str]); 8] = [
    ("See your agents", &["list", "inbox", "watch", "last", "diff", "view-output", "explain", "history", "seen"]),
    ("Steer them", &["respond", "send", "ask", "broadcast", "wait", "next", "back", "attach", "kill"]),
    ("Start agents", &["new", "resume", "handoff", "worktree", "rename"]),
    ("On your screen", &["status", "sidebar", "menubar", "notify"]),
    ("Run commands", &["task", "mirror", "run"]),
    ("Other places", &["target", "web"]),
    ("Set up and check", &["setup", "doctor", "adapters", "config", "daemon", "audit", "completions", "man", "demo"]),
    ("Called by agents, hooks, scripts and agtmux itself", &["mcp", "emit", "hook", "collect", "replay", "welcome"]),
];

/// The short help lists the commands of these groups by name only, so that it fits on a screen.
const SELDOM_USED: [&str; 2] = [GROUPS[6].0, GROUPS[7].0];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelpLength {
    Short,
    Long,
}

/// Lists the commands of `program` in groups in its help.
pub(crate) fn group_commands(program: Command, length: HelpLength) -> Command {
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        _ = write!(template, "\n{title}:\n");
        if length == HelpLength::Short && SELDOM_USED.contains(&title) {
            _ = writeln!(template, "  {}", names.join(", "));
            continue;
        }
        for name in names {
            let about = program.find_subcommand(name).and_then(Command::get_about);
            _ = writeln!(template, "  {name:<12} {}", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    template += "\nOptions:\n{options}{after-help}";
    program.help_template(template)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let program = Cli::command();
        let commands: BTreeSet<&str> = program.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(grouped.len(), commands.len(), "a command is in two groups");
    }

    #[test]
    fn the_help_fits_into_80_columns() {
        let help = group_commands(Cli::command(), HelpLength::Long).render_help().to_string();
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
}
