//! Tasks in the one stream of changes, beside the agents; and those who follow tasks only.

use std::fs;
use std::io::Write;
use std::mem::MaybeUninit;
use std::process::Stdio;

use agtmux_testkit::{ChildGuard, wait_for};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use serde_json::{Value, json};

use crate::agtmux::SOON;
use crate::http::{Event, Events, connect, request};
use crate::stage::{Launched, Stage};

/// A task that rings, asks and fails, and all of it told.
fn run_eventful_task(stage: &Stage) -> Launched {
    let task = stage.run("t", "printf '\\a'; printf 'Go on? [y/N] '; read answer; exit 3");
    stage.event(&task.window, "input");
    stage.tmux.run(&["send-keys", "-t", &task.pane, "n", "Enter"]);
    stage.event(&task.window, "exited");
    task
}

fn has_ended(event: &Event) -> bool {
    event.is("task") && event.data["task"]["type"] == "exited"
}

/// What was told of tasks.
fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().filter(|event| event.is("task")).filter_map(|event| event.data["task"]["type"].as_str()).collect()
}

#[test]
fn what_happens_to_tasks_is_in_the_stream_of_changes() {
    let stage = Stage::new();
    let events = Events::open(&stage.world.socket(), "", None);
    let (_, began) = events.snapshot();
    run_eventful_task(&stage);
    let seen = events.until("the end of the task", has_ended);
    assert_eq!(kinds(&seen), ["started", "notify", "input", "exited"]);
    let ids: Vec<u64> = seen.iter().filter_map(|event| event.id).collect();
    assert!(ids.len() == seen.len() && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let told: Vec<&Event> = seen.iter().filter(|event| event.is("task")).collect();
    for (event, stored) in told.iter().zip(stage.events()) {
        assert_eq!((&event.data["item"], &event.data["scope"]), (&Value::Null, &json!("panes")));
        let mut news = event.data["task"].clone();
        let fields = news.as_object_mut().expect("an object");
        assert_eq!((fields.remove("target"), fields.remove("server")), (Some(json!("host")), Some(json!("default"))));
        assert_eq!((&news, event.id, event.seq()), (&stored, stored["seq"].as_u64(), event.seq()));
    }
    let again = |query: &str, after: u64| {
        let events = Events::open(&stage.world.socket(), query, Some(after));
        let seen = events.until("the end once more", has_ended);
        seen.iter().filter(|event| event.is("task")).map(|event| event.data["task"]["type"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(again("", told[1].seq()), ["input", "exited"], "it goes on where it was");
    let session = format!("?session={}", stage.session);
    for query in [session.as_str(), "?agent=task", "?target=host"] {
        assert_eq!(again(query, began), ["started", "notify", "input", "exited"], "{query}");
    }
    assert_eq!(again("?needs_action=true", began), ["input", "exited"]);
    assert_eq!(again("?state=error", began), ["exited"]);
}

#[test]
fn watch_tells_of_tasks_beside_the_states_of_their_panes() {
    let stage = Stage::new();
    stage.run("other", "exec sleep 1000");
    let file = stage.world.dir().join("watched");
    let out = fs::File::create(&file).expect("the world is writable");
    let mut watch = stage.agtmux();
    watch.args(["watch", "--format", "jsonl"]).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    let _watch = ChildGuard::start(&mut watch);
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    wait_for("the first line", SOON, || lines().into_iter().next());
    run_eventful_task(&stage);
    wait_for("the end, and the state that it leaves", SOON, || {
        let lines = lines();
        let ended = lines.iter().any(|line| line["type"] == "task" && line["task"]["type"] == "exited");
        let failed = lines.iter().any(|line| line["item"]["name"] == "t" && line["item"]["state"] == "error");
        if ended && failed { Ok(()) } else { Err(lines) }
    });
    let lines = lines();
    let told: Vec<_> = lines.iter().filter(|line| line["type"] == "task").map(|line| &line["task"]["type"]).collect();
    assert_eq!(told, ["started", "notify", "input", "exited"]);
    let states = lines.iter().filter(|line| line["item"]["name"] == "t").map(|line| &line["item"]["state"]);
    let mut states: Vec<_> = states.cloned().collect();
    states.retain(|state| *state != "running");
    states.dedup();
    assert_eq!(states, [json!("waiting_input"), json!("error")]);
}

fn follow_tasks(stage: &Stage, query: &str) -> Events {
    let mut stream = connect(&stage.world.socket());
    let request = request("GET", &format!("/v1/tasks/events/stream{query}"), "");
    stream.write_all(&request).expect("the daemon takes a request");
    Events::read(stream)
}

/// How often a file was opened.
struct FileOpenCounter(std::os::fd::OwnedFd);

impl FileOpenCounter {
    fn of(path: &std::path::Path) -> Self {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("an inotify");
        // Of two equal ones in a row only one is told: what comes between two openings keeps them apart.
        let flags = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::CLOSE_NOWRITE | WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&watch, path, flags).expect("watched");
        Self(watch)
    }

    fn count(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let all = std::iter::from_fn(|| reader.next().ok().map(|event| event.events()));
        all.filter(|event| event.contains(ReadFlags::OPEN)).count()
    }
}

#[test]
fn fifty_followers_open_no_connections_of_their_own() {
    const FOLLOWERS: usize = 50;
    let stage = Stage::new();
    let first = stage.run("first", "exit 0");
    stage.event(&first.window, "exited");
    let followers: Vec<Events> = (0..FOLLOWERS).map(|_| follow_tasks(&stage, "?after=0")).collect();
    let until_end = |of: &Launched| {
        for follower in &followers {
            follower.until("the end of a task", |event| event.is("exited") && event.data["run_id"] == of.run);
        }
    };
    until_end(&first);
    // Each connection opens this one; the database itself SQLite may have left open by another.
    let database = FileOpenCounter::of(&stage.world.state_dir().join("state.db-wal"));
    let mut opened = 0;
    for n in 0..5 {
        until_end(&stage.run(&format!("t{n}"), "exit 0"));
        opened += database.count();
    }
    assert!(opened < FOLLOWERS / 5, "{opened} connections were opened for {FOLLOWERS} followers of 10 events");
}

#[test]
fn a_follower_gets_what_it_asks_for_and_goes_on_where_it_was() {
    let stage = Stage::new();
    let (old, task) = (stage.run("old", "exit 0"), stage.run("t", "until [ -e go ]; do sleep 0.05; done; exit 2"));
    let seq = stage.event(&old.window, "exited")["seq"].as_u64().expect("a number");
    let other = stage.named("2");
    let of_task = follow_tasks(&stage, "?task=t&after=0");
    let of_run = follow_tasks(&stage, &format!("?run_id={}", task.run));
    let of_session = follow_tasks(&stage, &format!("?session={other}&after=0"));
    let later = follow_tasks(&stage, &format!("?after={seq}"));
    assert!(of_task.next().is_some_and(|event| event.is("started")));
    // What happens to others is not for them.
    let noise = stage.run("noise", "exit 0");
    stage.event(&noise.window, "exited");
    fs::write(stage.file("go"), "").expect("written");
    assert!(of_task.next().is_some_and(|event| event.is("exited") && event.data["exit_code"] == 2));
    assert!(of_run.next().is_some_and(|event| event.is("exited") && event.data["run_id"] == task.run));
    assert!(later.until("the end", |event| event.is("exited")).iter().all(|event| event.seq() > seq));
    let done = stage.done(&["run", "--json", "--session", &other, "x", "--", "exit 0"]).json();
    let first = of_session.next().expect("something is told");
    assert!(first.is("started") && first.data["run_id"] == done["run_id"], "{first:?}");
}
