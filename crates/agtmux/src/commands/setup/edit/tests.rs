use std::sync::LazyLock;

use agtmux_agents::SetupFile;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::hooks::HookEditor;
use super::notify::NotifyEditor;
use super::{EditHints, SettingsEditor};
use crate::commands::setup::command::HookCommand;

pub(super) static FORMAT: LazyLock<SetupFile> = LazyLock::new(|| {
    let events = ["SessionStart", "Stop", "PreToolUse"];
    setup_file(json!({"path": "", "format": "grouped", "events": events, "matcher": "", "timeout": 5}))
});

pub(super) static COPILOT_FORMAT: LazyLock<SetupFile> = LazyLock::new(|| {
    let events = ["agentStop", "notification"];
    setup_file(json!({"path": "", "format": "own", "events": events, "version": 1, "timeout": 5}))
});

pub(super) fn setup_file(manifest: Value) -> SetupFile {
    serde_json::from_value(manifest).expect("a valid file of a manifest")
}

pub(super) fn hook_command() -> HookCommand {
    HookCommand::new("/opt/my bin/agtmux", "claude")
}

pub(super) fn editor(file: &'static SetupFile) -> HookEditor {
    HookEditor { file, hook_command: hook_command() }
}

pub(super) fn codex() -> NotifyEditor {
    NotifyEditor { hook_command: HookCommand::new("/opt/agtmux", "codex") }
}

/// The JSON value of the text, without comments and trailing commas.
pub(super) fn json_value(text: &str) -> Value {
    fn of(value: &jsonc_parser::ast::Value<'_>) -> Value {
        use jsonc_parser::ast::Value as Ast;
        match value {
            Ast::Object(object) => {
                object.properties.iter().map(|p| (p.name.as_str().to_owned(), of(&p.value))).collect()
            }
            Ast::Array(array) => array.elements.iter().map(of).collect(),
            Ast::StringLit(text) => json!(text.value),
            Ast::NumberLit(number) => json!(number.value),
            Ast::BooleanLit(boolean) => json!(boolean.value),
            Ast::NullKeyword(_) => Value::Null,
        }
    }
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default()).expect("valid JSON");
    parsed.value.map_or(Value::Null, |value| of(&value))
}

/// The value without the hook groups that setup added.
fn without_hooks(mut value: Value) -> Value {
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        for list in hooks.values_mut().filter_map(Value::as_array_mut) {
            list.retain(|group| !group.to_string().contains("agtmux' hook claude"));
        }
    }
    value
}

/// The value without empty lists and objects of hooks. The tests check that the text of empty lists and objects stays
/// the same.
pub(super) fn without_empty_hooks(mut value: Value) -> Value {
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, list| list != &json!([]));
    }
    if value["hooks"] == json!({}) {
        value.as_object_mut().map(|fields| fields.remove("hooks"));
    }
    if value == json!({}) { Value::Null } else { value }
}

#[track_caller]
fn install_and_remove(text: &str) -> String {
    let (after, hints) = editor(&FORMAT).install(text).unwrap_or_else(|fault| panic!("{fault:?} in {text:?}"));
    assert_eq!(editor(&FORMAT).is_current(&after, &EditHints::default()), Ok(true), "{after}");
    assert_eq!(editor(&FORMAT).remove(&after, &hints).as_deref(), Ok(text), "installed text: {after}");
    assert_eq!(
        without_empty_hooks(without_hooks(json_value(&after))),
        without_empty_hooks(json_value(text)),
        "{after}"
    );
    // Removal without the hints restores at least the JSON value, unless an event name occurs twice.
    if repeats_an_event(text) {
        return after;
    }
    let blind =
        editor(&FORMAT).remove(&after, &EditHints::default()).unwrap_or_else(|fault| panic!("{fault:?}: {after}"));
    assert_eq!(without_empty_hooks(json_value(&blind)), without_empty_hooks(json_value(text)), "{blind}");
    after
}

pub(super) fn repeats_an_event(text: &str) -> bool {
    let root = super::json::root_object(text).expect("valid JSON");
    let hooks = root.as_ref().and_then(|root| super::json::member(root, "hooks"));
    let names: Vec<&str> = hooks
        .and_then(|(_, hooks)| hooks.as_object())
        .map(|hooks| hooks.properties.iter().map(|event| event.name.as_str()).collect())
        .unwrap_or_default();
    names.iter().any(|name| names.iter().filter(|other| *other == name).count() > 1)
}

pub(super) const USERS_HOOK: &str = r#"{"hooks": [{"type": "command", "command": "echo hi"}]}"#;

