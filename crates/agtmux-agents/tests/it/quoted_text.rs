//! Screens that quote words which normally indicate a state, in places where these words mean nothing.

use agtmux_agents::{CapturedScreen, Judgement, SavedScreen, judge};
use agtmux_core::state::State;

use crate::builtin;

const RULE: &str = "────────────────────────────────────────────────────────────────────────────────";

fn judged(agent: &str, title: Option<&str>, text: &str) -> Judgement {
    judge(builtin(agent), &SavedScreen { text: text.as_bytes(), title, command: None })
}

fn claude(above: &str, typed: &str, footer: &str) -> String {
    format!("{above}\n\n{RULE}\n❯\u{a0}{typed}\n{RULE}\n  {footer}\n")
}

const CLAUDE_APPROVAL: &str = "\
● Bash(touch a)
  ⎿  Waiting…

────────────────────────────────────────────────────────────────────────────────
 Bash command

   touch a
   Make a file

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to work/ from this project
   3. No

 Esc to cancel · Tab to amend
";

#[test]
fn a_quoted_dialog_is_not_a_dialog() {
    let quoted: String = CLAUDE_APPROVAL.lines().map(|line| format!("  {line}\n")).collect();
    let done = claude(&format!("● It looks so:\n{quoted}\n✻ Baked for 8s · done 6:49 AM"), "", "? for shortcuts");
    assert_eq!(judged("claude", None, &done).state, State::Completed);
    let running = claude(&format!("● It looks so:\n{quoted}\n✽ Baking… (2s · ↓ 19 tokens)"), "", "esc to interrupt");
    assert_eq!(judged("claude", None, &running).state, State::Running);
    // The same holds if the quotation looks exactly like the agent's own dialog.
    let exact = claude(&format!("{CLAUDE_APPROVAL}\n✽ Baking… (2s)"), "", "esc to interrupt");
    assert_eq!(judged("claude", None, &exact).state, State::Running);
    assert_eq!(judged("claude", None, CLAUDE_APPROVAL).state, State::WaitingApproval);
}

#[test]
fn a_dialog_with_agent_output_below_it_is_old() {
    let exact = claude(CLAUDE_APPROVAL, "", "? for shortcuts");
    assert_eq!(judged("claude", None, &exact).dialog, None);
    let more = format!("{CLAUDE_APPROVAL}● one\n● two\n● three\n");
    assert_eq!(judged("claude", None, &more).state, State::Unknown);
}

#[test]
fn typed_text_does_not_change_the_state() {
    for typed in [
        "esc to interrupt",
        "✽ Baking… (2s · esc to interrupt)",
        "API Error: 500",
        "Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n  Esc to cancel",
        "⎿  Interrupted · What should Claude do instead?\n  ✻ Waiting for 1 background agent to finish",
    ] {
        let state = judged("claude", None, &claude("● hello", typed, "? for shortcuts")).state;
        assert_eq!(state, State::Idle, "{typed}");
    }
    let codex = "• hello\n\n  Worked for 6s • 06:47\n\n› Working (3s • esc to interrupt)\n\n  mock · /srv/proj\n  ? for shortcuts\n";
    assert_eq!(judged("codex", Some("proj"), codex).state, State::Completed);
    let pi =
        format!(" hello\n\n{RULE}\n→ alpha\n  beta\n↑↓ navigate  enter select  escape/ctrl+c cancel\n{RULE}\n/srv\n");
    assert_eq!(judged("pi", None, &pi).state, State::Idle);
}

#[test]
fn model_output_does_not_change_the_state() {
    for output in [
        "● ✽ Baking… (2s · ↓ 19 tokens)",
        "● Waiting:\n  ✻ Waiting for 1 background agent to finish",
        "● Footer:\n  ⏸ manual mode on · esc to interrupt",
        "● API Error: 500 is what it said",
        "● · 1 shell still running",
    ] {
        let state = judged("claude", None, &claude(output, "", "? for shortcuts")).state;
        assert_eq!(state, State::Idle, "{output}");
        // The same output with escapes, but not in the colour that the agent uses.
        let styled = format!("\x1b[38;5;231m●\x1b[39m{}", output.trim_start_matches('●'));
        let state = judged("claude", None, &claude(&styled, "", "? for shortcuts")).state;
        assert_eq!(state, State::Idle, "{output}");
    }
}

