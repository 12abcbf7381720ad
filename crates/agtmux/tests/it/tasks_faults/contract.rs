//! The contract of the task helper, field by field, with awkward folders, commands and environments.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agtmux_testkit::agtmux::{SOON, run};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::wait_for;
use serde_json::{Value, json};

/// Names with a special meaning for a shell, tmux, a format or a terminal.
const AWKWARD_NAMES: [&str; 20] = [
    "my.app",
    "a:b",
    "Ünïcode",
    "foo-bar",
    "two\nlines",
    "it's",
    "a\"b",
    "$(touch x)",
    "`touch x`",
    "#{pane_id}",
    "#(touch x)",
    "50%",
    "%s%d%%1",
    "ends;",
    "; touch x;",
    "back\\slash\\",
    "back\\\nslash",
    "-n",
    " spaces  and\ttabs ",
    "\u{1b}[31mred\u{7}",
];

fn window_option(fixture: &TaskFixture, window: &str, name: &str) -> String {
    fixture.tmux.run(&["show-options", "-wv", "-t", window, name])
}

fn fields(entry: &Value) -> BTreeSet<&str> {
    entry.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[track_caller]
fn wait_for_file_content(path: &Path, holds: &str) {
    wait_for(&format!("'{holds:?}' in {path:?}"), SOON, || {
        let text = fs::read_to_string(path).unwrap_or_default();
        (text == holds).then_some(()).ok_or(text)
    });
}

#[test]
fn a_task_runs_in_a_folder_with_any_name() {
    for locale in ["C.UTF-8", "C"] {
        let mut fixture = TaskFixture::with_project("foo", locale);
        let home = fixture.world.home();
        for (n, folder) in AWKWARD_NAMES.into_iter().enumerate() {
            fixture.project = home.join(format!("in-{n}")).join(folder);
            fs::create_dir_all(&fixture.project).expect("made");
            fixture.session = fixture.session_name(&n.to_string());
            let cwd = fixture.project.to_str().expect("UTF-8").to_owned();
            let printed = fixture.task_ok(&["run", "--replace", "t", "--", "pwd >out; printf . >>out"]).text();
            let lines: Vec<&str> = printed.lines().collect();
            assert_eq!(lines.len(), 4, "{folder:?}: {printed:?}");
            let escaped = escaped_for_terminal(&cwd);
            assert_eq!(
                [lines[0], lines[2], lines[3]],
                [format!("session={}", fixture.session).as_str(), "task=t", format!("cwd={escaped}").as_str()]
            );
            let window = lines[1].strip_prefix("window_id=").expect("its window");
            wait_for_file_content(&fixture.file("out"), &format!("{cwd}\n."));
            let entry = fixture.entry(window).expect("listed");
            assert_eq!(entry["task_cwd"], cwd, "{locale} {folder:?}");
            assert_eq!(fixture.event(window, "exited")["exit_code"], 0, "{folder:?}");
            // Restart from another directory.
            fs::remove_file(fixture.file("out")).expect("removed");
            let mut again = fixture.agtmux();
            let again = run(again.current_dir("/").args(["task", "restart", "t", "--json"])).json();
            assert_eq!((&again["cwd"], &again["window_id"]), (&json!(cwd), &json!(window)), "{folder:?}");
            wait_for_file_content(&fixture.file("out"), &format!("{cwd}\n."));
        }
        let sessions = fixture.tmux.run(&["list-sessions", "-F", "#{session_name}"]);
        assert_eq!(sessions.lines().count(), AWKWARD_NAMES.len(), "{sessions}");
        assert!(!has_injected_file(&home), "a name was run as a command");
    }
}

/// The text with control characters escaped for a terminal.
fn escaped_for_terminal(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', "\\t").replace('\u{1b}', "\\x1b").replace('\u{7}', "\\x07")
}

/// Whether a file `x` exists in the directory or below it.
fn has_injected_file(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        entry.file_name() == "x"
            || entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_injected_file(&entry.path())
    })
}

