//! `agtmux setup` on real files: nothing else is touched, and everything can be undone.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/settings.rs"]
mod settings;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux::{SOON, run, script, world};
use agtmux_testkit::{TestWorld, wait_for};
use serde_json::Value;
use settings::{
    CLAUDE, CODEX_CONFIG, CODEX_HOOKS, COPILOT, CURSOR, GEMINI, QWEN, backups, done, file, put, read, setup,
};

/// Settings as people have them.
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
fn install_and_uninstall_give_back_the_same_bytes() {
    for text in SETTINGS_VARIANTS {
        let world = world();
        let files = [CLAUDE, GEMINI, CODEX_HOOKS, CURSOR, QWEN].map(|name| put(&world, name, text));
        let config = put(&world, CODEX_CONFIG, "# mine\r\nmodel = 'x' # y\r\n\r\n[features]\r\na = true");
        let before = read(&config);
        done(&world, &["--yes"]);
        for path in files.iter().chain([&config]) {
            assert!(read(path).contains("agtmux"), "{}", path.display());
            let [backup] = &backups(path)[..] else { panic!("one backup of {}: {:?}", path.display(), backups(path)) };
            assert_eq!(read(backup), if path == &config { &before } else { text }, "the backup is what was there");
        }
        let again = done(&world, &["--yes"]);
        assert!(!again.text().contains("@@") && again.text().contains("nothing to do"), "{}", again.text());
        done(&world, &["--uninstall", "--yes"]);
        for path in &files {
            assert_eq!(read(path), text, "{}", path.display());
        }
        assert_eq!(read(&config), before);
        let nothing = done(&world, &["--uninstall", "--yes"]);
        assert!(nothing.text().contains("nothing of ours"), "{}", nothing.text());
    }
}

#[test]
fn directories_that_were_not_there_are_gone_again() {
    let world = world();
    done(&world, &["--agent", "pi", "--agent", "copilot", "--yes"]);
    let made = [".pi", ".copilot"].map(|name| file(&world, name));
    assert!(made[0].join("agent/extensions/agtmux.ts").exists() && made[1].join("hooks").is_dir());
    fs::write(made[1].join("mine"), "").expect("written");
    done(&world, &["--uninstall", "--yes"]);
    assert!(!made[0].exists() && !made[1].join("hooks").exists());
    assert!(made[1].join("mine").exists(), "what somebody else has put there stays");
}

#[test]
fn hooks_of_others_keep_the_version_that_they_need() {
    let world = world();
    done(&world, &["--agent", "cursor", "--yes"]);
    let hooks = file(&world, CURSOR);
    let mut settings: Value = serde_json::from_str(&read(&hooks)).expect("JSON");
    settings["hooks"]["stop"].as_array_mut().expect("a list").push(serde_json::json!({"command": "mine"}));
    fs::write(&hooks, settings.to_string()).expect("written");
    done(&world, &["--uninstall", "--yes"]);
    let left: Value = serde_json::from_str(&read(&hooks)).expect("JSON");
    assert_eq!(left, serde_json::json!({"version": 1, "hooks": {"stop": [{"command": "mine"}]}}));
}