#[test]
fn lines_of_earlier_turns_do_not_count() {
    let old = "❯ one\n\n● API Error: 500 mock\n\n✻ Cooked for 2s · done 6:51 AM\n\n❯ two\n  ⎿  Interrupted · What should \
               Claude do instead?\n\n❯ three\n\n✽ Baking… (2s · ↓ 19 tokens)\n\n❯ four\n\n● hello";
    assert_eq!(judged("claude", None, &claude(old, "", "? for shortcuts")).state, State::Idle);
    let stale = "◦ Working (3s • esc to interrupt)\n\n• hello\n\n› Ask Codex to do anything\n\n  mock · /srv/proj\n  ? for shortcuts\n";
    assert_eq!(judged("codex", Some("proj"), stale).state, State::Idle);
    assert_eq!(judged("codex", None, stale).state, State::Unknown);
}

#[test]
fn a_permission_mode_is_not_an_approval() {
    let bypassing = claude("● hello", "", "⏵⏵ bypass permissions on (shift+tab to cycle)");
    assert_eq!(judged("claude", None, &bypassing).state, State::Idle);
    let cursor = "hello\n\n → Add a follow-up\n\n  Run Everything\n";
    assert_ne!(judged("cursor", None, cursor).state, State::WaitingApproval);
}

#[test]
fn ghost_text_is_not_typed() {
    let typed = |agent: &str, text: &str| builtin(agent).typed_text(&CapturedScreen::parse(text.as_bytes()));
    let ghost = claude("● hello", "\x1b[7mr\x1b[0;2mun the tests\x1b[0m", "? for shortcuts");
    assert_eq!(typed("claude", &ghost).as_deref(), Some(""));
    let real = claude("● \x1b[1mhello\x1b[0m", "run the \x1b[2mtests\x1b[0m", "? for shortcuts");
    assert_eq!(typed("claude", &real).as_deref(), Some("run the"));
    assert_eq!(typed("claude", &claude("", "first\n  second", "")).as_deref(), Some("first\nsecond"));
    let codex = "\x1b[1m›\x1b[0m \x1b[2mAsk Codex to do anything\x1b[0m\n\n  mock · /srv/proj\n";
    assert_eq!(typed("codex", codex).as_deref(), Some(""));
    assert_eq!(typed("codex", "› Ask Codex to do anything\n\n  mock · /srv/proj\n").as_deref(), Some(""));
    assert_eq!(typed("codex", "› hello\n  you\n\n  mock · /srv/proj\n").as_deref(), Some("hello\nyou"));
    assert_eq!(typed("claude", CLAUDE_APPROVAL), None);
}

#[test]
fn only_a_dialog_overrules_a_running_title() {
    let trust = "╭────────────────────────╮\n│ Do you trust the files in this folder? │\n│ │\n│ ● 1. Trust folder (proj) │\n\
                 │   2. Don't trust │\n╰────────────────────────╯\n";
    assert_eq!(judged("gemini", Some("◇  Ready (proj)"), trust).state, State::WaitingApproval);
    assert_eq!(judged("gemini", Some("✦  Working… (proj)"), trust).state, State::WaitingApproval);
    let rest = "• hello\n\n› Ask Codex to do anything\n\n  mock · /srv/proj\n  ? for shortcuts\n";
    assert_eq!(judged("codex", Some("⠦ proj"), rest).state, State::Running);
    assert_eq!(judged("codex", Some("proj"), rest).state, State::Idle);
    assert_eq!(judged("codex", Some("[ ! ] Action Required | proj"), rest).state, State::Unknown);
    // The title does not say what Codex asks, so it gives no state.
    let strange = judged("codex", Some("[ ! ] Action Required | proj"), "  something new asks\n");
    assert_eq!(strange.state, State::Unknown);
}

