//! Tests that an update of a task session is stored and published as a whole, or not at all.

use agtmux_core::task::{RunId, TaskExit, TaskInput};

use super::*;
use crate::event_log::EventsSince;
use crate::store::TaskRunRow;

fn key() -> TaskSessionKey {
    let socket = agtmux_tmux::default_socket(std::env::var_os("TMUX_TMPDIR").as_deref());
    TaskSessionKey { socket: socket.display().to_string(), session: "pi-x-1".parse().expect("a name") }
}

fn run_id() -> RunId {
    "r1".parse().expect("an id")
}

/// An update that launches a run in the pane that [`TestEngine::set_pane`] makes.
fn launch() -> TaskUpdate {
    let launched = TaskRunRow {
        run_id: run_id(),
        task: "t".into(),
        generation: GENERATION,
        window: WindowId(0),
        pane: PaneId(0),
        process: ProcessRef { pid: 10, start: 7 },
        launched_at: Timestamp::UNIX_EPOCH,
    };
    TaskUpdate { key: key(), inputs: Vec::new(), launched: Some(launched) }
}

fn exit(code: i32) -> TaskUpdate {
    let exit = TaskExit::with_code(code);
    let input = TaskInput::ExitConfirmed { run: run_id(), exit, bells: 0, output: String::new() };
    TaskUpdate { key: key(), inputs: vec![input], launched: None }
}

impl TestEngine {
    /// The published task events with a higher sequence number than `after`.
    fn task_events(&self, after: u64) -> Vec<String> {
        let EventsSince::Events(events) = self.event_log.read().since(after) else { panic!("the events are buffered") };
        let task_events = events.iter().filter_map(|published| published.event.task.as_ref());
        task_events.map(|task| task.event.kind.to_string()).collect()
    }

    fn unfinished_runs(&self) -> usize {
        self.handle().task_sessions().get(&key()).runs.len()
    }
}

#[test]
fn the_events_and_the_state_of_a_task_are_published_together() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, None).await;
        let start = engine.event_log.read().seq();
        let launched = engine.handle().apply_task_update(launch()).await.expect("stored");
        assert!(launched.has_events && launched.finished.is_empty(), "{launched:?}");
        assert_eq!((engine.task_events(start), engine.only_agent().1), (vec!["started".into()], State::Running));
        let mut published = engine.event_log.subscribe();
        let before_exit = *published.borrow_and_update();
        let ended = engine.handle().apply_task_update(exit(0)).await.expect("stored");
        assert_eq!((ended.finished, ended.without_window), (vec![run_id()], vec![]), "the window keeps its log");
        assert_eq!((engine.task_events(before_exit), engine.only_agent().1), (vec!["exited".into()], State::Completed));
        let again = engine.handle().apply_task_update(exit(0)).await.expect("nothing to store");
        assert!(!again.has_events && again.finished.is_empty(), "{again:?}");
        assert_replays(&engine.database());
    });
}

#[test]
fn an_update_that_cannot_be_stored_changes_no_session() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, None).await;
        engine.handle().apply_task_update(launch()).await.expect("stored");
        let before = engine.event_log.read().seq();
        let other = rusqlite::Connection::open(engine.database()).expect("opened");
        other.execute_batch("BEGIN IMMEDIATE").expect("locked");
        // Both are applied in one step: the second sees the effects of the first, and neither update is kept.
        let (first, second) =
            tokio::join!(engine.handle().apply_task_update(exit(3)), engine.handle().apply_task_update(exit(3)));
        assert!(first.is_none() && second.is_none(), "the database is locked");
        assert_eq!((engine.task_events(before), engine.unfinished_runs()), (vec![], 1));
        other.execute_batch("ROLLBACK").expect("unlocked");
        let stored = engine.handle().apply_task_update(exit(3)).await.expect("stored");
        assert_eq!((stored.finished, engine.unfinished_runs()), (vec![run_id()], 0));
        assert_eq!((engine.task_events(before), engine.only_agent().1), (vec!["exited".into()], State::Error));
        assert_replays(&engine.database());
    });
}

#[test]
fn the_files_of_a_run_that_ended_before_its_launch_are_removed() {
    run(async || {
        let engine = TestEngine::new();
        engine.handle().apply_task_update(launch()).await.expect("stored");
        engine.handle().apply_task_update(exit(0)).await.expect("stored");
        let again = engine.handle().apply_task_update(launch()).await.expect("stored");
        assert!(!again.has_events, "{again:?}");
        assert_eq!((again.finished, again.without_window), (vec![run_id()], vec![]), "the window keeps its log");
        assert_eq!(engine.unfinished_runs(), 0);
    });
}

#[test]
fn a_session_of_an_earlier_server_does_not_change_the_task_of_a_later_one() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, None).await;
        engine.handle().apply_task_update(launch()).await.expect("stored");
        let next = Generation { pid: 2, start_time: 2 };
        let later_run = TaskRunRow {
            run_id: "r2".parse().expect("an id"),
            generation: next,
            process: ProcessRef { pid: 20, start: 8 },
            ..launch().launched.expect("a launch")
        };
        let later_key = TaskSessionKey { session: "pi-x-2".parse().expect("a name"), ..key() };
        let update = TaskUpdate { key: later_key.clone(), inputs: Vec::new(), launched: Some(later_run) };
        // The later server is not listed yet.
        engine.handle().apply_task_update(update).await.expect("stored");
        let bell = TaskInput::BellRang { run: run_id(), bells: 1, output: String::new() };
        let of_earlier = TaskUpdate { key: key(), inputs: vec![bell], launched: None };
        engine.handle().apply_task_update(of_earlier).await.expect("stored");
        engine.set_pane_with("default", next, 20, None).await;
        let (later, state) = engine.only_agent();
        assert_eq!(state, State::Running);
        engine.handle().apply_task_update(exit(3)).await.expect("stored");
        assert_eq!(engine.only_agent(), (later, State::Running));
        let mut changed = engine.handle().subscribe_task_sessions();
        engine.handle().apply_topology(TopologyUpdate::ServerGone { server: server("default") }).await;
        assert_eq!(changed.recv().await.expect("a session"), later_key, "the pane belongs to the later session");
        assert_replays(&engine.database());
    });
}

#[test]
fn a_restarted_engine_continues_its_task_sessions() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, None).await;
        engine.handle().apply_task_update(launch()).await.expect("stored");
        let engine = engine.restart().await;
        assert_eq!((engine.unfinished_runs(), engine.only_agent().1), (1, State::Running));
        let start = engine.event_log.read().seq();
        engine.handle().apply_task_update(launch()).await.expect("stored");
        engine.handle().apply_task_update(exit(0)).await.expect("stored");
        assert_eq!(engine.task_events(start), ["exited"], "the start was published before");
        let engine = engine.restart().await;
        assert_eq!(engine.unfinished_runs(), 0);
        assert_replays(&engine.database());
    });
}