#[test]
fn files_that_were_not_there_are_gone_again() {
    let world = world();
    for dir in [".claude", ".codex", ".copilot", ".cursor", ".gemini", ".qwen"] {
        fs::create_dir(file(&world, dir)).expect("made");
    }
    done(&world, &["--yes"]);
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
    assert_eq!(cursor["hooks"]["stop"], entry, "no groups, and nothing that it might not know");
    let qwen: Value = serde_json::from_str(&read(&made[6])).expect("JSON");
    assert!(qwen["hooks"]["StopFailure"][0]["hooks"][0]["command"].is_string(), "{qwen}");
    done(&world, &["--uninstall", "--yes"]);
    for path in made {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(!world.state_dir().join("setup.json").exists());
}

#[test]
fn copilot_gets_a_file_of_our_own() {
    let world = world();
    let theirs = put(&world, ".copilot/hooks/mine.json", "{\"version\": 1, \"hooks\": {}}");
    let ours = file(&world, COPILOT);
    done(&world, &["--yes", "--agent", "copilot"]);
    let hooks: Value = serde_json::from_str(&read(&ours)).expect("JSON");
    assert_eq!(hooks["version"], 1);
    let entry = &hooks["hooks"]["notification"][0];
    assert_eq!(entry["bash"], format!("'{}' hook copilot notification", env!("CARGO_BIN_EXE_agtmux")));
    assert!(hooks["hooks"]["preToolUse"].is_null(), "a hook that cannot be run would stop its tools: {hooks}");
    let again = done(&world, &["--yes", "--agent", "copilot"]);
    assert!(again.text().contains("nothing to do"), "{}", again.text());
    // Whoever removes the state directory can still be rid of it.
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    done(&world, &["--uninstall", "--yes"]);
    assert!(!ours.exists() && backups(&ours).is_empty());
    assert_eq!(read(&theirs), "{\"version\": 1, \"hooks\": {}}");
}

#[test]
fn what_the_user_put_into_our_own_file_stays() {
    let world = world();
    let text =
        "{\n  \"version\": 1,\n  \"hooks\": { \"agentStop\": [{ \"type\": \"command\", \"bash\": \"mine\" }] }\n}\n";
    let ours = put(&world, COPILOT, text);
    done(&world, &["--yes", "--agent", "copilot"]);
    assert!(read(&ours).contains("hook copilot agentStop"));
    done(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&ours), text);
}

#[test]
fn what_the_user_did_in_between_stays() {
    let world = world();
    let claude = put(&world, CLAUDE, "{\n  \"model\": \"opus\"\n}\n");
    let config = put(&world, CODEX_CONFIG, "");
    fs::remove_file(&config).expect("removed");
    done(&world, &["--yes"]);
    fs::write(&claude, read(&claude).replace("\"opus\"", "\"haiku\", // cheaper\n  \"new\": [ ]")).expect("written");
    fs::write(&config, format!("{}model = 'x'\n", read(&config))).expect("written");
    done(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), "{\n  \"model\": \"haiku\", // cheaper\n  \"new\": [ ]\n}\n");
    assert_eq!(read(&config), "model = 'x'\n");
}

/// One event of a name that it does not know would make Cursor ignore the whole file, the user's own hooks included.
#[test]
fn cursors_own_hooks_stay_and_its_version_is_kept() {
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
        done(&world, &["--yes", "--agent", "cursor"]);
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
        done(&world, &["--uninstall", "--yes"]);
        assert_eq!(read(&hooks), text);
    }
}

#[test]
fn the_record_may_be_lost() {
    let world = world();
    let claude = put(&world, CLAUDE, "{\n  \"model\": \"opus\"\n}\n");
    done(&world, &["--yes"]);
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    done(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), "{\n  \"model\": \"opus\"\n}\n");
}

#[test]
fn a_users_notify_is_called_by_ours_and_comes_back() {
    let world = world();
    let told = world.home().join("told");
    let theirs = script(&world, "theirs", &format!("printf '%s\\n' \"$@\" > {}.new; mv {0}.new {0}", told.display()));
    let text = format!("notify = [ \"{}\",\n  '-x', ] # mine\n[t]\n", theirs.display());
    let config = put(&world, CODEX_CONFIG, &text);
    done(&world, &["--yes", "--agent", "codex"]);
    let document: toml_edit::DocumentMut = read(&config).parse().expect("TOML");
    let words: Vec<String> =
        document["notify"].as_array().expect("a list").iter().map(|w| w.as_str().expect("a word").into()).collect();
    assert_eq!(words[1..5], ["hook", "codex", "notify", "--then"]);
    run(world.command(&words[0]).args(&words[1..]).arg("{\"type\":\"agent-turn-complete\"}"));
    let heard = wait_for("the user's own program", SOON, || fs::read_to_string(&told).ok());
    assert_eq!(heard, "-x\n{\"type\":\"agent-turn-complete\"}\n");
    done(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&config), text);
}