#[test]
fn install_and_remove_restore_known_files_exactly() {
    for text in [
        "",
        "\n",
        "  \r\n\r\n",
        "// nothing yet",
        "/* nothing */\n",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "{ /* why */ }",
        "{ // why\n}",
        r#"{"a":1}"#,
        r#"{"a": 1, "b": [1, 2, ], }"#,
        "{\n  \"a\": 1\n}\n",
        "{\n\t\"a\": 1, // one, two\n\t// the end\n}\n",
        "{\n    \"a\": 1 // last, no comma  \n}",
        "{\n    \"a\": 1 /* x */ /* y */, // z\n}",
        "{\n  \"a\": 1\n  ,\n}",
        "{\r\n  \"model\": \"x\",\r\n  \"hooks\": {\r\n  }\r\n}\r\n",
        "{\"hooks\": {}}",
        "{\"hooks\":{\"Stop\":[]}}",
        "{\n  \"hooks\": {\n    \"Stop\": [\n    ],\n    \"Other\": []\n  },\n  \"z\": null\n}",
        "{\n  \"hooks\": { \"Stop\": [ /* none */ ] } // end\n}",
    ] {
        install_and_remove(text);
        for list in
            [format!("[{USERS_HOOK}]"), format!("[ {USERS_HOOK}, ]"), format!("[\n      {USERS_HOOK} // mine\n    ]")]
        {
            install_and_remove(&format!("{{\n  \"hooks\": {{\n    \"Stop\": {list}\n  }}\n}}\n"));
            install_and_remove(&format!("{{\"hooks\": {{\"Stop\": {list},\n}}}}"));
        }
    }
}

#[test]
fn new_lines_use_the_existing_layout() {
    let after = install_and_remove("{\n\t\"a\": 1, // one\n\t\"b\": 2 // two\n}\n");
    assert!(
        after.starts_with("{\n\t\"a\": 1, // one\n\t\"b\": 2, // two\n\t\"hooks\": {\n\t\t\"SessionStart\": ["),
        "{after}"
    );
    assert!(after.ends_with("] }]\n\t}\n}\n"), "{after}");
    let after = install_and_remove("{}\n");
    assert!(after.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [{ \"matcher\": \"\","), "{after}");
    assert!(install_and_remove("{\r\n  \"a\": 1\r\n}\r\n").matches('\n').count() > 4);
    assert!(!install_and_remove("{\r\n  \"a\": 1\r\n}\r\n").replace("\r\n", "").contains('\n'));
    assert!(!install_and_remove("{\"a\": 1}").contains('\n'), "one line stays one line");
}

#[test]
fn settings_added_after_the_install_stay() {
    let (after, hints) = editor(&FORMAT).install("{\n  \"a\": 1\n}\n").expect("installed");
    let edited = after
        .replacen("\"Stop\": [", &format!("\"Mine\": [1], // new\n    \"Stop\": [{USERS_HOOK}, "), 1)
        .replacen("\"a\": 1", "\"a\": 2, \"c\": 3", 1);
    let left = editor(&FORMAT).remove(&edited, &hints).expect("removed");
    assert_eq!(
        left,
        format!(
            "{{\n  \"a\": 2, \"c\": 3,\n  \"hooks\": {{\n    \"Mine\": [1], // new\n    \"Stop\": [{USERS_HOOK}]\n  }}\n}}\n"
        )
    );
}

#[test]
fn an_entry_in_a_shared_group_is_removed_alone() {
    let line = hook_command().line("Stop");
    let entry = format!(r#"{{"type": "command", "timeout": 7, "command": "{line}"}}"#);
    let text =
        format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{{"command": "x"}}, {entry}], "matcher": "", "x": 1}}]}}}}"#);
    let left = editor(&FORMAT).remove(&text, &EditHints::default()).expect("removed");
    assert_eq!(left, r#"{"hooks": {"Stop": [{"hooks": [{"command": "x"}], "matcher": "", "x": 1}]}}"#);
}

#[test]
fn an_own_file_is_created_and_emptied() {
    let (after, hints) = editor(&COPILOT_FORMAT).install("").expect("installed");
    let line = hook_command().line("agentStop");
    let entry = json!([{"type": "command", "bash": line, "timeoutSec": "5"}]);
    assert_eq!(
        (&json_value(&after)["version"], &json_value(&after)["hooks"]["agentStop"]),
        (&json!("1"), &entry),
        "{after}"
    );
    assert!(editor(&COPILOT_FORMAT).is_current(&after, &EditHints::default()).expect("read"));
    for hints in [hints, EditHints::default()] {
        assert_eq!(editor(&COPILOT_FORMAT).remove(&after, &hints).as_deref(), Ok(""), "without the hints");
    }
}

