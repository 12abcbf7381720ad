//! The output is what the program wrote.

use std::fs;

use agtmux_testkit::hostile_texts::assert_terminal_safe;
use agtmux_testkit::terminal::run_on_terminal;

use super::{MirrorFixture, for_each_shell};

#[test]
fn bytes_arrive_unchanged() {
    let all: Vec<u8> = (0..=255).collect();
    let files: [(&str, Vec<u8>); 7] = [
        ("all bytes", all),
        ("own line ends", b"a\r\nb\r\n".to_vec()),
        ("bad text", b"\xff\xfe\xc3(\xe2\x82\n".to_vec()),
        ("colours", b"\x1b[31mred\x1b[0m\n".to_vec()),
        ("wide", "日本語 🎉 é\n".repeat(50).into_bytes()),
        ("unfinished code", b"a\x1b]0;title".to_vec()),
        ("blank lines", b"\n\n\n  \n".to_vec()),
    ];
    for_each_shell(|fixture| {
        let file = fixture.world.dir().join("tmp/bytes");
        for (name, bytes) in &files {
            fs::write(&file, bytes).expect("written");
            let done = fixture.mirror(&["exec", "--raw", &format!("cat {}", file.display())]);
            assert_eq!(done.code, Some(0), "{}: {name}: {}", fixture.shell, done.stderr);
            let (found, wanted) = (done.stdout.escape_ascii().to_string(), bytes.escape_ascii().to_string());
            assert_eq!(found, wanted, "{}: {name}", fixture.shell);
        }
    });
}

#[test]
fn five_megabytes_arrive_whole() {
    for_each_shell(|fixture| {
        let file = fixture.world.dir().join("tmp/large");
        let line: String = "0123456789 the quick brown fox jumps over the lazy dog\n".repeat(1000);
        let text = (0..95).map(|n| format!("{n}\n{line}")).collect::<String>();
        fs::write(&file, &text).expect("written");
        let done = fixture.exec(&format!("cat {}", file.display()));
        assert_eq!((done.code, done.stdout.len()), (Some(0), text.len()), "{}: {}", fixture.shell, done.stderr);
        assert!(done.stdout == text.as_bytes(), "{}", fixture.shell);
    });
}

#[test]
fn forged_marks_do_not_end_a_command() {
    for_each_shell(|fixture| {
        let file = fixture.world.dir().join("tmp/forged");
        let forged =
            "a\n\x1b]133;D;0\x07b\x1b]133;D;0;agt=guess;2;r=1\x07\x1b]133;A;agt=guess;9\x07c\n\x1b]133;C\x1b\\d\n";
        fs::write(&file, forged).expect("written");
        let done = fixture.exec(&format!("cat {}; sh -c 'exit 9'", file.display()));
        assert_eq!((done.text().as_str(), done.code), (forged, Some(9)), "{}", fixture.shell);
        fixture.assert_exec("echo next", "next\n", 0);
    });
}

#[test]
fn output_that_looks_like_a_prompt_is_output() {
    for_each_shell(|fixture| {
        fixture.assert_exec("printf '$ \\nuser@host:~# ls\\n> '", "$ \nuser@host:~# ls\n> ", 0);
        fixture.assert_exec("clear", &fixture.exec("clear").text(), 0);
        fixture.assert_exec("printf '10%%\\r50%%\\r100%%\\n'", "100%\n", 0);
        let screen = "printf 'a\\n\\033[?1049hdrawn\\033[?1049lb\\n'";
        let done = fixture.exec(screen);
        assert_eq!(done.text(), "a\nb\n");
        assert!(done.stderr.contains("full-screen program"), "{}", done.stderr);
    });
}

#[test]
fn codes_in_the_output_do_not_act_on_the_terminal_of_the_caller() {
    let fixture = MirrorFixture::bash();
    let command = "printf '\\033]0;title\\007\\033[2Jtext\\n'";
    let (printed, status) = run_on_terminal(&mut fixture.command(&["exec", command]), 200);
    assert_eq!(status.code(), Some(0));
    assert_terminal_safe(&printed, true);
    assert!(String::from_utf8_lossy(&printed).contains("text"), "{}", printed.escape_ascii());
}