#[test]
fn commands_with_special_characters_run_unchanged() {
    let fixture = TaskFixture::new();
    let texts = AWKWARD_NAMES.iter().copied().chain([
        "#{E:pane_title}",
        "a\n\n  b\n",
        "line \\\n",
        "\\",
        "'",
        "#",
        "##{x}",
        "%1 %%",
    ]);
    for (n, text) in texts.enumerate() {
        // Several words: each stays one argument.
        let name = format!("t{n}");
        let started = fixture.task_ok(&["run", "--json", &name, "--", "printf", "%s", text]).json();
        let window = started["window_id"].as_str().expect("a window").to_owned();
        assert_eq!(fixture.event(&window, "exited")["exit_code"], 0, "{text:?}");
        let log =
            fixture.world.state_dir().join(format!("tasks/logs/{}.log", started["run_id"].as_str().expect("an id")));
        // The terminal turns each newline into CR LF.
        wait_for_file_content(&log, &text.replace('\n', "\r\n"));
        // One word: the shell runs it unchanged, and the list shows it unchanged.
        let command = format!(": '{}' \"two  words\";", text.replace('\'', "'\\''"));
        let whole = fixture.run(&name, &command);
        assert_eq!(window_option(&fixture, &whole.window, "@pi_task_command"), command, "{text:?}");
        assert_eq!(fixture.entry(&whole.window).expect("listed")["current_command"], command, "{text:?}");
    }
    assert!(!has_injected_file(&fixture.world.home()));
}

#[test]
fn words_after_the_task_name_are_the_command() {
    let fixture = TaskFixture::new();
    let cases: [(&[&str], &str); 7] = [
        (&["t", "--", "echo a   b"], "a b\n"),
        (&["t", "echo a   b"], "a b\n"),
        (&["t", "--", "echo", "a   b"], "a   b\n"),
        (&["t", "echo", "--", "-n", "--json"], "-- -n --json\n"),
        (&["t", "--", "echo", "--", "b"], "-- b\n"),
        (&["t", "--", "echo", "--session", "x"], "--session x\n"),
        (&["t", "--", "printf", "<%s>", "", "a'b", "$HOME", "*"], "<><a'b><$HOME><*>\n"),
    ];
    for (words, says) in cases {
        let args: Vec<&str> = ["run", "--json"].into_iter().chain(words.iter().copied()).collect();
        let started = fixture.task_ok(&args).json();
        let run = started["run_id"].as_str().expect("an id").to_owned();
        wait_for(&format!("the end of {words:?}"), SOON, || {
            let events = fixture.events();
            events.iter().find(|event| event["run_id"] == run.as_str() && event["type"] == "exited").cloned()
        });
        assert_eq!(fixture.task_ok(&["logs", "t"]).text(), says, "{words:?}");
    }
}

#[test]
fn a_task_list_has_the_fields_of_the_contract() {
    let fixture = TaskFixture::new();
    assert_eq!(fields(&fixture.list()), BTreeSet::from(["session_name", "exists", "captured_at", "tasks"]));
    let task = fixture.run("t", "printf '\\a'; exit 3");
    fixture.event(&task.window, "exited");
    let list = fixture.list();
    assert_eq!(fields(&list), BTreeSet::from(["session_name", "exists", "captured_at", "tasks"]));
    let contract = [
        "window_id",
        "window_name",
        "pane_id",
        "pane_state_known",
        "current_command",
        "task_cwd",
        "dead",
        "exit_code",
        "signal",
        "bell",
        "bell_count",
        "output_preview",
    ];
    // `run_id` is an addition of agtmux.
    let all: BTreeSet<&str> = contract.into_iter().chain(["run_id"]).collect();
    assert_eq!(fields(&list["tasks"][0]), all);
    assert_eq!((&list["session_name"], &list["exists"]), (&json!(fixture.session), &json!(true)));
}

#[test]
fn the_session_option_overrides_the_environment_and_the_default() {
    let fixture = TaskFixture::new();
    let run_in = |pi: &str, agtmux: &str, named: Option<&str>| {
        let mut command = fixture.world.agtmux();
        command.current_dir(&fixture.project).env("PI_TMUX_SESSION", pi).env("AGTMUX_SESSION", agtmux);
        command.args(["task", "run"]).args(named.map(|name| format!("--session={name}")));
        run(command.args(["t", "--", "true"]))
    };
    for (pi, agtmux, named, session) in [
        ("pi-a", "pi-b", Some("pi-c"), "pi-c"),
        ("pi-a", "pi-b", None, "pi-a"),
        ("", "pi-b", None, "pi-b"),
        ("", "", None, "agtmux-foo"),
    ] {
        let done = run_in(pi, agtmux, named);
        assert!(done.text().starts_with(&format!("session={session}\nwindow_id=@")), "{done:?}");
    }
    // Names with a special meaning for tmux are refused.
    for name in ["a.b", "a:b", "=a", "$1", "@1", "%1", "-a", "a b", "a\nb", "#{pid}"] {
        let done = run_in("", "", Some(name));
        assert!(done.code == Some(2) && done.stderr.contains("try:") && done.text().is_empty(), "{name:?}: {done:?}");
    }
}

