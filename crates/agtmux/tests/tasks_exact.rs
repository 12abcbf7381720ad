//! Nothing of a task is lost: no end however soon it comes, no bell however close to the next.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_tasks.rs"]
mod tasks;

use std::collections::BTreeMap;
use std::thread;

use agtmux::{SOON, run, soak, world};
use agtmux_testkit::{TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use tasks::{command, events, launch, task, told, wait_for_event};

const WORKERS: usize = 20;
const SIGNALS: [&str; 5] = ["KILL", "TERM", "HUP", "INT", "SEGV"];

/// What the task of this number does, of so many, and how it ends: a code, or the name of a signal.
fn task_plan(n: usize, count: usize) -> (String, Value) {
    let pause = format!("sleep 0.0{:02}", n * 7 % 51);
    let pause = if n.is_multiple_of(3) { "true".to_owned() } else { pause };
    if n % 20 == 7 {
        let signal = SIGNALS[n / 20 % SIGNALS.len()];
        return (format!("{pause}; kill -{signal} $$"), json!(format!("SIG{signal}")));
    }
    // From 0 to 255 whatever their number.
    let code = if count < 256 { n * 255 / (count - 1) } else { n % 256 };
    (format!("{pause}; exit {code}"), json!(code))
}

fn run_task(world: &TestWorld, worker: usize, n: usize, count: usize) -> (Value, Value) {
    let (shell, end) = task_plan(n, count);
    let name = format!("slot{worker}");
    let done = run(&mut command(world, &["run", "--json", "--wait", "60s", &name, "--", &shell]));
    let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{shell}: {done:?}"));
    assert_eq!(told["finished"], true, "{shell}: {told}");
    (told, end)
}

#[test]
fn each_of_many_short_tasks_is_told_to_start_and_to_end_as_it_did() {
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
    assert!(codes.iter().filter(|code| **code > 127).count() * 3 > count, "the upper half as well: {codes:?}");
    assert_eq!((count - codes.len()) * 20, count, "one of twenty by a signal");
    let mut by_run: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in events(&world) {
        by_run.entry(event["run_id"].as_str().unwrap_or_default().to_owned()).or_default().push(event);
    }
    for (told, end) in &runs {
        let of_run = by_run.remove(told["run_id"].as_str().expect("an id")).unwrap_or_default();
        let kinds: Vec<&str> = of_run.iter().filter_map(|event| event["type"].as_str()).collect();
        assert_eq!(kinds, ["started", "exited"], "{told}");
        let field = if end.is_number() { "exit_code" } else { "signal" };
        assert_eq!((&of_run[1][field], &told[field]), (end, end), "{told}");
    }
    assert_eq!(by_run.into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "of runs that nobody started");
}

#[test]
fn every_bell_counts_also_three_in_one_write_and_none_that_ends_a_title() {
    let world = world();
    // 5 bells in 3 writes and 30 ms.
    let rounds = if soak() { 2000 } else { 60 };
    let round = "printf '\\a'; sleep 0.01; printf '\\a\\a\\a'; sleep 0.01; printf '\\033]0;title\\a\\a'; sleep 0.01";
    let shell = format!("n=0; while [ $n -lt {rounds} ]; do {round}; n=$((n+1)); done; exec sleep 1000");
    let ringing = launch(&world, "ringing", &shell);
    let burst = launch(&world, "burst", "printf '\\a\\a\\a'; exit 2");
    let patience = SOON * if soak() { 30 } else { 1 };
    let count = |run: &Value| {
        let shown = task(&world, &["list", "--json"]).json();
        let rows = shown["tasks"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["run_id"] == run["run_id"]).expect("it is listed");
        row["bell_count"].as_u64().expect("a number")
    };
    wait_for("every bell", patience, || {
        let bells = count(&ringing);
        if bells == rounds * 5 { Ok(()) } else { Err(bells) }
    });
    wait_for("the last of them told", SOON, || {
        let all = events(&world);
        let of_run = all.iter().filter(|event| event["run_id"] == ringing["run_id"] && event["type"] == "notify");
        let counts: Vec<u64> = of_run.filter_map(|event| event["bell_count"].as_u64()).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
        if counts.last() == Some(&(rounds * 5)) { Ok(()) } else { Err(counts) }
    });
    wait_for_event(&world, &burst, "exited");
    assert_eq!(
        (count(&burst), told(&events(&world), &burst)),
        (3, vec!["started".into(), "notify".into(), "exited".into()])
    );
}

#[test]
fn a_log_is_whole_from_the_first_byte_to_the_last() {
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
fn an_end_is_told_by_tmux_where_nobody_is_left_to_write_it_down() {
    let world = world();
    let run = launch(&world, "orphan", "echo up; exec sleep 1000");
    let server = world.tmux("default");
    let pane = server.panes().into_iter().next().expect("its pane");
    wait_until("it is up", SOON, || task(&world, &["logs", "orphan"]).text() == "up\n");
    assert!(process::signal(pane.pid, Signal::KILL));
    let exited = wait_for_event(&world, &run, "exited");
    assert_eq!((&exited["signal"], &exited["recent_output"]), (&json!("SIGKILL"), &json!(["up"])));
}

#[test]
fn an_end_is_told_also_if_somebody_took_the_pipe() {
    let world = world();
    let run = launch(&world, "piped", "read a; exit 6");
    let server = world.tmux("default");
    server.run(&["pipe-pane", "-t", "%0", "cat >/dev/null"]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    assert_eq!(wait_for_event(&world, &run, "exited")["exit_code"], 6);
}
