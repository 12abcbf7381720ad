//! `agtmux setup` on real settings files: it changes only its own entries, and uninstall reverts them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_testkit::agtmux::{SOON, run, script, world};
use agtmux_testkit::{TestWorld, wait_for};
use serde_json::Value;

use crate::settings::{
    CLAUDE, CODEX_CONFIG, CODEX_HOOKS, COPILOT, CURSOR, GEMINI, QWEN, backups, file, put, read, setup, setup_ok,
};

/// Settings files in different styles.
const SETTINGS_VARIANTS: [&str; 9] = [
    "{}",
    "",
    "{\n}\n",
    "{\"model\":\"opus\",\"hooks\":{\"Stop\":[]}}",
    "{\n\t// mine\n\t\"env\": { \"A\": \"b\" }, // keep\n\t\"permissions\": {\"allow\": [\"Bash(ls:*)\",],},\n}\n",
    "{\r\n    \"hooks\": {\r\n        \"Stop\": [\r\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\r\n        ]\r\n    }\r\n}\r\n",
    "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}, ], \"Stop\": []}, \"z\": 1}",
    "{\n  \"hooks\": {\n    \"Notification\": [ /* none */ ],\n    \"SessionStart\": [\n      { \"hooks\": [] } // odd\n    ]\n  }\n}",
    "\u{feff}{\n        \"a\": [1,\n 2]\n}",
];

#[test]
fn uninstall_restores_the_original_bytes() {
    for text in SETTINGS_VARIANTS {
        let world = world();
        let files = [CLAUDE, GEMINI, CODEX_HOOKS, CURSOR, QWEN].map(|name| put(&world, name, text));
        let config = put(&world, CODEX_CONFIG, "# mine\r\nmodel = 'x' # y\r\n\r\n[features]\r\na = true");
        let before = read(&config);
        let first = setup_ok(&world, &["--yes"]).text();
        assert!(!first.contains("@@") && first.contains("settings.json: add "), "a summary, no diff: {first}");
        for path in files.iter().chain([&config]) {
            assert!(read(path).contains("agtmux"), "{}", path.display());
            let [backup] = &backups(path)[..] else { panic!("one backup of {}: {:?}", path.display(), backups(path)) };
            assert_eq!(
                read(backup),
                if path == &config { &before } else { text },
                "the backup has the original content"
            );
        }
        let again = setup_ok(&world, &["--yes"]);
        assert!(!again.text().contains("@@") && again.text().contains("up to date"), "{}", again.text());
        setup_ok(&world, &["--uninstall", "--yes"]);
        for path in &files {
            assert_eq!(read(path), text, "{}", path.display());
            assert_eq!(backups(path).len(), 1, "one backup is kept: {:?}", backups(path));
        }
        assert_eq!(read(&config), before);
        let nothing = setup_ok(&world, &["--uninstall", "--yes"]);
        assert!(nothing.text().contains("no hooks of agtmux"), "{}", nothing.text());
    }
}

#[test]
fn uninstall_removes_created_directories() {
    let world = world();
    setup_ok(&world, &["--agent", "pi", "--agent", "copilot", "--yes"]);
    let made = [".pi", ".copilot"].map(|name| file(&world, name));
    assert!(made[0].join("agent/settings.json").exists() && made[1].join("hooks").is_dir());
    fs::write(made[1].join("mine"), "").expect("written");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!made[0].exists() && !made[1].join("hooks").exists());
    assert!(made[1].join("mine").exists(), "a file of the user stays");
}

#[test]
fn uninstall_keeps_the_version_field_for_other_hooks() {
    let world = world();
    setup_ok(&world, &["--agent", "cursor", "--yes"]);
    let hooks = file(&world, CURSOR);
    let mut settings: Value = serde_json::from_str(&read(&hooks)).expect("JSON");
    settings["hooks"]["stop"].as_array_mut().expect("a list").push(serde_json::json!({"command": "mine"}));
    fs::write(&hooks, settings.to_string()).expect("written");
    setup_ok(&world, &["--uninstall", "--yes"]);
    let left: Value = serde_json::from_str(&read(&hooks)).expect("JSON");
    assert_eq!(left, serde_json::json!({"version": 1, "hooks": {"stop": [{"command": "mine"}]}}));
}

