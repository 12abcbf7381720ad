use std::fs;
use std::io::Write as _;
use std::path::Path;

use tempfile::TempDir;

use super::{Bench, on_each_platform};
use crate::platform::PlatformSignal::{DirChanged, FileChanged};
use crate::platform::WatchToken;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);

on_each_platform![
    a_written_file_is_reported,
    a_replaced_file_is_followed,
    a_removed_file_is_reported_and_may_be_watched_again,
    a_forgotten_file_stays_silent,
    entries_that_come_go_and_move_are_reported,
    a_removed_directory_is_reported,
    files_and_directories_are_told_apart,
];

fn room() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn append(path: &Path) {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).expect("our own file");
    file.write_all(b"note\n").expect("room on the disk");
}

async fn a_written_file_is_reported(mut bench: Bench) {
    let room = room();
    let (first, second) = (room.path().join("first"), room.path().join("second"));
    append(&first);
    append(&second);
    bench.watcher.watch_file(A, &first).expect("a plain file");
    bench.watcher.watch_file(B, &second).expect("a plain file");
    append(&second);
    assert_eq!(bench.next().await, FileChanged(B));
    append(&first);
    assert_eq!(bench.next().await, FileChanged(A));
}

async fn a_replaced_file_is_followed(mut bench: Bench) {
    let room = room();
    let (path, next, mark) = (room.path().join("notes"), room.path().join("next"), room.path().join("mark"));
    append(&path);
    append(&mark);
    let held_open = fs::File::open(&path).expect("our own file");
    bench.watcher.watch_file(A, &path).expect("a plain file");
    bench.watcher.watch_file(B, &mark).expect("a plain file");
    append(&next);
    append(&next);
    fs::rename(&next, &path).expect("our own file");
    bench.until(FileChanged(A)).await;
    append(&mark);
    bench.until(FileChanged(B)).await;
    append(&path);
    assert_eq!(bench.next().await, FileChanged(A));
    drop(held_open);
}

async fn a_removed_file_is_reported_and_may_be_watched_again(mut bench: Bench) {
    let room = room();
    let path = room.path().join("notes");
    append(&path);
    bench.watcher.watch_file(A, &path).expect("a plain file");
    fs::remove_file(&path).expect("our own file");
    bench.until(FileChanged(A)).await;
    bench.watcher.watch_file(A, &path).expect_err("no file to watch");
    append(&path);
    bench.watcher.watch_file(A, &path).expect("a plain file");
    append(&path);
    bench.until(FileChanged(A)).await;
}

async fn a_forgotten_file_stays_silent(mut bench: Bench) {
    let room = room();
    let (first, second) = (room.path().join("first"), room.path().join("second"));
    append(&first);
    append(&second);
    bench.watcher.watch_file(A, &first).expect("a plain file");
    bench.watcher.watch_file(B, &first).expect("a plain file");
    bench.watcher.watch_file(B, &second).expect("a plain file");
    append(&first);
    bench.watcher.unwatch(A);
    append(&first);
    append(&second);
    assert_eq!(bench.next().await, FileChanged(B));
}

async fn entries_that_come_go_and_move_are_reported(mut bench: Bench) {
    let room = room();
    bench.watcher.watch_dir(A, room.path()).expect("a directory");
    append(&room.path().join("one"));
    assert_eq!(bench.next().await, DirChanged(A));
    fs::remove_file(room.path().join("one")).expect("our own file");
    assert_eq!(bench.next().await, DirChanged(A));
    let inner = room.path().join("inner");
    fs::create_dir(&inner).expect("our own directory");
    assert_eq!(bench.next().await, DirChanged(A));
    fs::rename(&inner, room.path().join("renamed")).expect("our own directory");
    assert_eq!(bench.next().await, DirChanged(A));
}

async fn a_removed_directory_is_reported(mut bench: Bench) {
    let room = room();
    let inner = room.path().join("inner");
    fs::create_dir(&inner).expect("our own directory");
    bench.watcher.watch_dir(A, &inner).expect("a directory");
    fs::remove_dir(&inner).expect("our own directory");
    assert_eq!(bench.next().await, DirChanged(A));
    fs::create_dir(&inner).expect("our own directory");
    bench.watcher.watch_dir(A, &inner).expect("a directory");
    append(&inner.join("one"));
    assert_eq!(bench.next().await, DirChanged(A));
}

async fn files_and_directories_are_told_apart(bench: Bench) {
    let room = room();
    let file = room.path().join("file");
    append(&file);
    bench.watcher.watch_dir(A, &file).expect_err("not a directory");
    bench.watcher.watch_file(A, room.path()).expect_err("not a file");
    bench.watcher.watch_file(A, Path::new("/dev/null")).expect_err("not a plain file");
}
