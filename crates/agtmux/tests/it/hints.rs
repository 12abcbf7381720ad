//! The hints in messages, and the commands that they name.

use agtmux_testkit::agtmux::CommandResult;

/// The arguments of `agtmux`.
pub(crate) type NamedCommand = Vec<String>;

/// The hints that a command printed.
pub(crate) fn hints(result: &CommandResult) -> Vec<String> {
    result.stderr.lines().filter_map(|line| Some(line.trim().strip_prefix("try: ")?.to_owned())).collect()
}

/// The commands that a hint names. Alternatives such as `approve|deny` give one command each. `reference` names the
/// agent if the hint does not.
pub(crate) fn commands_in(hint: &str, reference: &str) -> Vec<NamedCommand> {
    let mut commands = Vec::new();
    for part in hint.split(';') {
        let part = part.split("   (").next().unwrap_or_default().trim();
        if let Some(answers) = part.strip_prefix("accepted answers: ") {
            let answers = answers.split(", ").filter(|answer| !answer.contains("several"));
            commands.extend(answers.map(|answer| words(&format!("respond {reference} {answer}"), reference)));
        } else if let Some((_, command)) = part.split_once("agtmux ") {
            commands.extend(alternatives(command).iter().map(|command| words(command, reference)));
        }
    }
    commands
}

/// Only the last argument has alternatives, and only the last alternative has several words.
fn alternatives(command: &str) -> Vec<String> {
    let start = command.split_once('|').map_or(0, |(before, _)| before.rfind(' ').map_or(0, |blank| blank + 1));
    let (before, last) = command.split_at(start);
    last.split('|').map(|alternative| format!("{before}{alternative}")).collect()
}

/// The words of a command line, with values in place of the names of values.
fn words(command: &str, reference: &str) -> NamedCommand {
    let value = |word: &str| match word.trim_matches('\'') {
        "REF" => reference.to_owned(),
        "TEXT" | "T" => "hello".to_owned(),
        "N" => "1".to_owned(),
        "NAME" => "build".to_owned(),
        "COMMAND" => "true".to_owned(),
        other => other.to_owned(),
    };
    let mut words: Vec<String> = command.split_whitespace().map(value).collect();
    if words.last().is_some_and(|last| last == "--text") {
        words.push("hello".to_owned());
    }
    words
}

#[test]
fn the_commands_of_a_hint_are_found() {
    let lines = |hint: &str| -> Vec<String> { commands_in(hint, "%7").iter().map(|words| words.join(" ")).collect() };
    assert_eq!(lines("use one of these instead"), Vec::<String>::new());
    assert_eq!(lines("agtmux list panes --all   (shows the current state)"), ["list panes --all"]);
    assert_eq!(lines("agtmux send REF --text TEXT"), ["send %7 --text hello"]);
    assert_eq!(
        lines("agtmux respond %1 approve|deny|N|--text TEXT"),
        ["respond %1 approve", "respond %1 deny", "respond %1 1", "respond %1 --text hello"]
    );
    assert_eq!(
        lines("accepted answers: deny, 2, --text; or answer the dialog in the pane: agtmux attach %0"),
        ["respond %7 deny", "respond %7 2", "respond %7 --text hello", "attach %0"]
    );
    assert_eq!(lines("agtmux task run --session s NAME 'COMMAND'"), ["task run --session s build true"]);
}