#[test]
fn uninstall_removes_created_files() {
    let world = world();
    for dir in [".claude", ".codex", ".copilot", ".cursor", ".gemini", ".qwen"] {
        fs::create_dir(file(&world, dir)).expect("made");
    }
    setup_ok(&world, &["--yes"]);
    let made = [CLAUDE, GEMINI, CODEX_HOOKS, CODEX_CONFIG, CURSOR, COPILOT, QWEN].map(|name| file(&world, name));
    let settings: Value = serde_json::from_str(&read(&made[0])).expect("JSON");
    let entry = &settings["hooks"]["PermissionRequest"][0]["hooks"][0];
    assert_eq!(entry["type"], "command");
    assert_eq!(entry["command"], format!("'{}' hook claude PermissionRequest", env!("CARGO_BIN_EXE_agtmux")));
    assert_eq!(settings["hooks"].as_object().map(serde_json::Map::len), Some(13));
    let gemini: Value = serde_json::from_str(&read(&made[1])).expect("JSON");
    assert!(gemini["hooks"]["AfterAgent"].is_array() && gemini["hooks"]["AfterModel"].is_null(), "{gemini}");
    let codex: Value = serde_json::from_str(&read(&made[2])).expect("JSON");
    assert!(codex["hooks"]["Interrupt"][0]["hooks"][0]["command"].is_string(), "{codex}");
    assert_eq!(
        read(&made[3]),
        format!("notify = [\"{}\", \"hook\", \"codex\", \"notify\"]\n", env!("CARGO_BIN_EXE_agtmux"))
    );
    let cursor: Value = serde_json::from_str(&read(&made[4])).expect("JSON");
    assert_eq!((&cursor["version"], cursor["hooks"].as_object().map(serde_json::Map::len)), (&1.into(), Some(5)));
    let entry = serde_json::json!([{"command": format!("'{}' hook cursor stop", env!("CARGO_BIN_EXE_agtmux"))}]);
    assert_eq!(cursor["hooks"]["stop"], entry, "no groups and no unknown fields");
    let qwen: Value = serde_json::from_str(&read(&made[6])).expect("JSON");
    assert!(qwen["hooks"]["StopFailure"][0]["hooks"][0]["command"].is_string(), "{qwen}");
    setup_ok(&world, &["--uninstall", "--yes"]);
    for path in made {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(!world.state_dir().join("setup.json").exists());
}

#[test]
fn copilot_hooks_go_into_a_separate_file() {
    let world = world();
    let theirs = put(&world, ".copilot/hooks/mine.json", "{\"version\": 1, \"hooks\": {}}");
    let ours = file(&world, COPILOT);
    setup_ok(&world, &["--yes", "--agent", "copilot"]);
    let hooks: Value = serde_json::from_str(&read(&ours)).expect("JSON");
    assert_eq!(hooks["version"], 1);
    let entry = &hooks["hooks"]["notification"][0];
    assert_eq!(entry["bash"], format!("'{}' hook copilot notification", env!("CARGO_BIN_EXE_agtmux")));
    assert!(hooks["hooks"]["preToolUse"].is_null(), "a failing preToolUse hook would block tools: {hooks}");
    let again = setup_ok(&world, &["--yes", "--agent", "copilot"]);
    assert!(again.text().contains("up to date"), "{}", again.text());
    // Uninstall works without the record in the state directory.
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!ours.exists() && backups(&ours).is_empty());
    assert_eq!(read(&theirs), "{\"version\": 1, \"hooks\": {}}");
}

#[test]
fn uninstall_keeps_user_hooks_in_our_copilot_file() {
    let world = world();
    let text =
        "{\n  \"version\": 1,\n  \"hooks\": { \"agentStop\": [{ \"type\": \"command\", \"bash\": \"mine\" }] }\n}\n";
    let ours = put(&world, COPILOT, text);
    setup_ok(&world, &["--yes", "--agent", "copilot"]);
    assert!(read(&ours).contains("hook copilot agentStop"));
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&ours), text);
}

