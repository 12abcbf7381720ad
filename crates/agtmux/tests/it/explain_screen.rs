//! `agtmux explain --screen` judges a saved screen without a daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn explain(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agtmux")).arg("explain").args(args).output().expect("runs")
}

fn explain_json(args: &[&str]) -> Value {
    let output = explain(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn recorded_screen(agent: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../agtmux-agents/evidence/screens").join(agent).join(file)
}

#[test]
fn an_approval_dialog_is_printed_with_its_options() {
    let file = recorded_screen("claude", "claude-parallel-approval.ansi");
    let file = file.to_str().expect("plain");
    let result =
        explain_json(&["--screen", file, "--agent", "claude", "--command", "claude", "--title", "✳ Claude Code"]);
    let keys: Vec<&String> = result.as_object().expect("an object").keys().collect();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert_eq!(
        (&result["agent_type"], &result["state"], &result["conclusive"]),
        (&"claude".into(), &"waiting_approval".into(), &true.into())
    );
    assert_eq!((&result["rule"], &result["evidence"]), (&"permission".into(), &"Do you want to proceed?".into()));
    let dialog = &result["dialog"];
    assert_eq!((&dialog["kind"], &dialog["question"]), (&"approval".into(), &"Do you want to proceed?".into()));
    assert_eq!((&dialog["options"][2]["n"], &dialog["options"][2]["label"]), (&3.into(), &"No".into()));
    assert!(dialog["subject"].as_str().expect("text").contains("touch /srv/project/work/p1"));
    assert_eq!(dialog["fingerprint"].as_str().map(str::len), Some(32));

    let text = String::from_utf8(explain(&["--screen", file, "--agent", "claude"]).stdout).expect("text");
    assert!(text.starts_with("claude waiting_approval · conclusive · rule permission v1\n"), "{text}");
    assert!(text.contains("\n  3. No\n"), "{text}");
}

#[test]
fn title_and_command_affect_the_state() {
    let file = recorded_screen("codex", "codex-running-stream.ansi");
    let file = file.to_str().expect("plain");
    let state =
        |more: &[&str]| explain_json(&[&["--screen", file, "--agent", "codex"], more].concat())["state"].clone();
    assert_eq!(state(&[]), "unknown");
    assert_eq!(state(&["--title", "⠼ proj"]), "running");
    assert_eq!(state(&["--title", "proj"]), "idle");
    assert_eq!(state(&["--title", "⠼ proj", "--command", "bash"]), "unknown");
}

#[test]
fn screen_text_is_printed_without_control_characters() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("screen");
    let rule = "─".repeat(40);
    let hostile = format!(
        "● \x1b]0;pwned\x07hello\u{202e}\n✻ Baked\u{9b}31m\u{2066} for 8s · done\x07\n\n{rule}\n❯ \n{rule}\n  ? for shortcuts\n"
    );
    fs::write(&file, [hostile.as_bytes(), b"\xff\xfe"].concat()).expect("writes");
    for json in [&[][..], &["--json"]] {
        let output = explain(&[&["--screen", file.to_str().expect("plain"), "--agent", "claude"], json].concat());
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(
            !text
                .chars()
                .any(|c| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')),
            "{text:?}"
        );
    }
}

#[test]
fn an_unknown_agent_type_is_refused() {
    let output = explain(&["--screen", "/dev/null", "--agent", "unknown"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("claude, codex"), "{output:?}");
    assert_eq!(explain_json(&["--screen", "/dev/null", "--agent", "claude"])["state"], "unknown");
}
