//! What people write beside, before and into entries of ours is theirs.

use proptest::prelude::*;
use proptest::sample::Index;

use super::tests::{COPILOT_FORMAT, FORMAT, USERS_HOOK, bare, meaning, ours, repeats_an_event, settings};
use super::{EditError, EditHints, flat_hooks, hooks, notify};
use crate::commands::setup::command::HookCommand;

const EVENTS: &[&str] = &["Stop", "PreToolUse"];

/// The three kinds of files with hooks.
#[derive(Debug, Clone, Copy)]
enum FileKind {
    Grouped,
    Own,
    Flat,
}

impl FileKind {
    fn install(self, text: &str) -> Result<(String, EditHints), EditError> {
        match self {
            Self::Grouped => hooks::install(text, &FORMAT, &ours()),
            Self::Own => hooks::install(text, &COPILOT_FORMAT, &ours()),
            Self::Flat => flat_hooks::install(text, EVENTS, &ours()),
        }
    }

    fn remove(self, text: &str, hints: &EditHints) -> String {
        let left = match self {
            Self::Grouped => hooks::remove(text, &FORMAT, hints, &ours()),
            Self::Own => hooks::remove(text, &COPILOT_FORMAT, hints, &ours()),
            Self::Flat => flat_hooks::remove(text, EVENTS, hints, &ours()),
        };
        left.unwrap_or_else(|fault| panic!("{fault:?} in {text:?}"))
    }
}

/// Where a comment may be put in: beside each bracket, comma and colon.
fn places(text: &str) -> Vec<usize> {
    let (mut at, mut places) = (0, Vec::new());
    while at < text.len() {
        let rest = &text[at..];
        let length = match rest.as_bytes() {
            [b'"', ..] => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.expect("a string ends") + 2
            }
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest.find("*/").expect("a comment ends") + 2,
            [b'{' | b'}' | b'[' | b']' | b',' | b':', ..] => {
                places.extend([at, at + 1]);
                1
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += length;
    }
    places
}

/// With numbered comments at some of these places, and the comments.
fn remarked(text: &str, wanted: &[(Index, u8)]) -> (String, Vec<String>) {
    let places = places(text);
    let mut put: Vec<(usize, String)> = wanted
        .iter()
        .enumerate()
        .map(|(n, (index, kind))| {
            let remark = match kind % 4 {
                0 => format!("/* k{n}, \" */"),
                1 => format!("/* k{n}\n */"),
                _ => format!("// k{n} }}, [\n"),
            };
            (*index.get(&places), remark)
        })
        .collect();
    put.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut text = text.to_owned();
    put.iter().for_each(|(at, remark)| text.insert_str(*at, remark));
    (text, put.into_iter().map(|(_, remark)| remark.trim_end().to_owned()).collect())
}

proptest! {
    #[test]
    fn no_remark_is_ever_lost(
        text in settings(),
        wanted in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..5),
        kind in prop_oneof![Just(FileKind::Grouped), Just(FileKind::Own), Just(FileKind::Flat)],
    ) {
        prop_assume!(super::json::parse(&text).is_ok());
        let Ok((after, hints)) = kind.install(&text) else { return Ok(()) };
        let (edited, remarks) = remarked(&after, &wanted);
        for hints in [hints, EditHints::default()] {
            let left = kind.remove(&edited, &hints);
            for remark in &remarks {
                prop_assert!(left.contains(remark.as_str()), "{remark:?} of {edited} in {left}");
            }
            prop_assert!(!left.contains("agtmux' hook"), "{left}");
            let (mut left, mut before) = (bare(meaning(&left)), bare(meaning(&text)));
            // Whose a version is, and which of two lists of a name holds what, is another matter.
            for fields in [&mut left, &mut before].into_iter().filter_map(serde_json::Value::as_object_mut) {
                fields.remove("version");
                fields.retain(|name, _| name != "hooks" || !repeats_an_event(&text));
            }
            let nothing = serde_json::json!({});
            let of = |value: serde_json::Value| if value == nothing { serde_json::Value::Null } else { value };
            prop_assert_eq!(of(left), of(before));
        }
    }
}

#[test]
fn a_hook_that_was_commented_out_stays() {
    let text = format!("{{\"hooks\":{{\"Stop\":[\n  {USERS_HOOK}\n]}}}}");
    let (after, hints) = FileKind::Grouped.install(&text).expect("installed");
    let edited = after.replace(&format!("  {USERS_HOOK},"), &format!("  // {USERS_HOOK},"));
    assert_ne!(edited, after);
    let expected = text.replace(USERS_HOOK, &format!("// {USERS_HOOK},"));
    assert_eq!(FileKind::Grouped.remove(&edited, &hints), expected);
}

#[test]
fn a_remark_that_was_edited_is_not_undone() {
    let (after, hints) = FileKind::Grouped.install("{\n  // old remark\n}\n").expect("installed");
    assert_eq!(FileKind::Grouped.remove(&after, &hints), "{\n  // old remark\n}\n");
    let edited = after.replace("old remark", "NEW REMARK by user");
    assert_eq!(FileKind::Grouped.remove(&edited, &hints), "{\n  // NEW REMARK by user\n}\n");
}