#[test]
fn entries_of_the_user_in_an_own_file_stay() {
    for text in [
        "{}",
        "{\n  \"version\": 1\n}\n",
        "{\"version\": 1, \"hooks\": {\"agentStop\": [{\"type\": \"command\", \"bash\": \"mine\"}]}}",
        "{\n  \"version\": 1, // theirs\n  \"hooks\": {}\n}",
    ] {
        let (after, hints) = editor(&COPILOT_FORMAT).install(text).expect("installed");
        assert!(editor(&COPILOT_FORMAT).is_current(&after, &EditHints::default()).expect("read"), "{after}");
        assert_eq!(editor(&COPILOT_FORMAT).remove(&after, &hints).as_deref(), Ok(text), "installed text: {after}");
    }
}

/// Older versions of agtmux did not record that setup added the `version` field. They recorded the byte order mark as
/// part of the original text.
#[test]
fn a_record_of_an_older_version_restores_the_file() {
    let only_version = "{\n  \"version\": 1\n}\n";
    for (text, record) in [
        ("", json!({"blank": "", "events": ["agentStop"]})),
        ("\n", json!({"blank": "\u{feff}\n", "events": ["agentStop"]})),
        (only_version, json!({"blank": only_version, "events": ["agentStop"]})),
        ("{}", json!({"empty": {"": ""}, "events": ["agentStop"], "version": true})),
    ] {
        let (after, _) = editor(&COPILOT_FORMAT).install(text).expect("installed");
        let hints: EditHints = serde_json::from_value(record).expect("a record");
        assert_eq!(editor(&COPILOT_FORMAT).remove(&after, &hints).as_deref(), Ok(text), "installed text: {after}");
    }
}

#[test]
fn hooks_with_another_path_are_not_current() {
    let old = HookEditor { file: &FORMAT, hook_command: HookCommand::new("/old/agtmux", "claude") };
    let (after, hints) = old.install("{}").expect("installed");
    assert_eq!(editor(&FORMAT).installed_program(&after, &hints), Ok(Some("/old/agtmux".to_owned())));
    assert!(!editor(&FORMAT).is_current(&after, &EditHints::default()).expect("read"));
}

#[test]
fn unreadable_files_are_refused_with_the_line() {
    for (text, line, why) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2, "comma"),
        ("{\n\"a\": 'x'}", 2, "ingle-quoted"),
        ("[]", 1, "not a JSON object"),
        ("{\"a\": 1}\n{}", 2, "one JSON value"),
        ("{\n\n\"hooks\": []}", 3, "\"hooks\" is not an object"),
        ("{\"hooks\": {\n\"Stop\": {}}}", 2, "not a list"),
        ("{\"a\": \"", 1, ""),
    ] {
        let fault = editor(&FORMAT).install(text).expect_err(text);
        assert!(fault.line == line && fault.why.contains(why), "{fault:?} for {text:?}");
    }
}

#[track_caller]
fn install_and_remove_notify(text: &str) -> String {
    let (after, hints) = codex().install(text).unwrap_or_else(|fault| panic!("{fault:?} in {text:?}"));
    assert!(codex().is_current(&after, &hints).expect("read"), "{after}");
    assert_eq!(codex().remove(&after, &hints).expect("read"), text, "installed text: {after}");
    after
}

#[test]
fn notify_is_installed_and_removed_and_calls_the_previous_program() {
    for text in [
        "",
        "# only a comment",
        "model = \"x\"",
        "model = \"x\" # why\r\n\r\n[features]\r\nx = true\r\n",
        "a.b.c = 1\n[t]\nnotify = [\"not\", \"ours\"]\n",
        "[t]\nx = 1",
        "notify = []",
        "notify = [ # none\n]\n",
        "i = { a = 1,\n b = 2 }\ns = '''\n[t]\n'''\n\n[t]\n",
    ] {
        let after = install_and_remove_notify(text);
        assert!(
            after.contains("\"/opt/agtmux\", \"hook\", \"codex\", \"notify\"]") || text.starts_with("notify"),
            "{after}"
        );
    }
    for text in [
        "notify = [\"python3\", \"/x/y.py\"]\n",
        "\"notify\"=['a']",
        "notify = [\n  \"a\", # why\n  \"b\",\n]\n[t]\n",
        "notify = [ \"a\" ]",
        "notify = [\t\"a\"]",
    ] {
        let after = install_and_remove_notify(text);
        assert!(after.contains("\"notify\", \"--then\","), "{after}");
    }
    for (text, line) in [("a = 1\nnotify = 7", 2), ("a = 1\n\nb = = 2", 3), ("notify = [1]", 1)] {
        assert_eq!(codex().install(text).expect_err(text).line, line, "{text}");
    }
}