#[test]
fn uninstall_keeps_later_user_edits() {
    let world = world();
    let claude = put(&world, CLAUDE, "{\n  \"model\": \"opus\"\n}\n");
    let config = put(&world, CODEX_CONFIG, "");
    fs::remove_file(&config).expect("removed");
    setup_ok(&world, &["--yes"]);
    fs::write(&claude, read(&claude).replace("\"opus\"", "\"haiku\", // cheaper\n  \"new\": [ ]")).expect("written");
    fs::write(&config, format!("{}model = 'x'\n", read(&config))).expect("written");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), "{\n  \"model\": \"haiku\", // cheaper\n  \"new\": [ ]\n}\n");
    assert_eq!(read(&config), "model = 'x'\n");
}

/// Cursor ignores the whole file, with the user's own hooks, if it contains one unknown event name.
#[test]
fn cursor_setup_keeps_user_hooks_and_version() {
    const KNOWN: [&str; 5] = ["beforeSubmitPrompt", "preToolUse", "afterAgentResponse", "stop", "sessionEnd"];
    for (text, version) in [
        (
            "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [\n      { \"command\": \"./mine.sh\" }\n    ]\n  }\n}\n",
            1,
        ),
        ("{\"version\":1,\"hooks\":{\"afterFileEdit\":[{\"command\":\"fmt\",\"timeout\":30}],\"stop\":[]}}", 1),
        ("{ \"hooks\": { \"stop\": [ { \"command\": \"x\" } ] } }", 1),
        ("{ \"version\": 2 }", 2),
    ] {
        let world = world();
        let hooks = put(&world, CURSOR, text);
        setup_ok(&world, &["--yes", "--agent", "cursor"]);
        let now: Value = serde_json::from_str(&read(&hooks)).expect("JSON");
        assert_eq!(now["version"], version);
        for event in KNOWN {
            let entries = now["hooks"][event].as_array().unwrap_or_else(|| panic!("no {event} in {now}"));
            let ours = |entry: &Value| entry["command"].as_str().is_some_and(|line| line.contains("hook cursor"));
            assert_eq!(entries.iter().filter(|entry| ours(entry)).count(), 1, "{event} in {now}");
            let theirs = text.contains(&format!("\"{event}\": [")) && !text.contains("\"stop\":[]");
            assert_eq!(entries.iter().any(|entry| !ours(entry)), theirs, "{event} in {now}");
        }
        let events = now["hooks"].as_object().expect("hooks").keys();
        assert!(events.clone().all(|event| KNOWN.contains(&event.as_str()) || text.contains(event.as_str())), "{now}");
        setup_ok(&world, &["--uninstall", "--yes"]);
        assert_eq!(read(&hooks), text);
    }
}

#[test]
fn uninstall_works_without_the_record() {
    let world = world();
    let claude = put(&world, CLAUDE, "{\n  \"model\": \"opus\"\n}\n");
    setup_ok(&world, &["--yes"]);
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), "{\n  \"model\": \"opus\"\n}\n");
}

#[test]
fn a_user_notify_program_is_chained_and_restored() {
    let world = world();
    let record = world.home().join("result");
    let theirs = script(&world, "theirs", &format!("printf '%s\\n' \"$@\" > {}.new; mv {0}.new {0}", record.display()));
    let text = format!("notify = [ \"{}\",\n  '-x', ] # mine\n[t]\n", theirs.display());
    let config = put(&world, CODEX_CONFIG, &text);
    setup_ok(&world, &["--yes", "--agent", "codex"]);
    let document: toml_edit::DocumentMut = read(&config).parse().expect("TOML");
    let words: Vec<String> =
        document["notify"].as_array().expect("a list").iter().map(|w| w.as_str().expect("a word").into()).collect();
    assert_eq!(words[1..5], ["hook", "codex", "notify", "--then"]);
    run(world.command(&words[0]).args(&words[1..]).arg("{\"type\":\"agent-turn-complete\"}"));
    let arguments = wait_for("the user's own program", SOON, || fs::read_to_string(&record).ok());
    assert_eq!(arguments, "-x\n{\"type\":\"agent-turn-complete\"}\n");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&config), text);
}

