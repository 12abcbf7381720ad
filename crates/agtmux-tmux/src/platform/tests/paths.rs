use std::fs;
use std::io::Write as _;
use std::path::Path;

use tempfile::TempDir;

use super::{PlatformFixture, on_each_platform};
use crate::platform::PlatformSignal::{DirChanged, FileChanged};
use crate::platform::WatchToken;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);

on_each_platform![
    a_written_file_is_reported,
    a_replaced_file_is_followed,
    a_removed_file_is_reported_and_may_be_watched_again,
    an_unwatched_file_causes_no_signals,
    added_removed_and_renamed_entries_are_reported,
    a_removed_directory_is_reported,
    files_and_directories_are_distinguished,
];

fn dir() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn append(path: &Path) {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).expect("our own file");
    file.write_all(b"note\n").expect("the file is written");
}

async fn a_written_file_is_reported(mut fixture: PlatformFixture) {
    let dir = dir();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    append(&first);
    append(&second);
    fixture.watcher.watch_file(A, &first).expect("a plain file");
    fixture.watcher.watch_file(B, &second).expect("a plain file");
    append(&second);
    assert_eq!(fixture.next().await, FileChanged(B));
    append(&first);
    assert_eq!(fixture.next().await, FileChanged(A));
}

async fn a_replaced_file_is_followed(mut fixture: PlatformFixture) {
    let dir = dir();
    let (path, next, marker) = (dir.path().join("notes"), dir.path().join("next"), dir.path().join("mark"));
    append(&path);
    append(&marker);
    let held_open = fs::File::open(&path).expect("our own file");
    fixture.watcher.watch_file(A, &path).expect("a plain file");
    fixture.watcher.watch_file(B, &marker).expect("a plain file");
    append(&next);
    append(&next);
    fs::rename(&next, &path).expect("our own file");
    fixture.until(FileChanged(A)).await;
    append(&marker);
    fixture.until(FileChanged(B)).await;
    append(&path);
    assert_eq!(fixture.next().await, FileChanged(A));
    drop(held_open);
}

async fn a_removed_file_is_reported_and_may_be_watched_again(mut fixture: PlatformFixture) {
    let dir = dir();
    let path = dir.path().join("notes");
    append(&path);
    fixture.watcher.watch_file(A, &path).expect("a plain file");
    fs::remove_file(&path).expect("our own file");
    fixture.until(FileChanged(A)).await;
    fixture.watcher.watch_file(A, &path).expect_err("no file to watch");
    append(&path);
    fixture.watcher.watch_file(A, &path).expect("a plain file");
    append(&path);
    fixture.until(FileChanged(A)).await;
}

async fn an_unwatched_file_causes_no_signals(mut fixture: PlatformFixture) {
    let dir = dir();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    append(&first);
    append(&second);
    fixture.watcher.watch_file(A, &first).expect("a plain file");
    fixture.watcher.watch_file(B, &first).expect("a plain file");
    fixture.watcher.watch_file(B, &second).expect("a plain file");
    append(&first);
    fixture.watcher.unwatch(A);
    append(&first);
    append(&second);
    assert_eq!(fixture.next().await, FileChanged(B));
}

async fn added_removed_and_renamed_entries_are_reported(mut fixture: PlatformFixture) {
    let dir = dir();
    fixture.watcher.watch_dir(A, dir.path()).expect("a directory");
    append(&dir.path().join("one"));
    assert_eq!(fixture.next().await, DirChanged(A));
    fs::remove_file(dir.path().join("one")).expect("our own file");
    assert_eq!(fixture.next().await, DirChanged(A));
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).expect("our own directory");
    assert_eq!(fixture.next().await, DirChanged(A));
    fs::rename(&inner, dir.path().join("renamed")).expect("our own directory");
    assert_eq!(fixture.next().await, DirChanged(A));
}

async fn a_removed_directory_is_reported(mut fixture: PlatformFixture) {
    let dir = dir();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).expect("our own directory");
    fixture.watcher.watch_dir(A, &inner).expect("a directory");
    fs::remove_dir(&inner).expect("our own directory");
    assert_eq!(fixture.next().await, DirChanged(A));
    fs::create_dir(&inner).expect("our own directory");
    fixture.watcher.watch_dir(A, &inner).expect("a directory");
    append(&inner.join("one"));
    assert_eq!(fixture.next().await, DirChanged(A));
}

async fn files_and_directories_are_distinguished(fixture: PlatformFixture) {
    let dir = dir();
    let file = dir.path().join("file");
    append(&file);
    fixture.watcher.watch_dir(A, &file).expect_err("not a directory");
    fixture.watcher.watch_file(A, dir.path()).expect_err("not a file");
    fixture.watcher.watch_file(A, Path::new("/dev/null")).expect_err("not a plain file");
}
