//! The helper's contract, field by field, with whatever a folder, a command and an environment can hold.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agtmux_testkit::wait_for;
use serde_json::{Value, json};

use crate::agtmux::{SOON, run};
use crate::stage::Stage;

/// Names that mean something to a shell, to tmux, to a format or to a terminal.
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

fn window_option(stage: &Stage, window: &str, name: &str) -> String {
    // One that ends with a newline is printed with one more.
    stage.tmux.run(&["show-options", "-wv", "-t", window, name])
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
fn whatever_a_folder_is_called_a_task_runs_in_it_and_says_so() {
    for locale in ["C.UTF-8", "C"] {
        let mut stage = Stage::of("foo", locale);
        let home = stage.world.home();
        for (n, folder) in AWKWARD_NAMES.into_iter().enumerate() {
            stage.project = home.join(format!("in-{n}")).join(folder);
            fs::create_dir_all(&stage.project).expect("made");
            stage.session = stage.named(&n.to_string());
            let cwd = stage.project.to_str().expect("UTF-8").to_owned();
            let printed = stage.done(&["run", "t", "--", "pwd >out; printf . >>out"]).text();
            let lines: Vec<&str> = printed.lines().collect();
            assert_eq!(lines.len(), 4, "{folder:?}: {printed:?}");
            let shown = escaped_for_terminal(&cwd);
            assert_eq!(
                [lines[0], lines[2], lines[3]],
                [format!("session={}", stage.session).as_str(), "task=t", format!("cwd={shown}").as_str()]
            );
            let window = lines[1].strip_prefix("window_id=").expect("its window");
            wait_for_file_content(&stage.file("out"), &format!("{cwd}\n."));
            let entry = stage.entry(window).expect("listed");
            assert_eq!(entry["task_cwd"], cwd, "{locale} {folder:?}");
            assert_eq!(stage.event(window, "exited")["exit_code"], 0, "{folder:?}");
            // Once more, from elsewhere.
            fs::remove_file(stage.file("out")).expect("removed");
            let mut again = stage.agtmux();
            let again = run(again.current_dir("/").args(["task", "restart", "t", "--json"])).json();
            assert_eq!((&again["cwd"], &again["window_id"]), (&json!(cwd), &json!(window)), "{folder:?}");
            wait_for_file_content(&stage.file("out"), &format!("{cwd}\n."));
        }
        let sessions = stage.tmux.run(&["list-sessions", "-F", "#{session_name}"]);
        assert_eq!(sessions.lines().count(), AWKWARD_NAMES.len(), "{sessions}");
        assert!(!has_injected_file(&home), "a name was taken for a command");
    }
}

/// As a terminal may see it.
fn escaped_for_terminal(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', "\\t").replace('\u{1b}', "\\x1b").replace('\u{7}', "\\x07")
}

/// Whether a file `x` is anywhere here.
fn has_injected_file(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        entry.file_name() == "x"
            || entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_injected_file(&entry.path())
    })
}

#[test]
fn whatever_a_command_has_in_it_is_run_and_shown_as_it_is() {
    let stage = Stage::new();
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
        // Several words, each of which stays what it is.
        let name = format!("t{n}");
        let started = stage.done(&["run", "--json", &name, "--", "printf", "%s", text]).json();
        let window = started["window_id"].as_str().expect("a window").to_owned();
        assert_eq!(stage.event(&window, "exited")["exit_code"], 0, "{text:?}");
        let log =
            stage.world.state_dir().join(format!("tasks/logs/{}.log", started["run_id"].as_str().expect("an id")));
        // The terminal makes two of each newline.
        wait_for_file_content(&log, &text.replace('\n', "\r\n"));
        // One word, as it is, which is shown as it is.
        let command = format!(": '{}' \"two  words\";", text.replace('\'', "'\\''"));
        let whole = stage.run(&name, &command);
        assert_eq!(window_option(&stage, &whole.window, "@pi_task_command"), command, "{text:?}");
        assert_eq!(stage.entry(&whole.window).expect("listed")["current_command"], command, "{text:?}");
    }
    assert!(!has_injected_file(&stage.world.home()));
}

#[test]
fn words_after_the_name_are_the_commands() {
    let stage = Stage::new();
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
        let started = stage.done(&args).json();
        let run = started["run_id"].as_str().expect("an id").to_owned();
        wait_for(&format!("the end of {words:?}"), SOON, || {
            let events = stage.events();
            events.iter().find(|event| event["run_id"] == run.as_str() && event["type"] == "exited").cloned()
        });
        assert_eq!(stage.done(&["logs", "t"]).text(), says, "{words:?}");
    }
}