#[test]
fn an_unreadable_file_is_refused_and_the_others_are_changed() {
    let world = world();
    let broken = "{\n  \"a\": 1,\n  oops\n}\n";
    let claude = put(&world, CLAUDE, broken);
    let gemini = put(&world, GEMINI, "{}");
    put(&world, CODEX_CONFIG, "a = 1\nb = = 2\n");
    fs::write(file(&world, CODEX_HOOKS), b"{\n\"a\": \"\xff\"}").expect("written");
    let result = setup(&world, &["--yes"]);
    assert_eq!(result.code, Some(1));
    let output = format!("{}{}", result.text(), result.stderr);
    for part in [".claude/settings.json", "line 3", "config.toml", "line 2", "not UTF-8"] {
        assert!(output.contains(part), "{part} in {output}");
    }
    assert_eq!(read(&claude), broken);
    assert!(backups(&claude).is_empty(), "a refused file has no backup");
    assert!(read(&gemini).contains("hook gemini AfterAgent"));
}

#[test]
fn setup_changes_nothing_without_confirmation() {
    let world = world();
    let claude = put(&world, CLAUDE, "{}");
    let dry = setup_ok(&world, &["--dry-run"]);
    assert!(dry.text().contains("@@") && dry.text().contains("+    \"Stop\": ["), "{}", dry.text());
    let unconfirmed = setup(&world, &[]);
    assert_eq!(unconfirmed.code, Some(2));
    assert!(unconfirmed.stderr.contains("try: agtmux setup --yes"), "{}", unconfirmed.stderr);
    let json = setup_ok(&world, &["--dry-run", "--json"]).json();
    assert_eq!(json["agents"][0]["agent"], "claude");
    assert_eq!(json["agents"][0]["files"][0]["action"], "change");
    assert_eq!(json["agents"][0]["files"][0]["applied"], false);
    assert_eq!(read(&claude), "{}");
    assert!(backups(&claude).is_empty());
    for (answer, expected) in [("n\n", false), ("\n", false), ("y\n", true)] {
        // script(1) provides a terminal for the prompt.
        let mut command: Command = world.command("script");
        command.args(["-qec", &format!("{} setup", env!("CARGO_BIN_EXE_agtmux")), "/dev/null"]);
        let input = world.home().join("answer");
        fs::write(&input, answer).expect("written");
        let status = command.stdin(fs::File::open(&input).expect("opens")).output().expect("setup runs").status;
        assert_eq!((status.success(), read(&claude) != "{}"), (expected, expected), "{answer:?}");
    }
}

#[test]
fn setup_keeps_file_modes_and_symlinks() {
    let world = world();
    let target = put(&world, "dotfiles/claude.json", "{\n  \"a\": 1\n}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("set");
    fs::create_dir_all(file(&world, ".claude")).expect("made");
    let link = file(&world, CLAUDE);
    symlink("../dotfiles/claude.json", &link).expect("linked");
    setup_ok(&world, &["--yes"]);
    assert!(link.is_symlink() && read(&target).contains("hook claude Stop"));
    assert_eq!(fs::metadata(&target).expect("the file exists").permissions().mode() & 0o7777, 0o640);
    let [backup] = &backups(&target)[..] else { panic!("one backup") };
    assert_eq!(fs::metadata(backup).expect("the file exists").permissions().mode() & 0o7777, 0o640);
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&target), "{\n  \"a\": 1\n}\n");
    fs::remove_file(&target).expect("removed");
    let dangling = setup(&world, &["--yes"]);
    assert_eq!(dangling.code, Some(1));
    assert!(dangling.text().contains("broken symbolic link"), "{}", dangling.text());
}

#[test]
fn setup_updates_the_path_of_a_moved_program() {
    let world = world();
    let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"mine\"}]}\n    ]\n  }\n}\n";
    let claude = put(&world, CLAUDE, text);
    setup_ok(&world, &["--yes"]);
    let installed = read(&claude);
    fs::write(&claude, installed.replace(env!("CARGO_BIN_EXE_agtmux"), "/old/place/agtmux")).expect("written");
    setup_ok(&world, &["--yes"]);
    assert_eq!(read(&claude), installed, "the old path is replaced without duplicates");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), text);
}

