use crate::mirror::{MirrorShell, OutputCleaner};

fn cleaned(shell: MirrorShell, raw: bool, bytes: &[u8]) -> (String, bool) {
    let mut cleaner = OutputCleaner::new(shell, raw);
    let mut out = cleaner.push(bytes);
    out.extend(cleaner.finish());
    (String::from_utf8_lossy(&out).into_owned(), cleaner.saw_full_screen())
}

fn bash(bytes: &str) -> String {
    cleaned(MirrorShell::Bash, false, bytes.as_bytes()).0
}

#[test]
fn line_endings_of_the_terminal_are_undone() {
    assert_eq!(bash("a\r\nb\r\n"), "a\nb\n");
    assert_eq!(bash("no newline"), "no newline");
    assert_eq!(bash("own\r\r\n"), "own\r\n", "the program itself wrote CR LF");
    assert_eq!(bash("\r\n\r\n"), "\n\n");
    assert_eq!(bash(""), "");
}

#[test]
fn a_progress_bar_is_its_last_state_unless_raw() {
    assert_eq!(bash("10 %\r50 %\r100 %\r\ndone\r\n"), "100 %\ndone\n");
    assert_eq!(bash("long text\rxy"), "xyng text");
    let raw = cleaned(MirrorShell::Bash, true, b"10 %\r50 %\r\n").0;
    assert_eq!(raw, "10 %\r50 %\n");
}

#[test]
fn colours_and_other_codes_are_kept() {
    assert_eq!(bash("\u{1b}[31mred\u{1b}[0m\r\n"), "\u{1b}[31mred\u{1b}[0m\n");
}

#[test]
fn a_full_screen_program_is_named_and_its_screen_left_out() {
    let bytes = b"before\r\n\x1b[?1049h\x1b[Hdrawn\r\nrows\x1b[?1049lafter\r\n";
    assert_eq!(cleaned(MirrorShell::Bash, false, bytes), ("before\nafter\n".into(), true));
    let (raw, saw) = cleaned(MirrorShell::Bash, true, bytes);
    assert!(raw.contains("drawn") && raw.contains("\u{1b}[?1049l") && saw, "{raw}");
    assert!(!cleaned(MirrorShell::Bash, false, b"plain\r\n").1);
}

#[test]
fn what_fish_writes_before_the_output_is_dropped() {
    let prelude = "\u{1b}[?2004l\u{1b}[?1004l\u{1b}]0;echo a /tmp\u{7}\u{1b}[30m\u{1b}[m\u{f}\r";
    let fish = |bytes: &str| cleaned(MirrorShell::Fish, false, bytes.as_bytes()).0;
    assert_eq!(fish(&format!("{prelude}a\r\n")), "a\n");
    assert_eq!(fish(prelude), "");
    assert_eq!(fish(&format!("{prelude}\u{1b}[32mgreen\u{1b}[0m\r\n")), "\u{1b}[32mgreen\u{1b}[0m\n");
    assert_eq!(fish("\u{1b}[?2004lplain\r\n"), "plain\n", "without a title");
    assert_eq!(fish(&format!("{prelude}a\r\n\u{1b}]133;D;0\u{7}")), "a\n", "fish 4 has its own marks");
}

#[test]
fn a_reader_can_resume_only_where_no_line_is_open() {
    let mut cleaner = OutputCleaner::new(MirrorShell::Bash, false);
    assert_eq!(cleaner.push(b"a\r\nb"), b"a\n");
    assert!(!cleaner.is_at_line_start());
    assert_eq!(cleaner.push(b"c\r\n"), b"bc\n");
    assert!(cleaner.is_at_line_start());
}
