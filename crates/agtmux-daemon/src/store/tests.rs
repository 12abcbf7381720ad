use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use agtmux_core::fleet::{Pane, PaneKey, Placement};
use agtmux_core::ids::*;
use agtmux_core::runtime::{LaunchOptions, Runtime, RuntimeIdentity};

use super::*;

const GENERATION: Generation = Generation { pid: 7, start_time: 8 };

fn server_key() -> ServerKey {
    ServerKey { target: TargetName::local(), server: ServerName::new("default") }
}

fn pane_key() -> PaneKey {
    PaneKey { server: server_key(), pane: PaneId(3) }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn runtime(pid: u32, epoch: u32) -> Runtime {
    let (agent_type, process) = (AgentType::new("claude"), ProcessRef { pid, start: u64::MAX });
    let server = server_key();
    let identity = RuntimeIdentity {
        server: &server,
        generation: GENERATION,
        pane: PaneId(3),
        epoch,
        process,
        agent_type: &agent_type,
    };
    let id = identity.id();
    Runtime {
        id,
        agent_type: AgentType::new("claude"),
        name: Some("reviewer".into()),
        process,
        suspended: false,
        started_at: at(4),
        launch: LaunchOptions { wrapped: true, arguments: vec!["--model".into(), "opus".into()] },
    }
}

fn pane(runtime: Option<Runtime>, epoch: u32) -> Pane {
    Pane {
        epoch,
        pid: 11,
        tty: String::new(),
        window: WindowId(2),
        window_name: "edit\u{202e}".into(),
        pane_index: 0,
        title: String::new(),
        dead: None,
        placements: BTreeSet::from([Placement { session: SessionId(1), session_name: "w".into(), window_index: 0 }]),
        foreground: None,
        runtime,
        updated_at: at(6),
    }
}

fn put_server() -> StoreChange {
    StoreChange::PutServer { key: server_key(), generation: GENERATION, healthy: true, at: at(1) }
}

fn put_pane(runtime: Option<Runtime>, epoch: u32) -> StoreChange {
    StoreChange::PutPane(Box::new(PaneRecord::of(&pane_key(), GENERATION, &pane(runtime, epoch))))
}

fn in_temp<T>(test: impl AsyncFnOnce(&Path) -> T) -> T {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test(&dir.path().join("state.db")))
}

#[test]
fn committed_changes_are_read_back_after_reopening() {
    in_temp(async |path| {
        let (store, before) = Store::open(path).expect("opened");
        assert_eq!((before.fleet, before.seq), (Fleet::default(), 0));
        store
            .commit(vec![put_server(), put_pane(Some(runtime(50, 1)), 1), StoreChange::ReserveSeq(99)])
            .await
            .expect("written");
        drop(store);
        let (_store, after) = Store::open(path).expect("opened again");
        assert_eq!(after.seq, 99);
        let mut expected = BTreeMap::from([(PaneId(3), pane(Some(runtime(50, 1)), 1))]);
        let server = after.fleet.server(&server_key()).expect("the server");
        assert_eq!(server.generation, GENERATION);
        expected.values_mut().for_each(|p| p.updated_at = server.panes[&PaneId(3)].updated_at);
        assert_eq!(server.panes, expected);
    });
}

#[test]
fn a_removed_database_is_restored_with_all_its_data() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        store.commit(vec![put_server()]).await.expect("written");
        let remove = || {
            for name in ["state.db", "state.db-wal", "state.db-shm"].map(|name| path.with_file_name(name)) {
                let _ = std::fs::remove_file(name);
            }
        };
        remove();
        store.commit(vec![put_pane(Some(runtime(50, 1)), 1)]).await.expect("written and restored");
        assert_eq!((path.exists(), store.restores()), (true, 1));
        remove();
        store.restore_if_removed().await.expect("restored without a change");
        assert_eq!((path.exists(), store.restores()), (true, 2));
        // Another file at the path is never overwritten.
        remove();
        std::fs::write(path, "other").expect("written");
        assert!(store.commit(vec![put_server()]).await.is_err());
        assert_eq!(std::fs::read(path).expect("readable"), b"other");
        std::fs::remove_file(path).expect("it exists");
        drop(store);
        let (_store, after) = Store::open(path).expect("opened again");
        assert_eq!(after.fleet.servers().count(), 1, "the data survives a stop directly after the removal");
        assert_eq!(after.fleet.servers().map(|(_, server)| server.panes.len()).sum::<usize>(), 1);
    });
}

#[test]
fn a_database_without_one_of_its_files_is_restored_intact() {
    for removed in ["state.db", "state.db-wal", "state.db-shm"] {
        in_temp(async |path| {
            let (store, _) = Store::open(path).expect("opened");
            store.commit(vec![put_server(), put_pane(Some(runtime(50, 1)), 1)]).await.expect("written");
            std::fs::remove_file(path.with_file_name(removed)).expect("it exists");
            store.restore_if_removed().await.expect("restored");
            let servers =
                |reader: &Connection| reader.query_row("SELECT count(*) FROM servers", [], |row| row.get::<_, i64>(0));
            assert_eq!(store.read(servers).await.expect("readable"), 1, "{removed}");
            store.commit(vec![put_server()]).await.expect("written after the restore");
            // A killed daemon leaves the files as they are.
            std::mem::forget(store);
            let check = Connection::open(path).expect("opened");
            let result: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
            assert_eq!(result, "ok", "{removed}");
            let panes: i64 = check.query_row("SELECT count(*) FROM panes", [], |row| row.get(0)).expect("counted");
            assert_eq!(panes, 1, "{removed}");
        });
    }
}