#[test]
fn a_task_name_has_one_to_forty_allowed_characters() {
    let fixture = TaskFixture::new();
    let longest = "n".repeat(40);
    for (name, n) in ["a", "A-Z_0.9", "..", "1", &longest].into_iter().zip(0..) {
        let done = fixture.task(&["run", name, "--", "true"]);
        assert!(done.text().contains(&format!("window_id=@{n}\ntask={name}\n")), "{done:?}");
    }
    for name in ["", "@", "@1", "a b", "a/b", "a:b", "ä", "a\n", "#(id)", "a;", &"n".repeat(41)] {
        let done = fixture.task(&["run", name, "--", "true"]);
        assert!(done.code == Some(2) && done.stderr.contains("1 to 40 letters"), "{name:?}: {done:?}");
    }
    let done = fixture.task(&["run", "t"]);
    assert!(done.code == Some(2) && done.text().is_empty(), "{done:?}");
}

#[test]
fn a_session_name_is_built_from_the_folder_and_the_id() {
    let fixture = TaskFixture::new();
    let name = |path: &str, id: &str| run(fixture.world.agtmux().args(["task", "session-name", path, id]));
    for (path, id, expected) in [
        ("/w/My.App", "7", "pi-my-app-7"),
        ("/w/a:b", "7", "pi-a-b-7"),
        ("/w/Ünïcode", "7", "pi-n-code-7"),
        ("/w/foo", "7", "pi-foo-7"),
        ("/w/foo-bar", "7", "pi-foo-bar-7"),
        ("/w/snake_case", "7", "pi-snake_case-7"),
        ("/w/日本", "7", "pi-project-7"),
        ("/w/$(touch x)", "7", "pi-touch-x-7"),
        ("/w/#{pane_id}", "7", "pi-pane_id-7"),
        ("/w/two\nlines", "7", "pi-two-lines-7"),
        ("/w/a;", "7", "pi-a-7"),
        ("/w/trailing/", "7", "pi-trailing-7"),
        ("/", "7", "pi-project-7"),
        ("/w/foo", "0198A3c2-7d4e-7c11-9f00-5b6a3f1e2d4c", "pi-foo-0198A3c2-7d4e-7c11-9f00-5b6a3f1e2d4c"),
    ] {
        let done = name(path, id);
        assert_eq!((done.text(), done.code), (format!("{expected}\n"), Some(0)), "{path:?}: {done:?}");
    }
    assert_eq!(name("", "7").code, Some(2));
    for path in ["foo", "./foo", "../foo", "~/foo", "."] {
        let done = name(path, "7");
        assert!(done.code == Some(2) && done.text().is_empty(), "{path:?}: {done:?}");
        assert!(done.stderr.contains("absolute path") && done.stderr.contains("try:"), "{path:?}: {}", done.stderr);
    }
    let mut by_environment = fixture.world.agtmux();
    let by_environment = by_environment.current_dir(&fixture.project).env("PI_SESSION_ID", "8");
    assert_eq!(run(by_environment.args(["task", "session-name"])).text(), "pi-foo-8\n");
    let mut nothing = fixture.world.agtmux();
    let nothing = run(nothing.current_dir(&fixture.project).env_remove("PI_SESSION_ID").args(["task", "session-name"]));
    assert!(nothing.code == Some(2) && nothing.stderr.contains("PI_SESSION_ID"), "{nothing:?}");
}

#[test]
fn a_task_gets_its_session_name_and_no_stale_variables() {
    let fixture = TaskFixture::new();
    let stale = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_MIRROR_PANE", "PI_LAST_RC", "AGTMUX_OWNER", "AGTMUX_PROJECT"];
    // This call starts the tmux server, which inherits the environment of the call.
    let mut command = fixture.agtmux();
    command.envs(stale.map(|name| (name, if name == "AGTMUX_OWNER" { "2" } else { "/stale" })));
    command.env("PI_TMUX_SESSION", &fixture.session).env("PI_CODING_AGENT_DIR", "/pi");
    let done = run(command.args(["task", "run", "t", "--", "env >out; mv out environment"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let text = wait_for("the environment of the task", SOON, || fs::read_to_string(fixture.file("environment")).ok());
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    for name in stale {
        assert_eq!(value(name), None, "{name}");
    }
    for name in ["PI_TMUX_SESSION", "AGTMUX_SESSION"] {
        assert_eq!(value(name), Some(fixture.session.as_str()), "{name}");
    }
    assert_eq!((value("PI_CODING_AGENT_DIR"), value("AGTMUX_TASK")), (Some("/pi"), Some("t")));
}
