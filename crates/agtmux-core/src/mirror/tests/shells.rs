//! Tests with streams of bytes as bash, zsh and fish write them.

use super::{NONCE, command, mark, prompt, track};
use crate::mirror::ShellEvent;

fn ended(number: u64, code: i32, bytes: u64) -> ShellEvent {
    ShellEvent::Ended { number, code: Some(code), text: Some("x".into()), bytes }
}

#[test]
fn commands_of_the_person_and_of_agtmux_are_told_apart() {
    let taken = mark(&format!("I;agt={NONCE};2;i=e1;s=4"));
    let stream = [prompt(1), command(1, "a\r\n", 0), prompt(2), taken, command(2, "b\r\n", 3), prompt(3)].concat();
    let tracked = track(stream.as_bytes(), &[]);
    let cwd = || Some("/home".to_owned());
    let started = |number, exec: Option<&str>| ShellEvent::Started {
        number,
        exec: exec.map(str::to_owned),
        text: None,
        cwd: cwd(),
    };
    assert_eq!(
        tracked.events,
        [
            ShellEvent::Prompt { seq: 1, cwd: cwd() },
            ShellEvent::Ready { seq: 1 },
            started(1, None),
            ended(1, 0, 3),
            ShellEvent::Prompt { seq: 2, cwd: cwd() },
            ShellEvent::Ready { seq: 2 },
            ShellEvent::Taken { seq: 2, exec: "e1".into(), stashed: 4 },
            started(2, Some("e1")),
            ended(2, 3, 3),
            ShellEvent::Prompt { seq: 3, cwd: cwd() },
            ShellEvent::Ready { seq: 3 },
            ShellEvent::Closed,
        ]
    );
    assert_eq!(tracked.outputs, [b"a\r\n", b"b\r\n"]);
}

#[test]
fn the_repeated_start_marks_of_bash_are_one_command() {
    let again = mark(&format!("C;agt={NONCE};1"));
    let tracked = track([prompt(1), command(1, &format!("a\r\n{again}b\r\n"), 0)].concat().as_bytes(), &[]);
    assert_eq!(tracked.outputs, [b"a\r\nb\r\n"]);
    assert!(tracked.events.contains(&ended(1, 0, 6)), "{tracked:?}");
}

#[test]
fn the_filler_of_zsh_after_the_output_is_dropped() {
    let end = mark(&format!("X;agt={NONCE};1"));
    let tracked =
        track([prompt(1), command(1, &format!("nonl{end}\x1b[7m%\x1b[0m   \r \r"), 0)].concat().as_bytes(), &[]);
    assert_eq!(tracked.outputs, [b"nonl"]);
}

#[test]
fn a_prompt_without_its_end_mark_is_ready_when_the_editor_starts() {
    let stream = format!("{}\x1b[?2004h> ", mark(&format!("A;agt={NONCE};1;q='/'")));
    let tracked = track(stream.as_bytes(), &[3]);
    assert!(tracked.events.contains(&ShellEvent::Ready { seq: 1 }), "{tracked:?}");
}

#[test]
fn a_prompt_that_is_drawn_again_is_the_same_prompt() {
    let again = mark(&format!("B;agt={NONCE};1;0"));
    let tracked = track([prompt(1), again.clone(), again].concat().as_bytes(), &[]);
    assert_eq!(tracked.events.len(), 3, "{tracked:?}");
}

#[test]
fn without_prompt_command_the_prompt_reports_the_end() {
    let start = mark(&format!("C;agt={NONCE};1"));
    let tracked = track([prompt(1), start, "a".into(), mark(&format!("B;agt={NONCE};1;7"))].concat().as_bytes(), &[]);
    let end = ShellEvent::Ended { number: 1, code: Some(7), text: None, bytes: 1 };
    assert!(tracked.events.contains(&end), "{tracked:?}");
}

#[test]
fn a_syntax_error_runs_nothing() {
    let taken = mark(&format!("I;agt={NONCE};1;i=e1;s=0"));
    let back = mark(&format!("D;2;agt={NONCE};1;r=0"));
    let tracked = track([prompt(1), taken, "bash: syntax error\r\n".into(), back].concat().as_bytes(), &[]);
    let nothing = ShellEvent::NothingRan { code: 2, exec: Some("e1".into()) };
    assert!(tracked.events.contains(&nothing) && tracked.outputs.is_empty(), "{tracked:?}");
}

#[test]
fn an_open_quote_asks_for_more_input() {
    let tracked = track([prompt(1), mark(&format!("P;agt={NONCE};1"))].concat().as_bytes(), &[]);
    assert!(tracked.events.contains(&ShellEvent::MoreInput { seq: 1 }), "{tracked:?}");
}

#[test]
fn marks_end_with_bel_or_with_a_string_terminator() {
    let stream = [prompt(1), command(1, "a", 0)].concat().replace('\x07', "\x1b\\");
    assert_eq!(track(stream.as_bytes(), &[1]).outputs, [b"a"]);
}

#[test]
fn a_command_that_the_pane_does_not_outlive_has_no_end() {
    let tracked = track([prompt(1), mark(&format!("C;agt={NONCE};1")), "a\x1b]133;D".into()].concat().as_bytes(), &[]);
    assert_eq!(tracked.outputs, [b"a\x1b]133;D"]);
    assert_eq!(tracked.events.last(), Some(&ShellEvent::Closed));
    assert!(!tracked.events.iter().any(|event| matches!(event, ShellEvent::Ended { .. })));
}

#[test]
fn commands_are_numbered_after_those_of_an_earlier_reader() {
    let (mut tracker, mut numbers) = (crate::mirror::ShellTracker::new(NONCE, 41), Vec::new());
    tracker.push([prompt(9), command(9, "", 0)].concat().as_bytes(), &mut |piece| {
        if let crate::mirror::TrackedPiece::Event(ShellEvent::Ended { number, .. }) = piece {
            numbers.push(number);
        }
    });
    assert_eq!(numbers, [42]);
}
