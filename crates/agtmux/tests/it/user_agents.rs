//! User manifests: one file adds an unknown agent with all its states, and changes to the file apply at once.

use std::fs;
use std::path::PathBuf;

use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, items, list, script, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use serde_json::{Value, json};

const MANIFEST: &str = include_str!("otto/otto.toml");
const SCRIPT: &str = include_str!("otto/otto");

/// A program in one pane. It reads the name of a scene and draws this scene.
struct ManifestAgent {
    server: TestTmuxServer,
    pane: String,
    world: TestWorld,
}

impl ManifestAgent {
    fn start(program: &str) -> Self {
        let world = world();
        let agent = Self::start_in(world, program, "");
        start(&agent.world);
        agent
    }

    fn start_in(world: TestWorld, program: &str, option: &str) -> Self {
        let server = world.tmux("default");
        let screens = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/otto/screens");
        let program = script(&world, program, SCRIPT);
        let command = format!("OTTO_SCREENS={screens} exec {} {option}", program.display());
        let pane = server.new_session("work", &command);
        server.run(&["resize-window", "-t", "=work:", "-x", "80", "-y", "24"]);
        Self { server, pane, world }
    }

    fn draw_scene(&self, scene: &str) {
        self.server.run(&["send-keys", "-t", &self.pane, scene, "Enter"]);
    }

    fn item(&self) -> Value {
        let listing = list(&self.world);
        let here = |item: &&Value| item["identity"]["pane_id"] == self.pane.as_str();
        items(&listing).iter().find(here).cloned().unwrap_or(listing)
    }

    /// Waits until the pane has this agent type and state; both are null without an agent.
    #[track_caller]
    fn wait_for_state(&self, kind: &Value, state: &Value) -> Value {
        wait_for(&format!("{kind} in {state}"), SOON, || {
            let item = self.item();
            let why = || format!("{item}\n{}", agtmux(&self.world, &["explain", &self.pane]).text());
            if item["agent_type"] == *kind && item["state"] == *state { Ok(item) } else { Err(why()) }
        })
    }

    #[track_caller]
    fn wait_for_otto_state(&self, state: &str) -> Value {
        self.wait_for_state(&json!("otto"), &json!(state))
    }

    fn adapters(&self) -> Value {
        agtmux(&self.world, &["adapters", "--json"]).json()
    }

    fn adapter(&self, name: &str) -> Option<Value> {
        let adapters = self.adapters();
        items(&adapters).iter().find(|item| item["name"] == name).cloned()
    }

    /// Waits until the adapter of this name satisfies the condition.
    #[track_caller]
    fn wait_for_adapter(&self, what: &str, name: &str, fits: impl Fn(Option<&Value>) -> bool) {
        wait_for(what, SOON, || {
            let adapter = self.adapter(name);
            if fits(adapter.as_ref()) { Ok(()) } else { Err(self.adapters().to_string()) }
        });
    }
}

fn manifest_path(world: &TestWorld, name: &str) -> PathBuf {
    world.config_file().with_file_name("agents").join(name)
}

fn write_manifest(world: &TestWorld, name: &str, text: &str) {
    let path = manifest_path(world, name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, text).expect("written");
}

#[test]
fn one_manifest_file_detects_every_state() {
    let otto = ManifestAgent::start("otto");
    otto.wait_for_state(&Value::Null, &Value::Null);
    write_manifest(&otto.world, "otto.toml", MANIFEST);
    otto.wait_for_otto_state("idle");
    otto.draw_scene("running");
    otto.wait_for_otto_state("running");
    otto.draw_scene("approval");
    let dialog = otto.wait_for_otto_state("waiting_approval")["dialog"].clone();
    assert_eq!((&dialog["kind"], &dialog["question"]), (&json!("approval"), &json!("Run this command?")));
    assert_eq!(dialog["subject"], "$ rm -r build");
    assert_eq!(dialog["options"], json!([{"n": 1, "label": "Yes"}, {"n": 2, "label": "No"}]));
    otto.draw_scene("input");
    let dialog = otto.wait_for_otto_state("waiting_input")["dialog"].clone();
    assert_eq!((&dialog["kind"], &dialog["question"]), (&json!("input"), &json!("Which tea?")));
    assert_eq!(dialog["options"], json!([{"n": 1, "label": "green"}, {"n": 2, "label": "black"}]));
    otto.draw_scene("completed");
    otto.wait_for_otto_state("completed");
    otto.draw_scene("error");
    otto.wait_for_otto_state("error");
    otto.draw_scene("garbage");
    let item = otto.wait_for_otto_state("unknown");
    assert!(item["reason_code"].is_string(), "{item}");
    let adapter = otto.adapter("otto").expect("is known");
    assert_eq!((&adapter["origin"], &adapter["version"], &adapter["agents"]), (&json!("file"), &json!(3), &json!(1)));
    assert_eq!(adapter["file"].as_str().map(PathBuf::from), Some(manifest_path(&otto.world, "otto.toml")));
}

