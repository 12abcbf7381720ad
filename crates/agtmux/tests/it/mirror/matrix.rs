//! Shells, prompts and versions of tmux in all combinations.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_testkit::{TestWorld, skip, skip_outside_soak};
use serde_json::json;

use super::MirrorFixture;

/// How many commands the long form runs in each combination.
const LONG: usize = 300;

/// A shell, the name of a prompt, and the file that sets the prompt.
const PROMPTS: [(&str, &str, &str); 13] = [
    ("bash", "plain", "PS1='$ '"),
    ("bash", "two-line", "PS1='two rows\\n$ '"),
    ("bash", "right-clock", r"PS1='\[\e7\e[60C\A\e8\]$ '"),
    ("zsh", "plain", "PS1='%# '"),
    ("zsh", "two-line", "PS1=$'two rows\\n%# '"),
    ("zsh", "right-clock", "PS1='%# ' RPROMPT='%*'"),
    (
        "zsh",
        "transient",
        "precmd() { PS1=$'two rows\\n%# ' }\nzle-line-finish() { PS1='> '; zle reset-prompt }\nzle -N zle-line-finish",
    ),
    ("fish", "plain", "function fish_prompt; echo -n '$ '; end"),
    ("fish", "two-line", "function fish_prompt; echo two rows; echo -n '$ '; end"),
    ("fish", "right-clock", "function fish_prompt; echo -n '$ '; end; function fish_right_prompt; date +%H:%M; end"),
    ("dash", "plain", "PS1='$ '"),
    ("dash", "two-line", "PS1='two rows\n$ '"),
    ("dash", "right-clock", r#"PS1="$(printf '\0337\033[60C12:00\0338')$ ""#),
];

/// Commands that mean the same in all shells, with their output and code. `None`: the shells print different texts.
const COMMANDS: [(&str, Option<&str>, i32); 17] = [
    ("true", Some(""), 0),
    ("false", Some(""), 1),
    ("echo hello", Some("hello\n"), 0),
    ("printf nonl", Some("nonl"), 0),
    ("printf '\\n\\nx\\n'", Some("\n\nx\n"), 0),
    ("sh -c 'exit 3'", Some(""), 3),
    ("sh -c 'kill -9 $$'", None, 137),
    ("echo 'it is' \"a  b\" '日本 é'", Some("it is a  b 日本 é\n"), 0),
    ("echo 'hey!'", Some("hey!\n"), 0),
    ("echo a\necho b", Some("a\nb\n"), 0),
    ("printf '$ \\nuser@host:~# ls\\n> '", Some("$ \nuser@host:~# ls\n> "), 0),
    ("printf 'a\\n\\033[?1049hdrawn\\033[?1049lb\\n'", Some("a\nb\n"), 0),
    ("sh -c 'sleep 0.01' &", None, 0),
    ("clear", None, 0),
    ("cd /", Some(""), 0),
    ("echo $PAGER", Some("cat\n"), 0),
    ("sh -c 'cat <<E\nx y\nE'", Some("x y\n"), 0),
];

/// Outputs that the screen cannot show as they are.
const EXACT_COMMANDS: [(&str, &str); 4] = [
    ("printf 'a\\tb\\n'", "a\tb\n"),
    ("printf '\\001\\377\\n'", "\u{1}\u{10ffff}\n"),
    ("printf 'x\\033]133;D;0\\007y\\n'", "x\u{1b}]133;D;0\u{7}y\n"),
    ("printf '\\033[31mred\\033[0m'", "\u{1b}[31mred\u{1b}[0m"),
];

/// Commands in the syntax of POSIX shells.
const POSIX_COMMANDS: [(&str, &str, i32); 3] = [
    ("(exit 3)", "", 3),
    ("cat <<E\nx  y\n$((1+1))\nE\necho b", "x  y\n2\nb\n", 0),
    ("if true; then\necho 'it is'\nfi", "it is\n", 0),
];

fn write_prompt(world: &TestWorld, prompt: &str) {
    let home = world.home();
    for file in [".bash_profile", ".zshrc", ".profile"] {
        fs::write(home.join(file), format!("{prompt}\n")).expect("the world is writable");
    }
    let fish = world.dir().join("config/fish");
    fs::create_dir_all(&fish).expect("created");
    fs::write(fish.join("config.fish"), format!("{prompt}\n")).expect("written");
}

/// A shared terminal with this shell and prompt. `tmux` is another program than the installed one.
fn terminal(shell: &'static str, prompt: &str, tmux: Option<&Path>) -> Option<MirrorFixture> {
    MirrorFixture::prepared(shell, |world| {
        write_prompt(world, prompt);
        if let Some(tmux) = tmux {
            world.install_script("tmux", &format!("#!/bin/sh\nexec {} \"$@\"\n", tmux.display()));
        }
    })
}

/// tmux 3.2 shows blanks at the ends of lines that the program has not written.
fn without_end_blanks(text: &str) -> Vec<&str> {
    text.split('\n').map(|line| line.trim_end_matches(' ')).collect()
}

/// Runs this many commands and checks each result. Each command must start and end once.
fn run_commands(fixture: &MirrorFixture, name: &str, count: usize) {
    let check = |command: &str, output: Option<&str>, code: i32| {
        let result = fixture.json(&["exec", "--json", command]);
        assert_eq!(result["exit_code"], json!(code), "{name}: {command}: {result}");
        if let Some(output) = output {
            let found = result["output"].as_str().unwrap_or_default();
            let is_same =
                found == output || fixture.shell == "dash" && without_end_blanks(found) == without_end_blanks(output);
            assert!(is_same, "{name}: {command}: {result}");
        }
    };
    COMMANDS.iter().cycle().take(count).for_each(|(command, output, code)| check(command, *output, *code));
    let is_marked = fixture.shell != "dash";
    for (command, output) in EXACT_COMMANDS.iter().filter(|_| is_marked) {
        let result = fixture.json(&["exec", "--json", "--raw", command]);
        assert_eq!((&result["output"], &result["exit_code"]), (&json!(output), &json!(0)), "{name}: {command}");
    }
    let posix = POSIX_COMMANDS.iter().filter(|_| fixture.shell != "fish");
    posix.for_each(|(command, output, code)| check(command, Some(output), *code));
    if is_marked && count >= LONG {
        let text = "0123456789 the quick brown fox\n".repeat(170_000);
        let file = fixture.world.dir().join("tmp/large");
        fs::write(&file, &text).expect("the world is writable");
        let done = fixture.exec(&format!("cat {}", file.display()));
        assert!(done.stdout == text.as_bytes(), "{name}: 5 MB: {} bytes, {}", done.stdout.len(), done.stderr);
    }
    let refused = fixture.exec("echo 'open");
    assert!(refused.stderr.contains("the command is not complete"), "{name}: {}", refused.stderr);
    let timed_out = fixture.mirror(&["exec", "--timeout", "300ms", "echo a; sleep 1000"]);
    assert_eq!(timed_out.code, Some(124), "{name}: {}", timed_out.stderr);
    let item = fixture.wait_for_status("ready");
    let posix = if fixture.shell == "fish" { 0 } else { POSIX_COMMANDS.len() };
    let exact = if is_marked { EXACT_COMMANDS.len() + usize::from(count >= LONG) } else { 0 };
    let run = count + 1 + posix + exact;
    assert_eq!(item["last_number"], json!(run), "{name}: one start and one end per command");
    assert!(fixture.activity(0).is_empty(), "{name}: commands of agtmux are no activity");
}

fn run_all(tmux: Option<&Path>, version: &str, count: usize) {
    for (shell, kind, prompt) in PROMPTS {
        if let Some(fixture) = terminal(shell, prompt, tmux) {
            run_commands(&fixture, &format!("tmux {version}, {shell}, {kind} prompt"), count);
        }
    }
}

#[test]
fn commands_return_the_same_in_all_shells_and_with_all_prompts() {
    run_all(None, "(installed)", COMMANDS.len());
}

#[test]
fn commands_return_the_same_in_all_versions_of_tmux() {
    if skip_outside_soak() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tmux-versions");
    let built = Command::new(script).output().expect("the script runs");
    for line in String::from_utf8_lossy(&built.stdout).lines() {
        match line.split_once(' ') {
            Some(("skipped", why)) => skip(&format!("tmux {why}")),
            Some((version, program)) => run_all(Some(&PathBuf::from(program)), version, LONG),
            None => panic!("unexpected: {line}"),
        }
    }
}
