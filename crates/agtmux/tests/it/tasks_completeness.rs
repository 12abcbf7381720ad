//! Nothing is lost: exits of very short tasks, bells in quick succession, and the output of tasks.

use std::collections::BTreeMap;
use std::thread;

use agtmux_testkit::agtmux::{SOON, run, soak, world};
use agtmux_testkit::task_commands::{command, event_types, events, launch, task, wait_for_event};
use agtmux_testkit::{TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

const WORKERS: usize = 20;
const SIGNALS: [&str; 5] = ["KILL", "TERM", "HUP", "INT", "SEGV"];

/// The shell command of task `n` of `count`, and its expected exit code or signal name.
fn task_plan(n: usize, count: usize) -> (String, Value) {
    let pause = format!("sleep 0.0{:02}", n * 7 % 51);
    let pause = if n.is_multiple_of(3) { "true".to_owned() } else { pause };
    if n % 20 == 7 {
        let signal = SIGNALS[n / 20 % SIGNALS.len()];
        return (format!("{pause}; kill -{signal} $$"), json!(format!("SIG{signal}")));
    }
    // Spread the codes from 0 to 255 over all tasks.
    let code = if count < 256 { n * 255 / (count - 1) } else { n % 256 };
    (format!("{pause}; exit {code}"), json!(code))
}

fn run_task(world: &TestWorld, worker: usize, n: usize, count: usize) -> (Value, Value) {
    let (shell, end) = task_plan(n, count);
    let name = format!("slot{worker}");
    let done = run(&mut command(world, &["run", "--json", "--wait", "60s", &name, "--", &shell]));
    let result: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{shell}: {done:?}"));
    assert_eq!(result["finished"], true, "{shell}: {result}");
    (result, end)
}

#[test]
fn every_short_task_reports_its_start_and_exit() {
    let world = world();
    let count = if soak() { 2000 } else { 200 };
    task(&world, &["list"]);
    let runs: Vec<(Value, Value)> = thread::scope(|scope| {
        let world = &world;
        let workers = (0..WORKERS).map(|worker| {
            scope.spawn(move || {
                let mine = (worker..count).step_by(WORKERS);
                mine.map(|n| run_task(world, worker, n, count)).collect::<Vec<_>>()
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker ends")).collect()
    });
    assert_eq!(runs.len(), count);
    let codes: Vec<u64> = runs.iter().filter_map(|(_, end)| end.as_u64()).collect();
    assert_eq!((codes.iter().min(), codes.iter().max()), (Some(&0), Some(&255)));
    assert!(codes.iter().filter(|code| **code > 127).count() * 3 > count, "codes above 127 occur as well: {codes:?}");
    assert_eq!((count - codes.len()) * 20, count, "one task in twenty ends by a signal");
    let mut by_run: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in events(&world) {
        by_run.entry(event["run_id"].as_str().unwrap_or_default().to_owned()).or_default().push(event);
    }
    for (result, end) in &runs {
        let of_run = by_run.remove(result["run_id"].as_str().expect("an id")).unwrap_or_default();
        let kinds: Vec<&str> = of_run.iter().filter_map(|event| event["type"].as_str()).collect();
        assert_eq!(kinds, ["started", "exited"], "{result}");
        let field = if end.is_number() { "exit_code" } else { "signal" };
        assert_eq!((&of_run[1][field], &result[field]), (end, end), "{result}");
    }
    assert_eq!(by_run.into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "every event belongs to a started run");
}

#[test]
fn every_bell_counts_except_title_terminators() {
    let world = world();
    // Each round rings 5 bells with 3 writes within 30 ms.
    let rounds = if soak() { 2000 } else { 60 };
    let round = "printf '\\a'; sleep 0.01; printf '\\a\\a\\a'; sleep 0.01; printf '\\033]0;title\\a\\a'; sleep 0.01";
    let shell = format!("n=0; while [ $n -lt {rounds} ]; do {round}; n=$((n+1)); done; exec sleep 1000");
    let ringing = launch(&world, "ringing", &shell);
    let burst = launch(&world, "burst", "printf '\\a\\a\\a'; exit 2");
    let patience = SOON * if soak() { 30 } else { 1 };
    let count = |run: &Value| {
        let shown = task(&world, &["list", "--json"]).json();
        let rows = shown["tasks"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["run_id"] == run["run_id"]).expect("the task is listed");
        row["bell_count"].as_u64().expect("a number")
    };
    wait_for("every bell", patience, || {
        let bells = count(&ringing);
        if bells == rounds * 5 { Ok(()) } else { Err(bells) }
    });
    wait_for("the last notify event", SOON, || {
        let all = events(&world);
        let of_run = all.iter().filter(|event| event["run_id"] == ringing["run_id"] && event["type"] == "notify");
        let counts: Vec<u64> = of_run.filter_map(|event| event["bell_count"].as_u64()).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
        if counts.last() == Some(&(rounds * 5)) { Ok(()) } else { Err(counts) }
    });
    wait_for_event(&world, &burst, "exited");
    assert_eq!(
        (count(&burst), event_types(&events(&world), &burst)),
        (3, vec!["started".into(), "notify".into(), "exited".into()])
    );
}

#[test]
fn a_task_log_is_complete() {
    let world = world();
    let lines = 20_000;
    let long = launch(&world, "long", &format!("seq 1 {lines}; printf last"));
    let exited = wait_for_event(&world, &long, "exited");
    assert_eq!(exited["recent_output"], json!([(lines - 1).to_string(), lines.to_string(), "last"]));
    let log = task(&world, &["logs", "long"]).text();
    let expected: String = (1..=lines).map(|n| format!("{n}\n")).chain(["last\n".to_owned()]).collect();
    assert!(log == expected, "{} bytes of {}", log.len(), expected.len());
    assert_eq!(task(&world, &["logs", "long", "--lines", "2"]).text(), format!("{lines}\nlast\n"));
    let follow = run(&mut command(&world, &["logs", "long", "-f", "--lines", "1"]));
    assert_eq!((follow.code, follow.text().as_str()), (Some(0), "last\n"));
}

#[test]
fn an_exit_is_reported_by_tmux_if_the_wrapper_is_killed() {
    let world = world();
    let run = launch(&world, "orphan", "echo up; exec sleep 1000");
    let server = world.tmux("default");
    let pane = server.panes().into_iter().next().expect("the pane of the task");
    wait_until("the output", SOON, || task(&world, &["logs", "orphan"]).text() == "up\n");
    assert!(process::signal(pane.pid, Signal::KILL));
    let exited = wait_for_event(&world, &run, "exited");
    assert_eq!((&exited["signal"], &exited["recent_output"]), (&json!("SIGKILL"), &json!(["up"])));
}

#[test]
fn an_exit_is_reported_after_the_pipe_is_replaced() {
    let world = world();
    let run = launch(&world, "piped", "read a; exit 6");
    let server = world.tmux("default");
    server.run(&["pipe-pane", "-t", "%0", "cat >/dev/null"]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    assert_eq!(wait_for_event(&world, &run, "exited")["exit_code"], 6);
}