#[test]
fn setup_connects_only_installed_or_named_agents() {
    let world = world();
    let none_found = setup(&world, &["--yes"]);
    if none_found.code == Some(1) {
        assert!(none_found.stderr.contains("no agent found"), "{}", none_found.stderr);
    }
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    run(world.agtmux().args(["setup", "--yes", "--agent", "claude"]).env("CLAUDE_CONFIG_DIR", &elsewhere));
    assert!(read(&elsewhere.join("settings.json")).contains("hook claude Stop"));
    let result = setup_ok(&world, &["--yes", "--agent", "codex"]);
    assert!(result.text().contains("review the new hooks"), "{}", result.text());
}

/// The path of the plugin that setup owns. Creates the settings directory of opencode, so that setup finds it.
fn own_file(world: &TestWorld) -> PathBuf {
    let opencode = world.dir().join("config/opencode");
    fs::create_dir_all(&opencode).expect("the world is writable");
    opencode.join("plugin/agtmux.js")
}

#[test]
fn extension_files_are_installed_and_removed_with_their_directories() {
    let world = world();
    let path = own_file(&world);
    setup_ok(&world, &["--yes"]);
    let text = read(&path);
    let program = format!("const PROGRAM = \"{}\"", env!("CARGO_BIN_EXE_agtmux"));
    assert!(text.contains(&program), "{text}");
    assert!(text.starts_with("// Written by `agtmux setup`"), "{text}");
    let again = setup_ok(&world, &["--yes"]);
    assert!(!again.text().contains("@@") && again.text().contains("up to date"), "{}", again.text());
    let gone = setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(gone.text().contains("removed "), "{}", gone.text());
    let dir = path.parent().expect("a directory");
    assert!(!dir.exists() && dir.parent().is_some_and(Path::exists), "{}", path.display());
    assert!(!world.state_dir().join("setup.json").exists());
}

#[test]
fn extension_files_are_updated_and_neighbours_are_kept() {
    let world = world();
    let opencode = own_file(&world);
    let link = world.home().join("agtmux");
    symlink(env!("CARGO_BIN_EXE_agtmux"), &link).expect("linked");
    let path = std::env::join_paths([&world.home(), Path::new("/usr/bin"), Path::new("/bin")]).expect("a PATH");
    let elsewhere = run(world.agtmux().args(["setup", "--yes"]).env("PATH", path));
    assert_eq!(elsewhere.code, Some(0), "{}", elsewhere.stderr);
    assert!(read(&opencode).contains(&format!("\"{}\"", link.display())), "the link on PATH survives updates");
    setup_ok(&world, &["--yes"]);
    assert!(read(&opencode).contains(&format!("\"{}\"", env!("CARGO_BIN_EXE_agtmux"))), "{}", read(&opencode));
    assert!(backups(&opencode).is_empty(), "no backup of an own file");
    let theirs = opencode.with_file_name("theirs.js");
    fs::write(&theirs, "export const X = async () => ({})\n").expect("written");
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!opencode.exists() && theirs.exists(), "uninstall works without the record");
}

#[test]
fn a_modified_extension_file_is_not_changed() {
    let world = world();
    let opencode = own_file(&world);
    setup_ok(&world, &["--yes"]);
    let changed = read(&opencode).replace("TIMEOUT_MS = 5000", "TIMEOUT_MS = 1");
    fs::write(&opencode, &changed).expect("written");
    let refused = setup(&world, &["--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.text().contains("changed after agtmux wrote it; move or delete it"), "{}", refused.text());
    let kept = setup(&world, &["--uninstall", "--yes"]);
    assert_eq!(kept.code, Some(1), "a kept file is reported");
    assert!(kept.text().contains("changed after agtmux wrote it"), "{}", kept.text());
    assert_eq!(read(&opencode), changed);
}

#[test]
fn a_foreign_extension_file_is_not_changed() {
    let world = world();
    let opencode = own_file(&world);
    fs::create_dir_all(opencode.parent().expect("a directory")).expect("made");
    fs::write(&opencode, "export default () => {};\n").expect("written");
    let refused = setup(&world, &["--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.text().contains("that agtmux did not write; move it"), "{}", refused.text());
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&opencode), "export default () => {};\n");
}