#[test]
fn a_batch_is_committed_completely_or_not_at_all() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        // Two runtimes in one pane epoch: the second is rejected, and the first with it.
        let outcome = store
            .commit(vec![put_server(), put_pane(Some(runtime(50, 1)), 1), put_pane(Some(runtime(51, 1)), 1)])
            .await;
        assert!(outcome.is_err());
        drop(store);
        let (_store, after) = Store::open(path).expect("opened again");
        assert_eq!(after.fleet, Fleet::default());
    });
}

#[test]
fn a_pane_gets_a_new_runtime_after_the_old_one_ended() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        store.commit(vec![put_server(), put_pane(Some(runtime(50, 1)), 1)]).await.expect("written");
        let end = StoreChange::EndRuntime { id: runtime(50, 1).id, at: at(9) };
        store.commit(vec![end, put_pane(Some(runtime(51, 2)), 2)]).await.expect("written");
        drop(store);
        let (_store, after) = Store::open(path).expect("opened again");
        let stored = after.fleet.pane(&pane_key()).and_then(|p| p.runtime.clone());
        assert_eq!(stored.map(|r| r.id), Some(runtime(51, 2).id));
    });
}

#[test]
fn a_lost_runtime_end_does_not_block_the_next_runtime() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        store.commit(vec![put_server(), put_pane(Some(runtime(50, 1)), 1)]).await.expect("written");
        store.commit(vec![put_pane(Some(runtime(51, 2)), 2)]).await.expect("the next runtime is stored");
        let current = |path: &Path| {
            let (_store, after) = Store::open(path).expect("opened again");
            after.fleet.pane(&pane_key()).expect("the pane").runtime.clone().map(|runtime| runtime.id)
        };
        assert_eq!(current(path), Some(runtime(51, 2).id));
        store.commit(vec![put_pane(None, 3)]).await.expect("written");
        assert_eq!(current(path), None);
        store
            .commit(vec![put_pane(Some(runtime(52, 3)), 3), StoreChange::DropPane(pane_key())])
            .await
            .expect("written");
        store.commit(vec![put_pane(Some(runtime(53, 4)), 4)]).await.expect("stored after the pane was dropped");
        assert_eq!(current(path), Some(runtime(53, 4).id));
    });
}

#[test]
fn a_damaged_file_is_moved_aside_and_never_deleted() {
    in_temp(async |path| {
        std::fs::write(path, b"this is not a database, it never was").expect("written");
        let (store, _) = Store::open(path).expect("a new database");
        let moved_path = store.quarantined().expect("moved aside").to_owned();
        assert_eq!(std::fs::read(moved_path).expect("read"), b"this is not a database, it never was");
        store.commit(vec![put_server()]).await.expect("the new database works");
    });
}

#[test]
fn a_randomly_damaged_database_never_prevents_the_start() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        for epoch in 1..50 {
            let end = StoreChange::EndRuntime { id: runtime(epoch, epoch).id, at: at(9) };
            store.commit(vec![put_server(), put_pane(Some(runtime(epoch, epoch)), epoch), end]).await.expect("written");
        }
        drop(store);
        let intact = std::fs::read(path).expect("read");
        for seed in 0..40usize {
            let mut bytes = intact.clone();
            for n in 0..64 {
                let at = (seed * 7919 + n * 104_729) % bytes.len();
                bytes[at] ^= 0xA5;
            }
            std::fs::write(path, &bytes).expect("written");
            let (store, _) = Store::open(path).expect("opened");
            store.commit(vec![put_server()]).await.expect("written");
        }
    });
}

#[test]
fn a_newer_schema_is_rejected_and_left_unchanged() {
    in_temp(async |path| {
        drop(Store::open(path).expect("opened"));
        let connection = Connection::open(path).expect("opened");
        connection.pragma_update(None, "user_version", 999).expect("set");
        drop(connection);
        let before = std::fs::read(path).expect("read");
        let error = Store::open(path).expect_err("rejected");
        assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
        assert_eq!(std::fs::read(path).expect("read"), before);
    });
}

#[test]
fn the_database_files_are_private_to_their_owner() {
    in_temp(async |path| {
        std::fs::write(path, b"").expect("written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).expect("set");
        let (store, _) = Store::open(path).expect("opened");
        store.commit(vec![put_server()]).await.expect("written");
        for entry in std::fs::read_dir(path.parent().expect("a parent")).expect("read") {
            let entry = entry.expect("an entry");
            let mode = entry.metadata().expect("metadata").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
        }
    });
}