#[test]
fn a_list_has_the_fields_of_the_contract() {
    let stage = Stage::new();
    assert_eq!(fields(&stage.list()), BTreeSet::from(["session_name", "exists", "captured_at", "tasks"]));
    let task = stage.run("t", "printf '\\a'; exit 3");
    stage.event(&task.window, "exited");
    let list = stage.list();
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
    // And the launch, which is ours to add.
    let all: BTreeSet<&str> = contract.into_iter().chain(["run_id"]).collect();
    assert_eq!(fields(&list["tasks"][0]), all);
    assert_eq!((&list["session_name"], &list["exists"]), (&json!(stage.session), &json!(true)));
}

#[test]
fn a_session_is_needed_and_the_one_that_is_named_first_counts() {
    let stage = Stage::new();
    let run_in = |pi: &str, agtmux: &str, named: Option<&str>| {
        let mut command = stage.world.agtmux();
        command.current_dir(&stage.project).env("PI_TMUX_SESSION", pi).env("AGTMUX_SESSION", agtmux);
        command.args(["task", "run"]).args(named.map(|name| format!("--session={name}")));
        run(command.args(["t", "--", "true"]))
    };
    for (pi, agtmux, named, session) in
        [("pi-a", "pi-b", Some("pi-c"), "pi-c"), ("pi-a", "pi-b", None, "pi-a"), ("", "pi-b", None, "pi-b")]
    {
        let done = run_in(pi, agtmux, named);
        assert!(done.text().starts_with(&format!("session={session}\nwindow_id=@")), "{done:?}");
    }
    let done = run_in("", "", None);
    assert!(done.code == Some(2) && done.text().is_empty(), "{done:?}");
    for words in ["PI_TMUX_SESSION", "AGTMUX_SESSION", "--session", "try: export AGTMUX_SESSION="] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    // What tmux would take for something else is not given to it.
    for name in ["a.b", "a:b", "=a", "$1", "@1", "%1", "-a", "a b", "a\nb", "#{pid}"] {
        let done = run_in("", "", Some(name));
        assert!(done.code == Some(2) && done.stderr.contains("try:") && done.text().is_empty(), "{name:?}: {done:?}");
    }
}

#[test]
fn a_name_is_one_to_forty_of_the_characters_of_the_contract() {
    let stage = Stage::new();
    let longest = "n".repeat(40);
    for (name, n) in ["a", "A-Z_0.9", "..", "1", &longest].into_iter().zip(0..) {
        let done = stage.task(&["run", name, "--", "true"]);
        assert!(done.text().contains(&format!("window_id=@{n}\ntask={name}\n")), "{done:?}");
    }
    for name in ["", "@", "@1", "a b", "a/b", "a:b", "ä", "a\n", "#(id)", "a;", &"n".repeat(41)] {
        let done = stage.task(&["run", name, "--", "true"]);
        assert!(done.code == Some(2) && done.stderr.contains("1 to 40 letters"), "{name:?}: {done:?}");
    }
    let done = stage.task(&["run", "t"]);
    assert!(done.code == Some(2) && done.text().is_empty(), "{done:?}");
}

#[test]
fn a_session_name_is_made_of_the_folder_and_the_id() {
    let stage = Stage::new();
    let name = |path: &str, id: &str| run(stage.world.agtmux().args(["task", "session-name", path, id]));
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
    let mut by_environment = stage.world.agtmux();
    let by_environment = by_environment.current_dir(&stage.project).env("PI_SESSION_ID", "8");
    assert_eq!(run(by_environment.args(["task", "session-name"])).text(), "pi-foo-8\n");
    let mut nothing = stage.world.agtmux();
    let nothing = run(nothing.current_dir(&stage.project).env_remove("PI_SESSION_ID").args(["task", "session-name"]));
    assert!(nothing.code == Some(2) && nothing.stderr.contains("PI_SESSION_ID"), "{nothing:?}");
}

#[test]
fn a_task_has_the_sessions_name_and_nothing_of_the_session_that_started_it() {
    let stage = Stage::new();
    let stale = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_MIRROR_PANE", "PI_LAST_RC", "AGTMUX_KEEPER", "AGTMUX_PROJECT"];
    // The server is started by this call, and has all of its environment.
    let mut command = stage.agtmux();
    command.envs(stale.map(|name| (name, if name == "AGTMUX_KEEPER" { "2" } else { "/stale" })));
    command.env("PI_TMUX_SESSION", &stage.session).env("PI_CODING_AGENT_DIR", "/pi");
    let done = run(command.args(["task", "run", "t", "--", "env >out; mv out environment"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let text = wait_for("its environment", SOON, || fs::read_to_string(stage.file("environment")).ok());
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    for name in stale {
        assert_eq!(value(name), None, "{name}");
    }
    for name in ["PI_TMUX_SESSION", "AGTMUX_SESSION"] {
        assert_eq!(value(name), Some(stage.session.as_str()), "{name}");
    }
    assert_eq!((value("PI_CODING_AGENT_DIR"), value("AGTMUX_TASK")), (Some("/pi"), Some("t")));
}
