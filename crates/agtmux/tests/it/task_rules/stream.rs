//! Task events in the common event stream, and in the stream of task events only.

use std::fs;
use std::io::Write;
use std::mem::MaybeUninit;
use std::process::Stdio;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::http::{SseClient, SseEvent, connect, request};
use agtmux_testkit::task_fixture::{LaunchedTask, TaskFixture};
use agtmux_testkit::{ChildGuard, wait_for};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use serde_json::{Value, json};

/// Runs a task that rings, prompts and fails, and waits for all its events.
fn run_eventful_task(fixture: &TaskFixture) -> LaunchedTask {
    let task = fixture.run("t", "printf '\\a'; printf 'Go on? [y/N] '; read answer; exit 3");
    fixture.event(&task.window, "input");
    fixture.tmux.run(&["send-keys", "-t", &task.pane, "n", "Enter"]);
    fixture.event(&task.window, "exited");
    task
}

fn has_ended(event: &SseEvent) -> bool {
    event.is("task") && event.data["task"]["type"] == "exited"
}

/// The types of the task events.
fn kinds(events: &[SseEvent]) -> Vec<&str> {
    events.iter().filter(|event| event.is("task")).filter_map(|event| event.data["task"]["type"].as_str()).collect()
}

#[test]
fn task_events_are_part_of_the_event_stream() {
    let fixture = TaskFixture::new();
    let events = SseClient::open(&fixture.world.socket(), "", None);
    let (_, snapshot_seq) = events.snapshot();
    run_eventful_task(&fixture);
    let received = events.until("the end of the task", has_ended);
    assert_eq!(kinds(&received), ["started", "notify", "input", "exited"]);
    let ids: Vec<u64> = received.iter().filter_map(|event| event.id).collect();
    assert!(ids.len() == received.len() && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let task_events: Vec<&SseEvent> = received.iter().filter(|event| event.is("task")).collect();
    for (event, stored) in task_events.iter().zip(fixture.events()) {
        assert_eq!((&event.data["item"], &event.data["scope"]), (&Value::Null, &json!("panes")));
        let mut task_event = event.data["task"].clone();
        let fields = task_event.as_object_mut().expect("an object");
        assert_eq!((fields.remove("target"), fields.remove("server")), (Some(json!("host")), Some(json!("default"))));
        assert_eq!((&task_event, event.id, event.seq()), (&stored, stored["seq"].as_u64(), event.seq()));
    }
    let again = |query: &str, after: u64| {
        let events = SseClient::open(&fixture.world.socket(), query, Some(after));
        let received = events.until("the end once more", has_ended);
        received
            .iter()
            .filter(|event| event.is("task"))
            .map(|event| event.data["task"]["type"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(again("", task_events[1].seq()), ["input", "exited"], "the stream resumes after the cursor");
    let session = format!("?session={}", fixture.session);
    for query in [session.as_str(), "?agent=task", "?target=host"] {
        assert_eq!(again(query, snapshot_seq), ["started", "notify", "input", "exited"], "{query}");
    }
    assert_eq!(again("?needs_action=true", snapshot_seq), ["input", "exited"]);
    assert_eq!(again("?state=error", snapshot_seq), ["exited"]);
}

#[test]
fn watch_prints_task_events_and_pane_states() {
    let fixture = TaskFixture::new();
    fixture.run("other", "exec sleep 1000");
    let file = fixture.world.dir().join("watched");
    let out = fs::File::create(&file).expect("the world is writable");
    let mut watch = fixture.agtmux();
    watch.args(["watch", "--format", "jsonl"]).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    let _watch = ChildGuard::start(&mut watch);
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    wait_for("the first line", SOON, || lines().into_iter().next());
    run_eventful_task(&fixture);
    wait_for("the exit event and the state error", SOON, || {
        let lines = lines();
        let ended = lines.iter().any(|line| line["type"] == "task" && line["task"]["type"] == "exited");
        let failed = lines.iter().any(|line| line["item"]["name"] == "t" && line["item"]["state"] == "error");
        if ended && failed { Ok(()) } else { Err(lines) }
    });
    let lines = lines();
    let task_events: Vec<_> =
        lines.iter().filter(|line| line["type"] == "task").map(|line| &line["task"]["type"]).collect();
    assert_eq!(task_events, ["started", "notify", "input", "exited"]);
    let states = lines.iter().filter(|line| line["item"]["name"] == "t").map(|line| &line["item"]["state"]);
    let mut states: Vec<_> = states.cloned().collect();
    states.retain(|state| *state != "running");
    states.dedup();
    assert_eq!(states, [json!("waiting_input"), json!("error")]);
}

fn follow_tasks(fixture: &TaskFixture, query: &str) -> SseClient {
    let mut stream = connect(&fixture.world.socket());
    let request = request("GET", &format!("/v1/tasks/events/stream{query}"), "");
    stream.write_all(&request).expect("the daemon takes a request");
    SseClient::from_stream(stream)
}

/// Counts how often a file is opened.
struct FileOpenCounter(std::os::fd::OwnedFd);

impl FileOpenCounter {
    fn of(path: &std::path::Path) -> Self {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("an inotify");
        // inotify merges equal consecutive events, so watch other events that come between two opens.
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
fn fifty_followers_share_one_database_connection() {
    const FOLLOWERS: usize = 50;
    let fixture = TaskFixture::new();
    let first = fixture.run("first", "exit 0");
    fixture.event(&first.window, "exited");
    let followers: Vec<SseClient> = (0..FOLLOWERS).map(|_| follow_tasks(&fixture, "?after=0")).collect();
    let until_end = |of: &LaunchedTask| {
        for follower in &followers {
            follower.until("the end of a task", |event| event.is("exited") && event.data["run_id"] == of.run);
        }
    };
    until_end(&first);
    // Count the opens of the WAL file, because every connection opens it. Connections may share an open database file.
    let database = FileOpenCounter::of(&fixture.world.state_dir().join("state.db-wal"));
    let mut opened = 0;
    for n in 0..5 {
        until_end(&fixture.run(&format!("t{n}"), "exit 0"));
        opened += database.count();
    }
    assert!(opened < FOLLOWERS / 5, "{opened} connections were opened for {FOLLOWERS} followers of 10 events");
}

#[test]
fn a_follower_gets_the_filtered_events_after_its_cursor() {
    let fixture = TaskFixture::new();
    let (old, task) = (fixture.run("old", "exit 0"), fixture.run("t", "until [ -e go ]; do sleep 0.05; done; exit 2"));
    let seq = fixture.event(&old.window, "exited")["seq"].as_u64().expect("a number");
    let other = fixture.session_name("2");
    let of_task = follow_tasks(&fixture, "?task=t&after=0");
    let of_run = follow_tasks(&fixture, &format!("?run_id={}", task.run));
    let of_session = follow_tasks(&fixture, &format!("?session={other}&after=0"));
    let later = follow_tasks(&fixture, &format!("?after={seq}"));
    assert!(of_task.next().is_some_and(|event| event.is("started")));
    // Events of other tasks are filtered out.
    let noise = fixture.run("noise", "exit 0");
    fixture.event(&noise.window, "exited");
    fs::write(fixture.file("go"), "").expect("written");
    assert!(of_task.next().is_some_and(|event| event.is("exited") && event.data["exit_code"] == 2));
    assert!(of_run.next().is_some_and(|event| event.is("exited") && event.data["run_id"] == task.run));
    assert!(later.until("the end", |event| event.is("exited")).iter().all(|event| event.seq() > seq));
    let done = fixture.task_ok(&["run", "--json", "--session", &other, "x", "--", "exit 0"]).json();
    let first = of_session.next().expect("an event");
    assert!(first.is("started") && first.data["run_id"] == done["run_id"], "{first:?}");
}