#[test]
fn manifest_changes_apply_immediately() {
    let otto = ManifestAgent::start("otto");
    write_manifest(&otto.world, "otto.toml", MANIFEST);
    otto.wait_for_otto_state("idle");
    // Nothing is drawn: agtmux judges the current screen again.
    write_manifest(&otto.world, "otto.toml", &MANIFEST.replace("state = \"idle\"", "state = \"error\""));
    otto.wait_for_otto_state("error");

    write_manifest(&otto.world, "otto.toml", &MANIFEST.replace(r"all = ['\Aotto: failed']", "all = ['(']"));
    otto.wait_for_adapter("the manifest error", "otto", |adapter| {
        let error = adapter.and_then(|adapter| adapter["error"].as_str()).unwrap_or_default();
        error.contains("otto.toml:26: rule 'failed': 'all' is not a valid regular expression: unclosed group")
    });
    otto.wait_for_otto_state("error");
    let listed = agtmux(&otto.world, &["adapters"]);
    assert!(listed.text().contains("invalid file"), "{}", listed.text());
    assert!(
        listed.stderr.contains("otto.toml:26: rule 'failed'") && listed.stderr.contains("stays in use"),
        "{}",
        listed.stderr
    );

    write_manifest(&otto.world, "otto.toml", &MANIFEST.replace("name = \"otto\"", "name = \"karl\"\ncolour = 1"));
    otto.wait_for_state(&json!("karl"), &json!("idle"));
    let karl = otto.adapter("karl").expect("is known");
    assert_eq!((&karl["error"], otto.adapter("otto")), (&Value::Null, None));
    let warning = karl["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("otto.toml:3: 'colour' is unknown to this version of agtmux"), "{karl}");

    fs::remove_file(manifest_path(&otto.world, "otto.toml")).expect("removed");
    otto.wait_for_state(&Value::Null, &Value::Null);
    otto.wait_for_adapter("no such adapter", "karl", |adapter| adapter.is_none());

    // Editors write a new file and rename it. The directory may be removed and created again.
    fs::remove_dir(manifest_path(&otto.world, "")).expect("removed");
    write_manifest(&otto.world, "otto.toml.new", MANIFEST);
    assert_eq!(otto.adapter("otto"), None);
    fs::rename(manifest_path(&otto.world, "otto.toml.new"), manifest_path(&otto.world, "otto.toml")).expect("moved");
    otto.wait_for_otto_state("idle");
}

#[test]
fn a_manifest_replaces_a_built_in_agent_until_removed() {
    let claude = ManifestAgent::start("claude");
    let is = |state: &str| claude.wait_for_state(&json!("claude"), &json!(state));
    is("unknown");
    assert_eq!(claude.adapter("claude").expect("is known")["origin"], "built_in");
    write_manifest(&claude.world, "mine.toml", &MANIFEST.replace("\"otto\"", "\"claude\""));
    is("idle");
    claude.draw_scene("running");
    is("running");
    let adapter = claude.adapter("claude").expect("is known");
    assert_eq!((&adapter["origin"], &adapter["replaces_built_in"]), (&json!("file"), &json!(true)));
    assert!(agtmux(&claude.world, &["adapters"]).text().contains("mine.toml (replaces the built-in)"));
    fs::remove_file(manifest_path(&claude.world, "mine.toml")).expect("removed");
    is("unknown");
    let adapter = claude.adapter("claude").expect("is known");
    assert_eq!((&adapter["origin"], &adapter["replaces_built_in"]), (&json!("built_in"), &json!(false)));
}

#[test]
fn a_broken_manifest_disables_only_itself() {
    let world = world();
    write_manifest(&world, "otto.toml", MANIFEST);
    write_manifest(&world, "broken.toml", "contract = 1\nname = \"x\"\nprocess = 1\n");
    write_manifest(&world, "claude.toml", &MANIFEST.replace("contract = 1", "contract = 2"));
    write_manifest(&world, "second.toml", MANIFEST);
    fs::create_dir(manifest_path(&world, "dir.toml")).expect("made");
    let otto = ManifestAgent::start_in(world, "otto", "");
    start(&otto.world);
    otto.wait_for_otto_state("idle");
    let adapters = otto.adapters();
    let broken = adapters["broken"].as_array().expect("a list");
    let error = |at: usize| broken[at]["error"].as_str().unwrap_or_default();
    assert_eq!(broken.len(), 4, "{adapters}");
    assert!(error(0).contains("broken.toml:3: "), "{adapters}");
    assert!(
        error(1).contains("claude.toml:1: written for contract 2") && error(1).contains("update agtmux"),
        "{adapters}"
    );
    assert!(error(2).ends_with("dir.toml: is not a regular file"), "{adapters}");
    assert!(error(3).contains("there is already an agent named 'otto', in "), "{adapters}");
    assert_eq!(otto.adapter("claude").expect("is known")["origin"], "built_in");
    let logs = agtmux(&otto.world, &["daemon", "logs"]).text();
    assert!(logs.contains("invalid manifest; it is ignored") && logs.contains("broken.toml:3"), "{logs}");
    let listed = agtmux(&otto.world, &["adapters"]);
    assert!(
        listed.text().lines().any(|line| line.starts_with("broken") && line.contains("broken.toml")),
        "{}",
        listed.text()
    );
    assert!(listed.stderr.contains("try: agtmux adapters check "), "{}", listed.stderr);
}

/// A manifest change re-reads not only the screen, but also the process arguments and the status file.
#[test]
fn a_manifest_change_rereads_every_source() {
    let with = |version: u32, rest: &str| {
        let text = MANIFEST.replace("version = 3", &format!("version = {version}"));
        text.replace("programs = [\"otto\"]", &format!("programs = [\"otto\"]\n{rest}"))
    };
    let reread = |otto: &ManifestAgent, version: u32, rest: &str| {
        write_manifest(&otto.world, "otto.toml", &with(version, rest));
        let fits = |adapter: Option<&Value>| adapter.is_some_and(|adapter| adapter["version"] == version);
        otto.wait_for_adapter("the new version", "otto", fits);
    };
    let headless = "headless = [\"--print\"]\n";
    let otto = ManifestAgent::start_in(world(), "otto", "--print");
    write_manifest(&otto.world, "otto.toml", &with(4, headless));
    start(&otto.world);
    otto.draw_scene("garbage");
    otto.wait_for_otto_state("running");
    reread(&otto, 5, headless);
    otto.wait_for_otto_state("running");
    reread(&otto, 6, "");
    otto.wait_for_otto_state("unknown");

    let status = "[status_file]\nroot = '.otto'\npath = '{pid}.json'\nevent = 'status'\n\
                  [[event]]\nsource = 'file'\ntype = 'status'\nwhen = { is = 'busy' }\nturn = 'running'\n";
    let pid = otto.server.run(&["display-message", "-p", "-t", &otto.pane, "#{pane_pid}"]);
    fs::create_dir(otto.world.home().join(".otto")).expect("made");
    fs::write(otto.world.home().join(format!(".otto/{}.json", pid.trim())), r#"{"is": "busy"}"#).expect("written");
    reread(&otto, 7, status);
    otto.wait_for_otto_state("running");
    reread(&otto, 8, status);
    otto.wait_for_otto_state("running");
    reread(&otto, 9, &status.replace("'running'", "'error'"));
    otto.wait_for_otto_state("error");
}

#[test]
fn changes_behind_a_manifest_symlink_apply() {
    let otto = ManifestAgent::start("otto");
    let (dotfiles, link) = (otto.world.home().join("dotfiles.toml"), manifest_path(&otto.world, "otto.toml"));
    fs::write(&dotfiles, MANIFEST).expect("written");
    fs::create_dir_all(link.parent().expect("a directory")).expect("made");
    std::os::unix::fs::symlink(&dotfiles, &link).expect("linked");
    otto.wait_for_otto_state("idle");
    fs::write(&dotfiles, MANIFEST.replace("state = \"idle\"", "state = \"error\"")).expect("written");
    otto.wait_for_otto_state("error");
}

/// A recording contains the data for debugging, with secrets redacted.
#[test]
fn adapters_record_redacts_secrets() {
    let world = world();
    write_manifest(&world, "otto.toml", MANIFEST);
    let key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz";
    let otto = ManifestAgent::start_in(world, "otto", "");
    let tty = otto.server.run(&["display-message", "-p", "-t", &otto.pane, "#{pane_tty}"]);
    start(&otto.world);
    otto.draw_scene("running");
    otto.wait_for_otto_state("running");
    let args = ["emit", "--pane", &otto.pane, "--source", "hook", "--event-type", "running", "--dedupe-key", "1"];
    assert_eq!(agtmux(&otto.world, &args).code, Some(0));
    fs::write(tty.trim(), format!("\x1b]2;title {key}\x1b\\\x1b[20;1H\x1b[1mexport KEY={key}\x1b[0m")).expect("drawn");
    wait_for("the secret on screen", SOON, || {
        let shown = otto.server.run(&["capture-pane", "-p", "-t", &otto.pane]);
        if shown.contains("export KEY") { Ok(()) } else { Err(shown) }
    });
    let out = otto.world.dir().join("report");
    let saved = agtmux(&otto.world, &["adapters", "record", "otto", "--out", out.to_str().expect("plain")]);
    assert_eq!((saved.code, saved.text().trim()), (Some(0), out.to_str().expect("plain")), "{}", saved.stderr);
    let text = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for name in ["screen.txt", "screen.ansi", "facts.json", "explain.json", "history.json", "events.json"] {
        assert!(!text(name).contains(&key[14..40]), "{name}: {}", text(name));
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(out.join(name)).expect("the file exists"));
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(text("screen.txt").contains("~ boiling (3 s)\n") && text("screen.txt").contains("[redacted:"));
    let facts: Value = serde_json::from_str(&text("facts.json")).expect("JSON");
    assert!(facts["title"].as_str().is_some_and(|title| title.starts_with("title [redacted:")), "{facts}");
    let argv = |process: &Value| process["argv"].to_string().contains("/otto");
    assert!(facts["processes"].as_array().is_some_and(|all| all.iter().any(argv)), "{facts}");
    let events: Value = serde_json::from_str(&text("events.json")).expect("JSON");
    assert_eq!(events["items"][0]["event_type"], "running", "{events}");

    let again = agtmux(&otto.world, &["adapters", "record", "otto", "--out", out.to_str().expect("plain")]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    let usual = agtmux(&otto.world, &["adapters", "record", &otto.pane]);
    assert!(usual.text().starts_with(otto.world.state_dir().join("records/otto-").to_str().expect("plain")));
    let screen = PathBuf::from(usual.text().trim()).join("screen.ansi");
    let judged =
        agtmux(&otto.world, &["explain", "--screen", screen.to_str().expect("plain"), "--agent", "otto", "--json"]);
    assert_eq!(judged.json()["state"], "unknown", "text below the input box makes the screen unknown");
    assert_eq!(agtmux(&otto.world, &["adapters", "record", "missing"]).code, Some(5));
}

fn run_without_daemon(world: &TestWorld, args: &[&str]) -> CommandResult {
    agtmux_testkit::agtmux::run(world.agtmux().env("AGTMUX_NO_AUTOSTART", "1").args(args))
}

#[test]
fn adapters_check_works_without_a_daemon() {
    let world = world();
    let file = world.home().join("otto.toml");
    let check = |text: &str, more: &[&str]| {
        fs::write(&file, text).expect("written");
        run_without_daemon(&world, &[&["adapters", "check", file.to_str().expect("plain")], more].concat())
    };
    let good = check(MANIFEST, &[]);
    assert_eq!((good.code, good.stderr.as_str()), (Some(0), ""));
    for part in [
        "otto.toml is valid: agent 'otto', version 3\n",
        "  recognised by  otto\n",
        "  rules          4 screen, 2 dialog, 0 title, 0 event\n",
        "  states         error, waiting_approval, waiting_input, running, completed, idle\n",
        "to use this manifest, move the file to ",
    ] {
        assert!(good.text().contains(part), "{}", good.text());
    }
    let warned = check(&MANIFEST.replace("footer = 1", "footer = 1\nheader = 1"), &[]);
    assert_eq!(warned.code, Some(0));
    let warning = "otto.toml:13: 'layout.header' is unknown to this version of agtmux";
    assert!(warned.text().contains(warning), "{}", warned.text());
    let replaces = check(&MANIFEST.replace("\"otto\"", "\"codex\""), &[]);
    assert!(replaces.text().contains("replaces       the built-in agent 'codex'"), "{}", replaces.text());
    let bad = check(&MANIFEST.replace("'^press", "'^(press"), &[]);
    assert_eq!((bad.code, bad.text().as_str()), (Some(2), ""));
    assert!(
        bad.stderr.contains("otto.toml:47: dialog 'permission': 'hint' is not a valid regular expression"),
        "{}",
        bad.stderr
    );
    let other = check(&MANIFEST.replace("contract = 1", "contract = 2"), &["--json"]);
    let json: Value = serde_json::from_slice(&other.stdout).expect("JSON");
    assert_eq!((other.code, &json["ok"], &json["line"]), (Some(2), &json!(false), &json!(1)));
    let hostile = check("contract = 1\nname = \"\u{1b}[31m\"\n[process]\nprograms = [\"x\"]\n", &[]);
    assert!(hostile.code == Some(2) && !hostile.stderr.contains('\u{1b}'), "{:?}", hostile.stderr);
    assert_eq!(run_without_daemon(&world, &["adapters", "check", "/nowhere.toml"]).code, Some(2));
    assert!(!world.state_dir().join("state.db").exists(), "no daemon was started");
}

#[test]
fn adapters_new_never_overwrites_a_file() {
    let world = world();
    let new = |args: &[&str]| run_without_daemon(&world, &[&["adapters", "new"], args].concat());
    let path = manifest_path(&world, "otto.toml");
    let written = new(&["otto"]);
    assert_eq!((written.code, written.text().trim()), (Some(0), path.to_str().expect("plain")), "{}", written.stderr);
    assert_eq!(run_without_daemon(&world, &["adapters", "check", path.to_str().expect("plain")]).code, Some(0));
    let again = new(&["otto"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("the agent 'otto' already exists, in '"), "{}", again.stderr);
    fs::write(&path, "broken").expect("written");
    assert!(new(&["otto"]).stderr.contains("already exists and was not changed"));
    assert_eq!(fs::read_to_string(&path).expect("the file exists"), "broken");
    let taken = new(&["claude"]);
    assert_eq!(taken.code, Some(1));
    assert!(taken.stderr.contains("'claude' is a built-in agent"), "{}", taken.stderr);
    assert!(!manifest_path(&world, "claude.toml").exists());
    assert!(new(&["claude", "--stdout"]).text().contains("name = \"claude\""));
    assert!(new(&["karl", "--stdout"]).text().contains("name = \"karl\""));
    for bad in ["Otto", "../x", "", "a b", "x\"y"] {
        assert_eq!(new(&[bad]).code, Some(2), "{bad}");
    }
}

#[test]
fn explain_screen_accepts_a_user_manifest() {
    let world = world();
    let screen = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/otto/screens/approval");
    let judge =
        |more: &[&str]| run_without_daemon(&world, &[&["explain", "--screen", screen, "--json"], more].concat());
    assert_eq!(judge(&["--agent", "otto"]).code, Some(2));
    let file = world.home().join("elsewhere.toml");
    fs::write(&file, MANIFEST).expect("written");
    let file = file.to_str().expect("plain");
    let judged = judge(&["--agent", "otto", "--manifest", file]).json();
    assert_eq!((&judged["state"], &judged["rule"]), (&json!("waiting_approval"), &json!("permission")));
    assert_eq!(judge(&["--manifest", file]).json()["state"], "waiting_approval");
    let other = judge(&["--agent", "claude", "--manifest", file]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("describes the agent 'otto', not 'claude'"), "{}", other.stderr);
    write_manifest(&world, "otto.toml", MANIFEST);
    assert_eq!(judge(&["--agent", "otto"]).json()["state"], "waiting_approval");
    write_manifest(&world, "otto.toml", "contract = 1\nname =");
    let broken = judge(&["--agent", "otto"]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("otto.toml:2: "), "{}", broken.stderr);
    assert_eq!(judge(&["--agent", "claude"]).json()["state"], "unknown", "other agents still work");
}
