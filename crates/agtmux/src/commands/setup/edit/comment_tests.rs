//! Tests that the user's comments around and inside agtmux's entries survive install and remove.

use std::sync::LazyLock;

use agtmux_agents::SetupFile;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::tests::{
    COPILOT_FORMAT, FORMAT, USERS_HOOK, codex, editor, hook_command, json_value, repeats_an_event, settings,
    setup_file, without_empty_hooks,
};
use super::{EditHints, SettingsEditor};

static FLAT_FORMAT: LazyLock<SetupFile> =
    LazyLock::new(|| setup_file(json!({"path": "", "format": "flat", "events": ["Stop", "PreToolUse"], "version": 1})));

fn remove(format: &'static SetupFile, text: &str, hints: &EditHints) -> String {
    editor(format).remove(text, hints).unwrap_or_else(|fault| panic!("{fault:?} in {text:?}"))
}

/// The offsets where a comment can be inserted: beside each bracket, comma and colon.
fn offsets(text: &str) -> Vec<usize> {
    let (mut at, mut offsets) = (0, Vec::new());
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
                offsets.extend([at, at + 1]);
                1
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += length;
    }
    offsets
}

/// Inserts numbered comments. `wanted` selects the offset and the kind of each comment. Returns the new text and the
/// comments.
fn with_comments(text: &str, wanted: &[(Index, u8)]) -> (String, Vec<String>) {
    let offsets = offsets(text);
    let mut put: Vec<(usize, String)> = wanted
        .iter()
        .enumerate()
        .map(|(n, (index, kind))| {
            let comment = match kind % 4 {
                0 => format!("/* k{n}, \" */"),
                1 => format!("/* k{n}\n */"),
                _ => format!("// k{n} }}, [\n"),
            };
            (*index.get(&offsets), comment)
        })
        .collect();
    put.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut text = text.to_owned();
    put.iter().for_each(|(at, comment)| text.insert_str(*at, comment));
    (text, put.into_iter().map(|(_, comment)| comment.trim_end().to_owned()).collect())
}

