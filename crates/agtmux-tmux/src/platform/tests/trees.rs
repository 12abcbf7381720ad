use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{PlatformFixture, eventually, on_each_platform};
use crate::platform::{PaneProcesses, ProcessInfo, ProcessTable};

on_each_platform![
    parents_come_before_children,
    a_program_behind_two_shells_is_found,
    a_stopped_child_is_detected,
    a_zombie_is_detected,
    the_foreground_group_is_detected,
    dead_roots_have_no_tree,
];

/// A process group that is killed when this value is dropped.
struct Group(Child);

impl Group {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).process_group(0).spawn().expect("the command starts"))
    }

    fn sh(script: &str) -> Self {
        Self::start(Command::new("sh").args(["-c", script]))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tree(table: &dyn ProcessTable, root: u32) -> Option<PaneProcesses> {
    table.trees(&[root]).expect("readable").pop().flatten()
}

impl PaneProcesses {
    fn running(&self, argv: &str) -> Option<&ProcessInfo> {
        let words: Vec<_> = argv.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.processes.iter().find(|process| process.argv == words)
    }
}

async fn parents_come_before_children(fixture: PlatformFixture) {
    let group = Group::sh("sh -c 'sleep 1001 & wait' & sleep 1002 & wait");
    let tree = eventually("three descendants", || {
        let tree = tree(&*fixture.processes, group.pid())?;
        (tree.running("sleep 1001").is_some() && tree.running("sleep 1002").is_some()).then_some(tree)
    })
    .await;
    let pids: Vec<_> = tree.processes.iter().map(|process| process.pid).collect();
    assert_eq!(pids[0], group.pid());
    assert_eq!(tree.processes.len(), 4);
    for process in &tree.processes[1..] {
        let parent = pids.iter().position(|&pid| pid == process.ppid).expect("parents are listed");
        assert!(pids[parent..].contains(&process.pid), "{tree:?}");
        assert_eq!(process.pgrp, group.pid());
        assert!(!process.stopped && !process.zombie);
        assert_eq!(fixture.processes.start_time(process.pid), Some(process.start));
    }
}

async fn a_program_behind_two_shells_is_found(fixture: PlatformFixture) {
    let group = Group::sh("sh -c 'sleep 1003; :'; :");
    let sleep =
        eventually("the innermost program", || tree(&*fixture.processes, group.pid())?.running("sleep 1003").cloned())
            .await;
    assert_eq!(sleep.name, b"sleep");
}

async fn a_stopped_child_is_detected(fixture: PlatformFixture) {
    let group = Group::sh("sleep 1004 & wait");
    let sleep =
        eventually("the child", || tree(&*fixture.processes, group.pid())?.running("sleep 1004").cloned()).await;
    let raw = i32::try_from(sleep.pid).expect("a pid");
    let pid = Pid::from_raw(raw).expect("a pid");
    kill_process(pid, Signal::STOP).expect("our own child");
    eventually("stopped in the tree", || {
        tree(&*fixture.processes, group.pid())?.running("sleep 1004").filter(|process| process.stopped).map(drop)
    })
    .await;
    eventually("is_stopped returns true", || fixture.processes.is_stopped(sleep.pid).then_some(())).await;
    kill_process(pid, Signal::CONT).expect("our own child");
    eventually("running again", || (!fixture.processes.is_stopped(sleep.pid)).then_some(())).await;
}

async fn a_zombie_is_detected(fixture: PlatformFixture) {
    let group = Group::sh("true & exec sleep 1005");
    let zombie = eventually("a zombie", || {
        let tree = tree(&*fixture.processes, group.pid())?;
        tree.processes.into_iter().find(|process| process.zombie)
    })
    .await;
    assert_eq!(zombie.ppid, group.pid());
    assert_eq!(zombie.argv, Vec::<Vec<u8>>::new());
}

async fn dead_roots_have_no_tree(fixture: PlatformFixture) {
    let mut group = Group::sh("exec sleep 1006");
    let dead = group.pid();
    group.0.kill().expect("our own child");
    group.0.wait().expect("our own child");
    let own = std::process::id();
    let trees = fixture.processes.trees(&[own, dead, u32::MAX]).expect("readable");
    assert_eq!(trees.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(fixture.processes.foreground_pgrp(dead), None);
    assert_eq!(fixture.processes.start_time(dead), None);
    assert!(!fixture.processes.is_stopped(dead));
}

#[cfg(target_os = "linux")]
async fn the_foreground_group_is_detected(fixture: PlatformFixture) {
    let pty = super::pty::Pty::open();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "sleep", "1007"]).stdin(pty.stdio()).stdout(pty.stdio());
    // The command does not get its own process group, because setsid would then fork.
    let group = Group(command.spawn().expect("setsid starts"));
    let pgrp = eventually("a foreground group", || fixture.processes.foreground_pgrp(group.pid())).await;
    assert_eq!(pgrp, group.pid());
    let tree = tree(&*fixture.processes, group.pid()).expect("the process runs");
    assert_eq!(tree.foreground_pgrp, Some(group.pid()));
}