#[test]
fn remarks_in_what_was_blank_keep_it() {
    for kind in [FileKind::Grouped, FileKind::Own, FileKind::Flat] {
        for (place, mine) in [("{\n", "  // mine\n"), ("\"hooks\": {\n", "    // mine\n")] {
            let (after, hints) = kind.install("").expect("installed");
            let edited = after.replacen(place, &format!("{place}{mine}"), 1);
            let left = kind.remove(&edited, &hints);
            assert!(left.contains(mine) && !left.contains("agtmux"), "{kind:?}: {left}");
            assert_eq!(kind.remove(&after, &hints), "", "{kind:?}");
        }
    }
}

#[test]
fn remarks_within_an_entry_are_put_before_it() {
    let (after, hints) = FileKind::Grouped.install("{}\n").expect("installed");
    let edited = after.replacen("\"timeout\"", "/* why */ \"timeout\"", 1);
    let left = FileKind::Grouped.remove(&edited, &hints);
    assert_eq!(left.split_whitespace().collect::<String>(), "{\"hooks\":{\"SessionStart\":[/*why*/]}}", "{left}");
}

#[test]
fn a_remark_to_the_end_of_a_line_swallows_no_other() {
    let entry = format!("{{\"command\": \"{}\"}}", ours().line("Stop"));
    let text = format!("{{\"hooks\": {{\"Stop\": [1, // c\n  {entry} /* d\n e */ ,\n  2]}}}}");
    let left = FileKind::Flat.remove(&text, &EditHints::default());
    assert_eq!(meaning(&left), serde_json::json!({"hooks": {"Stop": ["1", "2"]}}), "{left}");
    assert!(left.contains("// c\n") && left.contains("/* d\n e */"), "{left}");
}

#[test]
fn remarks_about_notify_stay() {
    let codex = HookCommand::new("/opt/agtmux", "codex");
    for (before, from, to, expected) in [
        ("notify = [ # old\n]\n", "# old", "# NEW", "notify = [ # NEW\n]\n"),
        ("a = 1\n", "\"]\n", "\"] # mine\nb = 2\n", "a = 1\n# mine\nb = 2\n"),
        ("a = 1", "\"]", "\"]  # mine", "a = 1\n# mine"),
        ("", "\"hook\"", "# a, b\n\"hook\"", "notify = [# a, b\n]\n"),
        ("", "\"notify\"]", "\"notify\" # a, b\n, # c\n]", "notify = [ # a, b\n # c\n]\n"),
        ("notify = ['x']\n", "\"--then\",", "\"--then\" # a, b\n,", "notify = [# a, b\n'x']\n"),
        ("notify = ['x'] # mine\n", "\"hook\"", "# new\n\"hook\"", "notify = [# new\n'x'] # mine\n"),
    ] {
        let (after, hints) = notify::install(before, &codex).expect("installed");
        assert!(after.contains(from), "{after}");
        let left = notify::remove(&after.replacen(from, to, 1), &hints, &codex);
        assert_eq!(left.as_deref(), Ok(expected), "by way of {after}");
    }
}

#[test]
fn what_is_only_like_ours_is_left_alone() {
    let entry = |line: &str, more: &str| {
        format!(r#"{{ "matcher": "", "hooks": [{{ "type": "command", "command": "{line}", "timeout": 5{more} }}] }}"#)
    };
    let line = ours().line("Stop");
    for (event, group) in [
        ("PreCompact", entry("agtmux hook claude PreCompact", "")),
        ("PreCompact", entry(&ours().line("PreCompact"), "")),
        ("Stop", entry("/opt/agtmux hook claude Stop", "")),
        ("Stop", entry(&ours().line("PreToolUse"), "")),
        ("Stop", entry(&line, ", \"async\": true")),
        ("Stop", entry(&line, "").replace("\"matcher\": \"\"", "\"matcher\": \"auto\"")),
        ("Stop", entry(&line, "").replace("\"matcher\": \"\", ", "")),
        ("Stop", format!(r#"{{ "type": "command", "command": "{line}", "timeout": 5 }}"#)),
    ] {
        let text = format!("{{\"hooks\": {{\"{event}\": [{group}]}}}}");
        assert_eq!(hooks::installed(&text, &FORMAT, &EditHints::default(), &ours()), Ok(Vec::new()), "{text}");
        let (after, hints) = FileKind::Grouped.install(&text).expect("installed");
        assert_eq!(FileKind::Grouped.remove(&after, &hints), text);
    }
    let text = format!("{{\"hooks\": {{\"PreCompact\": [{}]}}}}", entry(&ours().line("PreCompact"), ""));
    let hints = EditHints { events: vec!["PreCompact".into()], ..EditHints::default() };
    assert_eq!(FileKind::Grouped.remove(&text, &hints), "{}", "an older agtmux has put it there");
}