#[test]
fn a_file_that_cannot_be_read_is_refused_and_the_others_go_on() {
    let world = world();
    let broken = "{\n  \"a\": 1,\n  oops\n}\n";
    let claude = put(&world, CLAUDE, broken);
    let gemini = put(&world, GEMINI, "{}");
    put(&world, CODEX_CONFIG, "a = 1\nb = = 2\n");
    fs::write(file(&world, CODEX_HOOKS), b"{\n\"a\": \"\xff\"}").expect("written");
    let told = setup(&world, &["--yes"]);
    assert_eq!(told.code, Some(1));
    let said = format!("{}{}", told.text(), told.stderr);
    for part in [".claude/settings.json", "line 3", "config.toml", "line 2", "not UTF-8"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(read(&claude), broken);
    assert!(backups(&claude).is_empty(), "nothing was changed");
    assert!(read(&gemini).contains("hook gemini AfterAgent"));
}

#[test]
fn nothing_is_changed_unasked() {
    let world = world();
    let claude = put(&world, CLAUDE, "{}");
    let dry = done(&world, &["--dry-run"]);
    assert!(dry.text().contains("@@") && dry.text().contains("+    \"Stop\": ["), "{}", dry.text());
    let unasked = setup(&world, &[]);
    assert_eq!(unasked.code, Some(2));
    assert!(unasked.stderr.contains("try: agtmux setup --yes"), "{}", unasked.stderr);
    let json = done(&world, &["--dry-run", "--json"]).json();
    assert_eq!(json["agents"][0]["agent"], "claude");
    assert_eq!(json["agents"][0]["files"][0]["action"], "change");
    assert_eq!(json["agents"][0]["files"][0]["applied"], false);
    assert_eq!(read(&claude), "{}");
    assert!(backups(&claude).is_empty());
    for (answer, expected) in [("n\n", false), ("\n", false), ("y\n", true)] {
        // script(1) gives it a terminal to ask on.
        let mut asked: Command = world.command("script");
        asked.args(["-qec", &format!("{} setup", env!("CARGO_BIN_EXE_agtmux")), "/dev/null"]);
        let input = world.home().join("answer");
        fs::write(&input, answer).expect("written");
        let status = asked.stdin(fs::File::open(&input).expect("opens")).output().expect("it runs").status;
        assert_eq!((status.success(), read(&claude) != "{}"), (expected, expected), "{answer:?}");
    }
}

#[test]
fn modes_and_links_are_kept() {
    let world = world();
    let target = put(&world, "dotfiles/claude.json", "{\n  \"a\": 1\n}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("set");
    fs::create_dir_all(file(&world, ".claude")).expect("made");
    let link = file(&world, CLAUDE);
    symlink("../dotfiles/claude.json", &link).expect("linked");
    done(&world, &["--yes"]);
    assert!(link.is_symlink() && read(&target).contains("hook claude Stop"));
    assert_eq!(fs::metadata(&target).expect("there").permissions().mode() & 0o7777, 0o640);
    let [backup] = &backups(&target)[..] else { panic!("one backup") };
    assert_eq!(fs::metadata(backup).expect("there").permissions().mode() & 0o7777, 0o640);
    done(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&target), "{\n  \"a\": 1\n}\n");
    fs::remove_file(&target).expect("removed");
    let nowhere = setup(&world, &["--yes"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.text().contains("leads nowhere"), "{}", nowhere.text());
}

#[test]
fn a_program_that_moved_is_corrected() {
    let world = world();
    let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"mine\"}]}\n    ]\n  }\n}\n";
    let claude = put(&world, CLAUDE, text);
    done(&world, &["--yes"]);
    let installed = read(&claude);
    fs::write(&claude, installed.replace(env!("CARGO_BIN_EXE_agtmux"), "/old/place/agtmux")).expect("written");
    done(&world, &["--yes"]);
    assert_eq!(read(&claude), installed, "the old path is gone and nothing is there twice");
    done(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), text);
}

#[test]
fn only_what_is_here_is_connected() {
    let world = world();
    let nobody = setup(&world, &["--yes"]);
    if nobody.code == Some(1) {
        assert!(nobody.stderr.contains("no agent was found"), "{}", nobody.stderr);
    }
    let elsewhere = world.home().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    run(world.agtmux().args(["setup", "--yes", "--agent", "claude"]).env("CLAUDE_CONFIG_DIR", &elsewhere));
    assert!(read(&elsewhere.join("settings.json")).contains("hook claude Stop"));
    let told = done(&world, &["--yes", "--agent", "codex"]);
    assert!(told.text().contains("review the new hooks"), "{}", told.text());
}

/// The files that are all ours, with the directories that make their agents known.
fn own_files(world: &TestWorld) -> [PathBuf; 2] {
    let opencode = world.dir().join("config/opencode");
    let pi = file(world, ".pi/agent");
    for dir in [&opencode, &pi] {
        fs::create_dir_all(dir).expect("the world is writable");
    }
    [opencode.join("plugin/agtmux.js"), pi.join("extensions/agtmux.ts")]
}

#[test]
fn files_of_our_own_come_and_go_with_their_directories() {
    let world = world();
    let files = own_files(&world);
    done(&world, &["--yes"]);
    for path in &files {
        let text = read(path);
        let program = format!("const PROGRAM = \"{}\"", env!("CARGO_BIN_EXE_agtmux"));
        assert!(text.contains(&program), "{text}");
        assert!(text.starts_with("// Written by `agtmux setup`"), "{text}");
    }
    let again = done(&world, &["--yes"]);
    assert!(!again.text().contains("@@") && again.text().contains("nothing to do"), "{}", again.text());
    let gone = done(&world, &["--uninstall", "--yes"]);
    assert!(gone.text().contains("removed "), "{}", gone.text());
    for path in &files {
        let dir = path.parent().expect("a directory");
        assert!(!dir.exists() && dir.parent().is_some_and(Path::exists), "{}", path.display());
    }
    assert!(!world.state_dir().join("setup.json").exists());
}

#[test]
fn a_file_of_our_own_follows_the_program_and_leaves_what_is_beside_it() {
    let world = world();
    let [opencode, _] = own_files(&world);
    let link = world.home().join("agtmux");
    symlink(env!("CARGO_BIN_EXE_agtmux"), &link).expect("linked");
    let path = std::env::join_paths([&world.home(), Path::new("/usr/bin"), Path::new("/bin")]).expect("a PATH");
    let elsewhere = run(world.agtmux().args(["setup", "--yes"]).env("PATH", path));
    assert_eq!(elsewhere.code, Some(0), "{}", elsewhere.stderr);
    assert!(read(&opencode).contains(&format!("\"{}\"", link.display())), "the name on PATH outlives updates");
    done(&world, &["--yes"]);
    assert!(read(&opencode).contains(&format!("\"{}\"", env!("CARGO_BIN_EXE_agtmux"))), "{}", read(&opencode));
    assert!(backups(&opencode).is_empty(), "all of it was ours");
    let theirs = opencode.with_file_name("theirs.js");
    fs::write(&theirs, "export const X = async () => ({})\n").expect("written");
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    done(&world, &["--uninstall", "--yes"]);
    assert!(!opencode.exists() && theirs.exists(), "also without the record");
}

#[test]
fn a_file_that_somebody_else_wrote_or_changed_is_left_alone() {
    let world = world();
    let [opencode, pi] = own_files(&world);
    done(&world, &["--yes"]);
    let changed = read(&opencode).replace("PATIENCE = 5000", "PATIENCE = 1");
    fs::write(&opencode, &changed).expect("written");
    fs::write(&pi, "export default () => {};\n").expect("written");
    let refused = setup(&world, &["--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.text().contains("changed after agtmux wrote it; move or delete it"), "{}", refused.text());
    assert!(refused.text().contains("that agtmux has not written; move it"), "{}", refused.text());
    let kept = setup(&world, &["--uninstall", "--yes"]);
    assert_eq!(kept.code, Some(1), "what is left is told");
    assert!(kept.text().contains("changed after agtmux wrote it"), "{}", kept.text());
    assert_eq!((read(&opencode), read(&pi)), (changed, "export default () => {};\n".to_owned()));
}