proptest! {
    #[test]
    fn no_comment_is_ever_lost(
        text in settings(),
        wanted in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..5),
        format in prop_oneof![Just(&FORMAT), Just(&COPILOT_FORMAT), Just(&FLAT_FORMAT)],
    ) {
        prop_assume!(super::json::parse(&text).is_ok());
        let Ok((after, hints)) = editor(format).install(&text) else { return Ok(()) };
        let (edited, comments) = with_comments(&after, &wanted);
        for hints in [hints, EditHints::default()] {
            let left = remove(format, &edited, &hints);
            for comment in &comments {
                prop_assert!(left.contains(comment.as_str()), "{comment:?} of {edited} in {left}");
            }
            prop_assert!(!left.contains("agtmux' hook"), "{left}");
            let [mut left, mut before] = [&left, &text].map(|text| without_empty_hooks(json_value(text)));
            // Ignore the version, and ignore the hooks if an event name occurs twice.
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
fn a_commented_out_hook_stays() {
    let text = format!("{{\"hooks\":{{\"Stop\":[\n  {USERS_HOOK}\n]}}}}");
    let (after, hints) = editor(&FORMAT).install(&text).expect("installed");
    let edited = after.replace(&format!("  {USERS_HOOK},"), &format!("  // {USERS_HOOK},"));
    assert_ne!(edited, after);
    let expected = text.replace(USERS_HOOK, &format!("// {USERS_HOOK},"));
    assert_eq!(remove(&FORMAT, &edited, &hints), expected);
}

#[test]
fn an_edited_comment_keeps_its_edit() {
    let (after, hints) = editor(&FORMAT).install("{\n  // old remark\n}\n").expect("installed");
    assert_eq!(remove(&FORMAT, &after, &hints), "{\n  // old remark\n}\n");
    let edited = after.replace("old remark", "NEW REMARK by user");
    assert_eq!(remove(&FORMAT, &edited, &hints), "{\n  // NEW REMARK by user\n}\n");
}

#[test]
fn comments_in_a_blank_file_stay() {
    for format in [&FORMAT, &COPILOT_FORMAT, &FLAT_FORMAT] {
        for (before, mine) in [("{\n", "  // mine\n"), ("\"hooks\": {\n", "    // mine\n")] {
            let (after, hints) = editor(format).install("").expect("installed");
            let edited = after.replacen(before, &format!("{before}{mine}"), 1);
            let left = remove(format, &edited, &hints);
            assert!(left.contains(mine) && !left.contains("agtmux"), "{format:?}: {left}");
            assert_eq!(remove(format, &after, &hints), "", "{format:?}");
        }
    }
}

#[test]
fn comments_inside_an_entry_are_moved_before_it() {
    let (after, hints) = editor(&FORMAT).install("{}\n").expect("installed");
    let edited = after.replacen("\"timeout\"", "/* why */ \"timeout\"", 1);
    let left = remove(&FORMAT, &edited, &hints);
    assert_eq!(left.split_whitespace().collect::<String>(), "{\"hooks\":{\"SessionStart\":[/*why*/]}}", "{left}");
}

#[test]
fn a_line_comment_does_not_swallow_the_next_line() {
    let entry = format!("{{\"command\": \"{}\"}}", hook_command().line("Stop"));
    let text = format!("{{\"hooks\": {{\"Stop\": [1, // c\n  {entry} /* d\n e */ ,\n  2]}}}}");
    let left = remove(&FLAT_FORMAT, &text, &EditHints::default());
    assert_eq!(json_value(&left), serde_json::json!({"hooks": {"Stop": ["1", "2"]}}), "{left}");
    assert!(left.contains("// c\n") && left.contains("/* d\n e */"), "{left}");
}

#[test]
fn comments_in_notify_stay() {
    for (before, from, to, expected) in [
        ("notify = [ # old\n]\n", "# old", "# NEW", "notify = [ # NEW\n]\n"),
        ("a = 1\n", "\"]\n", "\"] # mine\nb = 2\n", "a = 1\n# mine\nb = 2\n"),
        ("a = 1", "\"]", "\"]  # mine", "a = 1\n# mine"),
        ("", "\"hook\"", "# a, b\n\"hook\"", "notify = [# a, b\n]\n"),
        ("", "\"notify\"]", "\"notify\" # a, b\n, # c\n]", "notify = [ # a, b\n # c\n]\n"),
        ("notify = ['x']\n", "\"--then\",", "\"--then\" # a, b\n,", "notify = [# a, b\n'x']\n"),
        ("notify = ['x'] # mine\n", "\"hook\"", "# new\n\"hook\"", "notify = [# new\n'x'] # mine\n"),
    ] {
        let (after, hints) = codex().install(before).expect("installed");
        assert!(after.contains(from), "{after}");
        let left = codex().remove(&after.replacen(from, to, 1), &hints);
        assert_eq!(left.as_deref(), Ok(expected), "installed text: {after}");
    }
}

#[test]
fn similar_entries_of_the_user_stay() {
    let entry = |line: &str, more: &str| {
        format!(r#"{{ "matcher": "", "hooks": [{{ "type": "command", "command": "{line}", "timeout": 5{more} }}] }}"#)
    };
    let line = hook_command().line("Stop");
    for (event, group) in [
        ("PreCompact", entry("agtmux hook claude PreCompact", "")),
        ("PreCompact", entry(&hook_command().line("PreCompact"), "")),
        ("Stop", entry("/opt/agtmux hook claude Stop", "")),
        ("Stop", entry(&hook_command().line("PreToolUse"), "")),
        ("Stop", entry(&line, ", \"async\": true")),
        ("Stop", entry(&line, "").replace("\"matcher\": \"\"", "\"matcher\": \"auto\"")),
        ("Stop", entry(&line, "").replace("\"matcher\": \"\", ", "")),
        ("Stop", format!(r#"{{ "type": "command", "command": "{line}", "timeout": 5 }}"#)),
    ] {
        let text = format!("{{\"hooks\": {{\"{event}\": [{group}]}}}}");
        assert_eq!(editor(&FORMAT).installed_program(&text, &EditHints::default()), Ok(None), "{text}");
        let (after, hints) = editor(&FORMAT).install(&text).expect("installed");
        assert_eq!(remove(&FORMAT, &after, &hints), text);
    }
    let text = format!("{{\"hooks\": {{\"PreCompact\": [{}]}}}}", entry(&hook_command().line("PreCompact"), ""));
    let hints = EditHints { events: vec!["PreCompact".into()], ..EditHints::default() };
    assert_eq!(remove(&FORMAT, &text, &hints), "{}", "an older agtmux installed it");
}