#[test]
fn a_title_that_codex_did_not_set_is_ignored() {
    let rest = |footer: &str| format!("› hi\n\n• hello\n\n› Improve documentation in @filename\n\n{footer}\n");
    let state = |title: &str, footer: &str| judged("codex", Some(title), &rest(footer)).state;
    for title in ["vm", "root@vm: /srv/proj", "codex", "srv/proj"] {
        assert_eq!(state(title, "  mock default · /srv/proj"), State::Unknown, "{title}");
    }
    // The title may name the root of the repository, and both names may be truncated.
    for footer in ["  mock · /srv/proj", "  mock · ~/proj/sub · Main [default]", "  mock · /srv/pr… Plan mode"] {
        assert_eq!(state("Fix it | proj", footer), State::Idle, "{footer}");
    }
    assert_eq!(state("a-long-na... | x", "  mock · /srv/a-long-name"), State::Idle);
    assert_eq!(state("proj", "  ? for shortcuts"), State::Unknown);
    for title in ["proj | Working | Fix it", "proj | ⠋", "⠋ proj"] {
        assert_eq!(state(title, "  mock · /srv/proj"), State::Running, "{title}");
    }
}

#[test]
fn the_status_line_of_codex_is_faint_and_model_output_is_not() {
    let screen = |status: &str| format!("› hi\n\n{status}\n\n\x1b[1m›\x1b[0m x\n\n  mock · /srv/proj\n");
    let faint = screen("• \x1b[2mWorking\x1b[0m \x1b[2m(3s • esc to interrupt)\x1b[0m");
    assert_eq!(judged("codex", Some("vm"), &faint).state, State::Running);
    let output = screen("• Working (3s • esc to interrupt)");
    assert_eq!(judged("codex", Some("vm"), &output).state, State::Unknown);
    assert_eq!(judged("codex", Some("proj"), &output).state, State::Idle);
}

#[test]
fn a_pane_that_runs_a_shell_has_no_agent() {
    for command in ["bash", "-zsh", "fish", "tmux"] {
        let saved = SavedScreen { text: CLAUDE_APPROVAL.as_bytes(), title: None, command: Some(command) };
        let judgement = judge(builtin("claude"), &saved);
        assert_eq!((judgement.state, judgement.conclusive), (State::Unknown, false), "{command}");
        assert_eq!(judgement.rule.as_deref(), Some("process"));
        assert_eq!(judgement.dialog, None);
    }
    let dead =
        format!("{}\nPane is dead (status 0, Sun Nov 15 06:52:49 2026)\n", claude("● hello", "", "? for shortcuts"));
    assert_eq!(judged("claude", None, &dead).rule.as_deref(), Some("process"));
}

#[test]
fn a_possible_question_of_aider_is_not_running() {
    let turn = |below: &str| format!("{RULE}\ndiff> do it\n\n{below}\n");
    for asked in ["Run shell command? (Y)es/(N)o [Yes]: y", "Enter a name:", "Shall it be so?", "      /clear  /code"] {
        assert_eq!(judged("aider", None, &turn(asked)).state, State::Unknown, "{asked}");
    }
    assert_eq!(judged("aider", None, &turn("An answer begins")).state, State::Running);
    let stopped = format!("{}{RULE}\ndiff> \n", turn("^C\n\nAn answer begins"));
    assert_eq!(judged("aider", None, &stopped).state, State::Idle, "a stopped turn is not completed");
    let typed = format!("{}{RULE}\ndiff> next\n", turn("Yes.\n\nTokens: 2k sent, 2 received."));
    assert_eq!(judged("aider", None, &typed).state, State::Unknown, "the text may have been submitted already");
}