#[cfg(not(target_os = "linux"))]
async fn the_foreground_group_is_detected(_bench: PlatformFixture) {}

#[cfg(target_os = "linux")]
mod only_proc {
    use super::*;
    use crate::platform::linux::ProcFs;
    use crate::platform::process::MAX_TREE;

    #[tokio::test]
    async fn hostile_names_are_preserved() {
        let group = Group::sh(r"printf 'a) R 1 (b\n' >/proc/$$/comm; sleep 1008; :");
        let table = ProcFs::new();
        let named = eventually("the name", || {
            let tree = tree(&table, group.pid())?;
            tree.running("sleep 1008").is_some().then(|| tree.processes[0].clone())
        })
        .await;
        assert_eq!(named.name, b"a) R 1 (b\n");
        assert_eq!(named.ppid, std::process::id());
    }

    #[tokio::test]
    async fn both_child_lookups_return_the_same_tree() {
        let group = Group::sh("sh -c 'sleep 1009; :' & sleep 1010 & wait");
        let (listed, scanned) = (ProcFs::new(), ProcFs::without_children_lists());
        eventually("the same tree twice", || {
            let trees = [tree(&listed, group.pid())?, tree(&scanned, group.pid())?];
            (trees[0] == trees[1] && trees[0].processes.len() == 4).then_some(())
        })
        .await;
    }

    #[tokio::test]
    async fn a_tree_has_a_limit() {
        let group = Group::sh("for i in $(seq 600); do sleep 1011 & done; wait");
        let table = ProcFs::new();
        let tree =
            eventually("a full tree", || tree(&table, group.pid()).filter(|tree| tree.processes.len() >= MAX_TREE))
                .await;
        assert_eq!(tree.processes.len(), MAX_TREE);
    }

    #[tokio::test]
    async fn children_of_threads_are_found() {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let parent = std::thread::spawn(move || {
            let group = Group::sh("exec sleep 1012");
            ready.send(group.pid()).expect("the test waits");
            let _ = is_done.recv();
        });
        let child = is_ready.recv().expect("the thread sends a pid");
        let tree = tree(&ProcFs::new(), std::process::id()).expect("this process runs");
        assert!(tree.processes.iter().any(|process| process.pid == child));
        drop(done);
        parent.join().expect("no panic in the thread");
    }

    #[tokio::test]
    async fn cwd_and_executable_are_read_also_after_removal() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let program = dir.path().join("program");
        std::fs::copy("/bin/sleep", &program).expect("the file is written");
        let group = eventually("a program without open writers", || {
            // The start fails while another process has the file open for writing: a child that another test forked
            // during the copy.
            Some(Group(Command::new(&program).arg("1013").current_dir(dir.path()).spawn().ok()?))
        })
        .await;
        let table = ProcFs::new();
        std::fs::remove_file(&program).expect("our own file");
        let tree = tree(&table, group.pid()).expect("the process runs");
        assert_eq!(tree.processes[0].exe, Some(program));
        assert_eq!(table.cwd(group.pid()), Some(dir.path().to_path_buf()));
    }

    #[tokio::test]
    async fn wakeups_count_all_threads() {
        let table = ProcFs::new();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let busy =
            std::thread::spawn(move || while is_done.recv_timeout(std::time::Duration::from_millis(1)).is_err() {});
        let before = table.wakeups(std::process::id()).expect("this process runs");
        eventually("more wakeups", || (table.wakeups(std::process::id())? > before).then_some(())).await;
        done.send(()).expect("the thread listens");
        busy.join().expect("no panic in the thread");
        assert_eq!(table.wakeups(u32::MAX), None);
    }

    #[tokio::test]
    async fn a_sleeper_does_not_wake_up() {
        let group = Group::sh("exec sleep 1014");
        let table = ProcFs::new();
        eventually("asleep", || {
            let first = table.wakeups(group.pid())?;
            (table.trees(&[group.pid()]).is_ok_and(|trees| trees.len() == 1)
                && table.wakeups(group.pid()) == Some(first))
            .then_some(())
        })
        .await;
    }
}
