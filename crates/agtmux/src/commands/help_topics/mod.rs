//! `agtmux help TOPIC`: explains what concerns all commands.

mod json_fields;

use std::ffi::OsString;

use super::list;
use crate::cli;
use crate::error::CliResult;
use crate::output;

/// A topic: its name, and its text.
type HelpTopic = (&'static str, fn() -> String);

static TOPICS: [HelpTopic; 5] = [
    ("environment", || include_str!("environment.txt").to_owned()),
    ("exit-codes", || format!("{}\n", cli::EXIT_CODES)),
    ("formatting", formatting),
    ("json", json_fields::text),
    ("references", || include_str!("references.txt").to_owned()),
];

/// Prints a topic if the command line is `agtmux help TOPIC`. Returns `None` for all other command lines.
pub(crate) fn intercept(arguments: &[OsString]) -> Option<CliResult> {
    let [_, help, topic] = arguments else { return None };
    let (_, text) = TOPICS.iter().find(|(name, _)| help == "help" && topic == name)?;
    Some(output::lines(text().lines()))
}

fn formatting() -> String {
    let mut text = include_str!("formatting.txt").to_owned();
    for (lists, names) in list::format_variables() {
        text.push_str(&format!("\nVariables of {lists}:\n"));
        for row in names.chunks(3) {
            let row: String = row.iter().map(|name| format!("  {name:<24}")).collect();
            text.push_str(&format!("{}\n", row.trim_end()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn topic(name: &str) -> String {
        TOPICS.iter().find(|(topic, _)| *topic == name).map(|(_, text)| text()).expect("a topic")
    }

    #[test]
    fn topics_fit_on_a_terminal() {
        for (name, text) in &TOPICS {
            let text = text();
            let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(widest.chars().count() <= 100, "{name}: {widest}");
            assert!(text.lines().count() > 5, "{name}");
        }
    }

    #[test]
    fn the_help_lists_all_topics() {
        let help = cli::definition().render_help().to_string();
        for (name, _) in &TOPICS {
            assert!(help.contains(name), "{name} in {help}");
        }
    }

    #[test]
    fn the_environment_topic_names_every_variable_that_settings_of_agtmux_come_from() {
        let sources = ["src", "../agtmux-api/src", "../agtmux-client/src", "../agtmux-daemon/src", "../agtmux-tui/src"];
        // Variables that agtmux sets for its own processes, and variables of tests.
        let internal = [
            "AGTMUX_COMPLETE",
            "AGTMUX_ENV",
            "AGTMUX_KEEPER",
            "AGTMUX_RUN_ID",
            "AGTMUX_SOAK",
            "AGTMUX_TASK",
            "AGTMUX_TEST_CLOCK_FILE",
            "AGTMUX_ZDOTDIR",
        ];
        let mut names = std::collections::BTreeSet::new();
        for source in sources {
            collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(source), &mut names);
        }
        assert!(names.contains("AGTMUX_SOCKET"), "{names:?}");
        let text = topic("environment");
        let missing: Vec<_> =
            names.iter().filter(|name| !internal.contains(&name.as_str()) && !text.contains(*name)).collect();
        assert!(missing.is_empty(), "not in the topic: {missing:?}");
    }

    /// Collects the texts such as `"AGTMUX_SOCKET"` in Rust sources.
    fn collect(dir: &Path, names: &mut std::collections::BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, names);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let is_name = |word: &&str| {
                    word.starts_with("AGTMUX_") && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                };
                names.extend(text.split('"').filter(is_name).map(str::to_owned));
            }
        }
    }
}
