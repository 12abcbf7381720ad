//! The files by which those beside a task tell of it, when something else lies in their place.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use agtmux_testkit::{BusyCores, ChildGuard, wait_for, wait_until};
use serde_json::{Value, json};

use crate::agtmux::{SOON, kill, pid, soak, start};
use crate::stage::Stage;

const ENDED: &str = r#"{"code":7,"signal":null,"hung_up":false}"#;
const NOBODY_UID: u32 = 65534;

fn tasks(stage: &Stage) -> PathBuf {
    stage.world.state_dir().join("tasks")
}

/// Puts something there at once, as a whole.
fn replace_file(stage: &Stage, path: &Path, make: impl FnOnce(&Path)) {
    let draft = stage.world.state_dir().join("draft");
    make(&draft);
    fs::rename(draft, path).expect("moved");
}

fn fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).expect("a fifo");
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).expect("written");
}

/// What it is called, and how it comes to a place.
type FileReplacement = (&'static str, Box<dyn Fn(&Path)>);

/// Whatever could lie in the place of a file that says how a task ended. The last needs somebody who may give files away.
fn replacements(stage: &Stage) -> Vec<FileReplacement> {
    let elsewhere = stage.world.home().join("elsewhere");
    write(&elsewhere, ENDED);
    vec![
        ("a link", Box::new(move |path| symlink(&elsewhere, path).expect("linked"))),
        ("an endless link", Box::new(|path| symlink("/dev/zero", path).expect("linked"))),
        ("a fifo", Box::new(fifo)),
        ("much", Box::new(|path| write(path, format!("{ENDED}{}", " ".repeat(2 << 20))))),
        ("garbage", Box::new(|path| write(path, b"\xff\x00{{{"))),
        ("nothing", Box::new(|path| write(path, ""))),
        ("other words", Box::new(|path| write(path, r#"{"code":"7","signal":[],"hung_up":1}"#))),
        (
            "a number that is none",
            Box::new(|path| write(path, r#"{"code":99999999999,"signal":null,"hung_up":false}"#)),
        ),
        ("a directory", Box::new(|path| fs::create_dir(path).expect("made"))),
        (
            "somebody else's",
            Box::new(|path| {
                write(path, ENDED);
                if chown(path, Some(NOBODY_UID), None).is_err() {
                    write(path, "");
                }
            }),
        ),
    ]
}

fn messages_of_run(stage: &Stage, run: &str) -> Vec<String> {
    stage.events().iter().filter(|event| event["run_id"] == run).map(crate::stage::short).collect()
}

#[test]
fn what_lies_in_the_place_of_an_end_is_no_end_and_the_true_one_is_told() {
    let stage = Stage::new();
    let cases = replacements(&stage);
    let tasks: Vec<_> = (0..cases.len())
        .map(|n| stage.run(&format!("t{n}"), &format!("until [ -e go{n} ]; do sleep 0.05; done; exit {}", 20 + n)))
        .collect();
    for ((_, make), task) in cases.iter().zip(&tasks) {
        replace_file(&stage, &tasks_file(&stage, &task.run, "exit"), make);
    }
    // Others are told in time, so nobody waits for any of these.
    stage.witness();
    for ((what, _), task) in cases.iter().zip(&tasks) {
        assert_eq!(messages_of_run(&stage, &task.run), ["started"], "{what}");
    }
    for n in 0..tasks.len() {
        write(&stage.file(&format!("go{n}")), "");
    }
    for (n, ((what, _), task)) in cases.iter().zip(&tasks).enumerate() {
        let exited = wait_for(&format!("the end after {what}"), SOON, || {
            let events = stage.events();
            let mut ends =
                events.iter().filter(|event| event["run_id"] == task.run.as_str() && event["type"] == "exited");
            ends.next().cloned().ok_or_else(|| events.iter().map(crate::stage::short).collect::<Vec<_>>())
        });
        assert_eq!(exited["exit_code"], 20 + n, "{what}");
    }
    stage.witness();
    for ((what, _), task) in cases.iter().zip(&tasks) {
        assert_eq!(messages_of_run(&stage, &task.run).len(), 2, "{what}");
    }
    assert_eq!(fs::read_to_string(stage.world.home().join("elsewhere")).expect("there"), ENDED, "nobody wrote there");
}

fn tasks_file(stage: &Stage, run: &str, ending: &str) -> PathBuf {
    tasks(stage).join(format!("{run}.{ending}"))
}

#[test]
fn what_lies_in_the_place_of_the_output_makes_no_bells_and_holds_up_nobody() {
    let stage = Stage::new();
    let cases = replacements(&stage);
    let launched: Vec<_> = (0..cases.len())
        .map(|n| stage.run(&format!("t{n}"), &format!("echo up; until [ -e go ]; do sleep 0.05; done; exit {n}")))
        .collect();
    for ((_, make), task) in cases.iter().zip(&launched) {
        let log = tasks(&stage).join("logs").join(format!("{}.log", task.run));
        wait_until("its output", SOON, || fs::read_to_string(&log).is_ok_and(|text| text.contains("up")));
        for path in [tasks_file(&stage, &task.run, "out"), log] {
            let _ = fs::remove_file(&path);
            replace_file(&stage, &path, make);
        }
    }
    stage.witness();
    for task in &launched {
        assert_eq!(stage.entry(&task.window).expect("listed")["dead"], false);
        // There may be nothing that can be shown, but there is an answer.
        let _ = stage.task(&["logs", &task.window, "--json"]);
    }
    write(&stage.file("go"), "");
    for (n, (task, (what, _))) in launched.iter().zip(&cases).enumerate() {
        assert_eq!(stage.event(&task.window, "exited")["exit_code"], n, "{what}");
        assert_eq!(stage.told(&task.window).len(), 2, "{what}");
    }
}

/// A terminal loses what is still on its way out of it when the first process in it ends.
#[test]
fn what_a_task_writes_is_kept_however_soon_it_ends() {
    let stage = Stage::new();
    let (rounds, _busy) = (if soak() { 1000 } else { 80 }, BusyCores::start(1));
    let launched: Vec<_> = (0..rounds).map(|n| stage.run(&format!("t{n}"), &format!("printf %s said-{n}"))).collect();
    let mut missing = Vec::new();
    for (n, task) in launched.iter().enumerate() {
        let exited = stage.event(&task.window, "exited");
        let (logged, said) = (stage.done(&["logs", &task.window]).text(), format!("said-{n}"));
        if logged.trim_end() != said || exited["recent_output"] != json!([said]) {
            missing.push((n, logged, exited["recent_output"].clone()));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_reader_that_comes_when_all_is_told_keeps_the_output_all_the_same() {
    let stage = Stage::new();
    let task = stage.run("t", "exit 3");
    stage.event(&task.window, "exited");
    let (spec, log) = (tasks_file(&stage, &task.run, "run"), tasks(&stage).join(format!("logs/{}.log", task.run)));
    wait_until("what nobody needs any more is gone", SOON, || !spec.exists());
    let mut late = stage.world.agtmux();
    late.arg("task-log").arg(&spec).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut late = ChildGuard::start(&mut late);
    late.stdin.take().expect("a pipe").write_all(b"what it said\n").expect("written");
    wait_until("its end", SOON, || late.try_wait().is_ok_and(|status| status.is_some()));
    assert_eq!(fs::read_to_string(log).expect("there"), "what it said\n");
    assert_eq!(stage.done(&["logs", "t"]).text(), "what it said\n");
    assert!(!tasks_file(&stage, &task.run, "out").exists(), "nobody would take it away");
}

#[test]
fn what_lies_in_the_place_of_a_begun_run_is_not_taken_for_one() {
    let stage = Stage::new();
    let lives = stage.run("lives", "until [ -e go ]; do sleep 0.05; done; exit 5");
    let spec = fs::read_to_string(tasks_file(&stage, &lives.run, "run")).expect("there");
    kill(pid(&stage.world));
    let mut ids = 0..;
    let mut new = || {
        let n: u32 = ids.next().expect("enough");
        tasks_file(&stage, &format!("00000000-0000-7000-8000-{n:012}"), "run")
    };
    // One that speaks of a run that lives, under another name, and whatever else.
    write(&new(), &spec);
    symlink(tasks_file(&stage, &lives.run, "run"), new()).expect("linked");
    let changed = |key: &str, value: Value| {
        let mut spec: Value = serde_json::from_str(&spec).expect("JSON");
        spec[key] = value;
        spec.to_string()
    };
    for (key, value) in [("session", "../x"), ("session", ""), ("socket", "relative"), ("run_id", "../../x")] {
        write(&new(), changed(key, value.into()));
    }
    for (_, make) in replacements(&stage) {
        make(&new());
    }
    write(&tasks(&stage).join("..run"), &spec);
    write(&tasks(&stage).join("\u{1b}[31m.run"), &spec);
    start(&stage.world);
    stage.witness();
    assert_eq!(stage.told(&lives.window), ["started"]);
    write(&stage.file("go"), "");
    stage.event(&lives.window, "exited");
    assert_eq!(stage.told(&lives.window), ["started", "exited with code 5"]);
    let names: Vec<Value> = stage.events().iter().map(|event| event["task"].clone()).collect();
    let strange = names.iter().filter(|name| *name != "lives" && !name.to_string().contains("witness")).count();
    assert_eq!(strange, 0, "{names:?}");
}