/// Random whitespace and comments.
fn whitespace() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just(" ".to_owned()),
        4 => Just("\n  ".to_owned()),
        2 => Just("\r\n\t".to_owned()),
        1 => Just("/* a, \"b\" } */".to_owned()),
        1 => Just(" // c, d: [ \"\n".to_owned()),
        1 => Just("\t".to_owned()),
    ];
    proptest::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn listed(open: char, items: Vec<(String, String, String)>, close: char, trailing: bool, end: String) -> String {
    let count = items.len();
    let mut out = String::from(open);
    for (n, (before, item, after)) in items.into_iter().enumerate() {
        let comma = if n + 1 < count || trailing { "," } else { "" };
        out.push_str(&format!("{before}{item}{after}{comma}"));
    }
    out.push_str(&end);
    out.push(close);
    out
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just(r#""s // \" , } é""#.to_owned()),
        Just(USERS_HOOK.to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| prop_oneof![array(inner.clone()), object("[a-zé]{1,4}", inner)])
}

fn array(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (proptest::collection::vec((whitespace(), item, whitespace()), 0..3), any::<bool>(), whitespace())
        .prop_map(|(items, trailing, end)| listed('[', items, ']', trailing, end))
}

fn object(name: &'static str, item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member =
        (name, whitespace(), whitespace(), item).prop_map(|(name, a, b, value)| format!("\"{name}\"{a}:{b}{value}"));
    (proptest::collection::vec((whitespace(), member, whitespace()), 0..4), any::<bool>(), whitespace())
        .prop_map(|(items, trailing, end)| listed('{', items, '}', trailing, end))
}

/// Random settings. Some have no hooks; others have hooks for events that agtmux uses and for other events.
pub(super) fn settings() -> impl Strategy<Value = String> {
    let group = prop_oneof![Just(USERS_HOOK.to_owned()), object("[a-z]{1,3}", value())];
    let hooks = object("(Stop|PreToolUse|Other)", array(group)).prop_map(Some);
    let root = (
        proptest::collection::vec((whitespace(), "[a-g]{1,3}", value(), whitespace()), 0..3),
        hooks.boxed(),
        any::<bool>(),
    );
    (root, 0..4_usize, any::<bool>(), whitespace(), whitespace(), whitespace()).prop_map(
        |((members, hooks, with_hooks), at, trailing, before, end, after)| {
            let mut items: Vec<_> =
                members.into_iter().map(|(a, name, value, b)| (a, format!("\"{name}\": {value}"), b)).collect();
            if let Some(hooks) = hooks.filter(|_| with_hooks) {
                items.insert(at.min(items.len()), (" ".into(), format!("\"hooks\": {hooks}"), String::new()));
            }
            format!("{before}{}{after}", listed('{', items, '}', trailing, end))
        },
    )
}

proptest! {
    #[test]
    fn install_and_remove_restore_any_settings_exactly(text in settings()) {
        // A comma without an item before it is invalid.
        prop_assume!(super::json::parse(&text).is_ok());
        install_and_remove(&text);
    }

    #[test]
    fn any_text_is_refused_or_restored(text in "[{}\\[\\]\":,a \n/*]{0,24}") {
        if editor(&FORMAT).install(&text).is_ok() {
            install_and_remove(&text);
        }
    }

    #[test]
    fn install_and_remove_restore_any_toml(lines in proptest::collection::vec(prop_oneof![
        Just("# c"), Just(""), Just("a = 1"), Just("b.c = [1,\n 2]"), Just("s = \"\"\"\n[x]\n\"\"\""),
        Just("notify = [\"x\", 'y',]"), Just("notify = [\n]"), Just("[t]"), Just("[[u]]"), Just("  d = 'e'  # f"),
    ], 0..6), crlf in any::<bool>(), open in any::<bool>()) {
        let newline = if crlf { "\r\n" } else { "\n" };
        let mut text = lines.iter().map(|line| format!("{line}\n")).collect::<String>().replace('\n', newline);
        if open {
            text.truncate(text.trim_end().len());
        }
            if codex().install(&text).is_ok() {
            install_and_remove_notify(&text);
        }
    }
}
