//! Wrong or hostile content in the files that the helper processes of a task write.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, kill, pid, soak, start};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{BusyCores, ChildGuard, wait_for, wait_until};
use serde_json::{Value, json};

const ENDED: &str = r#"{"code":7,"signal":null,"hung_up":false}"#;
const NOBODY_UID: u32 = 65534;

fn tasks(fixture: &TaskFixture) -> PathBuf {
    fixture.world.state_dir().join("tasks")
}

/// Replaces the file atomically.
fn replace_file(fixture: &TaskFixture, path: &Path, make: impl FnOnce(&Path)) {
    let draft = fixture.world.state_dir().join("draft");
    make(&draft);
    fs::rename(draft, path).expect("moved");
}

fn fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).expect("a fifo");
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).expect("written");
}

/// A description, and a function that creates the replacement.
type FileReplacement = (&'static str, Box<dyn Fn(&Path)>);

/// Everything that could replace an exit file. The last case needs the right to change the owner of a file.
fn replacements(fixture: &TaskFixture) -> Vec<FileReplacement> {
    let elsewhere = fixture.world.home().join("elsewhere");
    write(&elsewhere, ENDED);
    vec![
        ("a symlink", Box::new(move |path| symlink(&elsewhere, path).expect("linked"))),
        ("a symlink to an endless file", Box::new(|path| symlink("/dev/zero", path).expect("linked"))),
        ("a fifo", Box::new(fifo)),
        ("a large file", Box::new(|path| write(path, format!("{ENDED}{}", " ".repeat(2 << 20))))),
        ("garbage", Box::new(|path| write(path, b"\xff\x00{{{"))),
        ("an empty file", Box::new(|path| write(path, ""))),
        ("wrong types", Box::new(|path| write(path, r#"{"code":"7","signal":[],"hung_up":1}"#))),
        (
            "a number out of range",
            Box::new(|path| write(path, r#"{"code":99999999999,"signal":null,"hung_up":false}"#)),
        ),
        ("a directory", Box::new(|path| fs::create_dir(path).expect("made"))),
        (
            "a file of another user",
            Box::new(|path| {
                write(path, ENDED);
                if chown(path, Some(NOBODY_UID), None).is_err() {
                    write(path, "");
                }
            }),
        ),
    ]
}

fn messages_of_run(fixture: &TaskFixture, run: &str) -> Vec<String> {
    fixture
        .events()
        .iter()
        .filter(|event| event["run_id"] == run)
        .map(agtmux_testkit::task_fixture::short_message)
        .collect()
}

#[test]
fn a_wrong_exit_file_is_ignored_and_the_real_exit_is_reported() {
    let fixture = TaskFixture::new();
    let cases = replacements(&fixture);
    let tasks: Vec<_> = (0..cases.len())
        .map(|n| fixture.run(&format!("t{n}"), &format!("until [ -e go{n} ]; do sleep 0.05; done; exit {}", 20 + n)))
        .collect();
    for ((_, make), task) in cases.iter().zip(&tasks) {
        replace_file(&fixture, &tasks_file(&fixture, &task.run, "exit"), make);
    }
    // Other tasks are reported in time, so these files block nothing.
    fixture.run_marker_task();
    for ((what, _), task) in cases.iter().zip(&tasks) {
        assert_eq!(messages_of_run(&fixture, &task.run), ["started"], "{what}");
    }
    for n in 0..tasks.len() {
        write(&fixture.file(&format!("go{n}")), "");
    }
    for (n, ((what, _), task)) in cases.iter().zip(&tasks).enumerate() {
        let exited = wait_for(&format!("the exit event with {what} as exit file"), SOON, || {
            let events = fixture.events();
            let mut ends =
                events.iter().filter(|event| event["run_id"] == task.run.as_str() && event["type"] == "exited");
            ends.next()
                .cloned()
                .ok_or_else(|| events.iter().map(agtmux_testkit::task_fixture::short_message).collect::<Vec<_>>())
        });
        assert_eq!(exited["exit_code"], 20 + n, "{what}");
    }
    fixture.run_marker_task();
    for ((what, _), task) in cases.iter().zip(&tasks) {
        assert_eq!(messages_of_run(&fixture, &task.run).len(), 2, "{what}");
    }
    assert_eq!(
        fs::read_to_string(fixture.world.home().join("elsewhere")).expect("there"),
        ENDED,
        "the target of the symlink is unchanged"
    );
}

fn tasks_file(fixture: &TaskFixture, run: &str, ending: &str) -> PathBuf {
    tasks(fixture).join(format!("{run}.{ending}"))
}

#[test]
fn wrong_output_files_cause_no_bells_and_no_delay() {
    let fixture = TaskFixture::new();
    let cases = replacements(&fixture);
    let launched: Vec<_> = (0..cases.len())
        .map(|n| fixture.run(&format!("t{n}"), &format!("echo up; until [ -e go ]; do sleep 0.05; done; exit {n}")))
        .collect();
    for ((_, make), task) in cases.iter().zip(&launched) {
        let log = tasks(&fixture).join("logs").join(format!("{}.log", task.run));
        wait_until("the first output", SOON, || fs::read_to_string(&log).is_ok_and(|text| text.contains("up")));
        for path in [tasks_file(&fixture, &task.run, "out"), log] {
            let _ = fs::remove_file(&path);
            replace_file(&fixture, &path, make);
        }
    }
    fixture.run_marker_task();
    for task in &launched {
        assert_eq!(fixture.entry(&task.window).expect("listed")["dead"], false);
        // The log may be unreadable, but the command must return.
        let _ = fixture.task(&["logs", &task.window, "--json"]);
    }
    write(&fixture.file("go"), "");
    for (n, (task, (what, _))) in launched.iter().zip(&cases).enumerate() {
        assert_eq!(fixture.event(&task.window, "exited")["exit_code"], n, "{what}");
        assert_eq!(fixture.event_messages(&task.window).len(), 2, "{what}");
    }
}

/// A terminal loses unread output when its first process ends.
#[test]
fn the_output_of_a_short_task_is_kept() {
    let fixture = TaskFixture::new();
    let (rounds, _busy) = (if soak() { 1000 } else { 80 }, BusyCores::start(1));
    let launched: Vec<_> = (0..rounds).map(|n| fixture.run(&format!("t{n}"), &format!("printf %s said-{n}"))).collect();
    let mut missing = Vec::new();
    for (n, task) in launched.iter().enumerate() {
        let exited = fixture.event(&task.window, "exited");
        let (logged, said) = (fixture.task_ok(&["logs", &task.window]).text(), format!("said-{n}"));
        if logged.trim_end() != said || exited["recent_output"] != json!([said]) {
            missing.push((n, logged, exited["recent_output"].clone()));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_late_log_reader_still_keeps_the_output() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exit 3");
    fixture.event(&task.window, "exited");
    let (spec, log) = (tasks_file(&fixture, &task.run, "run"), tasks(&fixture).join(format!("logs/{}.log", task.run)));
    wait_until("the removal of the run file", SOON, || !spec.exists());
    let mut late = fixture.world.agtmux();
    late.arg("task-log").arg(&spec).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut late = ChildGuard::start(&mut late);
    late.stdin.take().expect("a pipe").write_all(b"late output\n").expect("written");
    wait_until("the end of the reader", SOON, || late.try_wait().is_ok_and(|status| status.is_some()));
    assert_eq!(fs::read_to_string(log).expect("there"), "late output\n");
    assert_eq!(fixture.task_ok(&["logs", "t"]).text(), "late output\n");
    assert!(!tasks_file(&fixture, &task.run, "out").exists(), "the late reader must leave no file behind");
}

#[test]
fn wrong_run_files_are_not_read_as_runs() {
    let fixture = TaskFixture::new();
    let live_task = fixture.run("lives", "until [ -e go ]; do sleep 0.05; done; exit 5");
    let spec = fs::read_to_string(tasks_file(&fixture, &live_task.run, "run")).expect("there");
    kill(pid(&fixture.world));
    let mut ids = 0..;
    let mut new = || {
        let n: u32 = ids.next().expect("enough");
        tasks_file(&fixture, &format!("00000000-0000-7000-8000-{n:012}"), "run")
    };
    // Copies of the file of a live run under other ids, and other wrong content.
    write(&new(), &spec);
    symlink(tasks_file(&fixture, &live_task.run, "run"), new()).expect("linked");
    let changed = |key: &str, value: Value| {
        let mut spec: Value = serde_json::from_str(&spec).expect("JSON");
        spec[key] = value;
        spec.to_string()
    };
    for (key, value) in [("session", "../x"), ("session", ""), ("socket", "relative"), ("run_id", "../../x")] {
        write(&new(), changed(key, value.into()));
    }
    for (_, make) in replacements(&fixture) {
        make(&new());
    }
    write(&tasks(&fixture).join("..run"), &spec);
    write(&tasks(&fixture).join("\u{1b}[31m.run"), &spec);
    start(&fixture.world);
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&live_task.window), ["started"]);
    write(&fixture.file("go"), "");
    fixture.event(&live_task.window, "exited");
    assert_eq!(fixture.event_messages(&live_task.window), ["started", "exited with code 5"]);
    let names: Vec<Value> = fixture.events().iter().map(|event| event["task"].clone()).collect();
    let strange = names.iter().filter(|name| *name != "lives" && !name.to_string().contains("witness")).count();
    assert_eq!(strange, 0, "{names:?}");
}
