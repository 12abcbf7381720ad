//! Runs every command of docs/add-your-agent.md and checks its output.

use std::path::Path;

use agtmux_testkit::agtmux::{SOON, run, world};
use agtmux_testkit::{TestWorld, wait_for};

const GUIDE: &str = include_str!("../../../../docs/add-your-agent.md");

/// Read-only commands are repeated until their output is as expected.
const READ_ONLY_COMMANDS: [&str; 4] =
    ["tmux capture-pane ", "agtmux list ", "agtmux explain ", "agtmux adapters check "];

/// A block of commands and the lines that their output must contain.
struct GuideStep {
    commands: String,
    expected_output: Vec<String>,
}

fn guide_steps() -> Vec<GuideStep> {
    let mut parts: Vec<GuideStep> = Vec::new();
    let mut lines = GUIDE.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind {
            "sh" => parts.push(GuideStep { commands: block.join("\n"), expected_output: Vec::new() }),
            "text" => {
                parts.last_mut().expect("commands come first").expected_output.extend(block.into_iter().map(Into::into))
            }
            other => panic!("unknown code block '{other}' in the guide"),
        }
    }
    parts
}

fn output(world: &TestWorld, commands: &str) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_agtmux")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = world.command("sh");
    shell.args(["-euc", commands]).env("PATH", path).current_dir(world.home());
    let done = run(&mut shell);
    (done.code, done.text() + &done.stderr)
}

#[test]
fn every_command_of_the_guide_works() {
    let (world, parts) = (world(), guide_steps());
    assert!(
        parts.len() > 10 && parts.iter().filter(|part| !part.expected_output.is_empty()).count() > 8,
        "the guide has {} steps",
        parts.len()
    );
    for GuideStep { commands, expected_output: shows } in parts {
        let is_read_only = commands.lines().all(|line| {
            READ_ONLY_COMMANDS.iter().any(|read_only| line.starts_with(read_only)) || line == "agtmux adapters"
        });
        let attempt = || {
            let (code, text) = output(&world, &commands);
            let missing: Vec<&String> = shows.iter().filter(|line| !text.contains(line.trim())).collect();
            if code == Some(0) && missing.is_empty() {
                Ok(())
            } else {
                Err(format!("{code:?}, no {missing:?} in\n{text}"))
            }
        };
        match is_read_only {
            true => wait_for(&commands, SOON, attempt),
            false => attempt().unwrap_or_else(|why| panic!("{commands}\n{why}")),
        }
    }
}
