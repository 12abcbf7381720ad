//! `agtmux setup --uninstall` removes every entry of agtmux and nothing that the user wrote.

use std::fs;
use std::os::unix::fs::symlink;

use agtmux_testkit::TestWorld;
use agtmux_testkit::agtmux::{run, world};

use crate::settings::{CLAUDE, CODEX_CONFIG, COPILOT, GEMINI, backups, file, put, read, setup, setup_ok};

const AGTMUX_PATH: &str = env!("CARGO_BIN_EXE_agtmux");

fn edit(world: &TestWorld, name: &str, from: &str, to: &str) -> String {
    let path = file(world, name);
    let before = read(&path);
    assert!(before.contains(from), "{from} in {before}");
    let after = before.replacen(from, to, 1);
    fs::write(path, &after).expect("written");
    after
}

#[test]
fn a_created_file_with_a_user_comment_is_kept() {
    for (agent, name, place) in
        [("gemini", GEMINI, "{\n"), ("copilot", COPILOT, "\"hooks\": {\n"), ("codex", CODEX_CONFIG, "notify")]
    {
        let world = world();
        setup_ok(&world, &["--agent", agent, "--yes"]);
        let comment = if name.ends_with("toml") { "# model = 'x'\n" } else { "  // \"model\": \"x\",\n" };
        let edited = edit(
            &world,
            name,
            place,
            &if place == "notify" { format!("{comment}{place}") } else { format!("{place}{comment}") },
        );
        setup_ok(&world, &["--uninstall", "--yes"]);
        let left = read(&file(&world, name));
        assert!(left.contains(comment) && !left.contains("agtmux"), "{agent}: {left}");
        let [backup] = &backups(&file(&world, name))[..] else { panic!("one backup") };
        assert_eq!(read(backup), edited);
    }
}

#[test]
fn a_comment_in_a_formerly_empty_file_is_kept() {
    let world = world();
    let gemini = put(&world, GEMINI, "");
    setup_ok(&world, &["--agent", "gemini", "--yes"]);
    edit(&world, GEMINI, "{\n", "{\n  // mine\n");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&gemini), "{\n  // mine\n}\n");
}

/// The user changed only a number in an entry of agtmux, so the file holds nothing else of the user. Uninstall removes
/// the file after a backup.
#[test]
fn a_modified_file_is_backed_up_before_removal() {
    let world = world();
    setup_ok(&world, &["--agent", "claude", "--agent", "gemini", "--yes"]);
    let edited = edit(&world, CLAUDE, "\"timeout\": 5", "\"timeout\": 50");
    // Simulate a file that an agtmux at another path wrote.
    let gemini = read(&file(&world, GEMINI)).replace(AGTMUX_PATH, "/old/place/agtmux");
    fs::write(file(&world, GEMINI), gemini).expect("written");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, CLAUDE).exists());
    let [backup] = &backups(&file(&world, CLAUDE))[..] else { panic!("one backup") };
    assert_eq!(read(backup), edited);
    assert!(!file(&world, ".gemini").exists(), "an unmodified file is removed with its directory");
}

#[test]
fn a_commented_out_hook_survives_a_path_update() {
    let world = world();
    let gemini = put(&world, GEMINI, "{\n  \"a\": 1\n}\n");
    setup_ok(&world, &["--yes"]);
    let mine = "    // \"BeforeTool\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"my-linter\" }] }],\n";
    edit(&world, GEMINI, "\"hooks\": {\n", &format!("\"hooks\": {{\n{mine}"));
    fs::write(&gemini, read(&gemini).replace(AGTMUX_PATH, "/old/place/agtmux")).expect("written");
    setup_ok(&world, &["--yes"]);
    assert!(read(&gemini).contains(mine) && !read(&gemini).contains("/old/place"), "{}", read(&gemini));
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&gemini), format!("{{\n  \"a\": 1,\n  \"hooks\": {{\n{mine}  }}\n}}\n"));
}

#[test]
fn hooks_written_by_the_user_are_kept() {
    let world = world();
    let text = r#"{"hooks":{"PreCompact":[{"matcher":"auto","hooks":[{"type":"command","command":"agtmux hook claude PreCompact","async":true}]}],"Stop":[{"hooks":[{"type":"command","command":"agtmux hook claude Stop"}]}]}}"#;
    let claude = put(&world, CLAUDE, text);
    let config = put(&world, CODEX_CONFIG, "notify = [\"agtmux\", \"hook\", \"codex\", \"notify\"]\n");
    setup_ok(&world, &["--yes"]);
    assert!(
        read(&claude).contains("\"async\":true")
            && read(&claude).contains(&format!("'{AGTMUX_PATH}' hook claude Stop"))
    );
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&claude), text);
    assert_eq!(read(&config), "notify = [\"agtmux\", \"hook\", \"codex\", \"notify\"]\n");
}

#[test]
fn a_symlinked_home_is_restored() {
    let world = world();
    let (home, link) = (world.dir().join("real"), world.dir().join("link"));
    fs::create_dir(&home).expect("made");
    symlink("real", &link).expect("linked");
    let agents = ["claude", "codex", "opencode", "copilot"];
    let run = |args: &[&str]| {
        let done = run(world.agtmux().env("HOME", &link).env_remove("XDG_CONFIG_HOME").arg("setup").args(args));
        assert_eq!(done.code, Some(0), "{}{}", done.text(), done.stderr);
    };
    let named: Vec<&str> = agents.iter().flat_map(|agent| ["--agent", *agent]).chain(["--yes"]).collect();
    run(&named);
    assert!(home.join(CLAUDE).exists() && home.join(".config/opencode/plugin/agtmux.js").exists());
    run(&["--uninstall", "--yes"]);
    let left: Vec<_> = fs::read_dir(&home).expect("readable").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!world.state_dir().join("setup.json").exists());
}

#[test]
fn uninstall_finds_files_under_other_config_variables() {
    let world = world();
    let elsewhere = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"].map(|name| (name, world.dir().join(name)));
    let named = ["setup", "--agent", "claude", "--agent", "codex", "--agent", "gemini", "--yes"];
    let installed = run(world.agtmux().args(named).envs(elsewhere.iter().map(|(name, dir)| (name, dir))));
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    assert!(elsewhere.iter().all(|(_, dir)| dir.is_dir()));
    let one = setup_ok(&world, &["--uninstall", "--agent", "codex", "--yes"]);
    assert!(one.text().contains("CODEX_HOME/config.toml"), "{}", one.text());
    let left = elsewhere.each_ref().map(|(_, dir)| dir.exists());
    assert_eq!(left, [true, false, true], "only the named agent is uninstalled");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(elsewhere.iter().all(|(_, dir)| !dir.exists()));
    assert!(!world.state_dir().join("setup.json").exists());
}

#[test]
fn a_relative_config_directory_is_ignored_with_a_warning() {
    let world = world();
    put(&world, CLAUDE, "{}");
    let result = run(world.agtmux().args(["setup", "--yes"]).env("CLAUDE_CONFIG_DIR", "work/claude"));
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    assert!(result.stderr.contains("ignoring CLAUDE_CONFIG_DIR"), "{}", result.stderr);
    assert!(!setup_ok(&world, &["--uninstall", "--yes"]).stderr.contains("ignoring"));
    assert_eq!(setup(&world, &["--dry-run"]).stderr, "");
}
