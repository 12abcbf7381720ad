//! agtmux refuses directories that another user could replace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use agtmux_testkit::agtmux::{CommandResult, agtmux, run, start, world};
use agtmux_testkit::{TestWorld, skip};

const OTHER_UID: u32 = 65534;

fn dir(world: &TestWorld, name: &str, mode: u32) -> PathBuf {
    let dir = world.dir().join(name);
    fs::create_dir(&dir).expect("the world is writable");
    fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("the mode is set");
    dir
}

/// Checks that no command uses a directory below `parent`, and that the message names the directory and the remedies.
#[track_caller]
fn assert_refused(world: &TestWorld, parent: &Path, because: &str) {
    let cases = [
        ("AGTMUX_STATE_DIR", parent.join("state"), &["daemon", "run"][..]),
        ("AGTMUX_STATE_DIR", parent.join("deep/state"), &["list", "panes"]),
        ("AGTMUX_SOCKET", parent.join("agtmux/d.sock"), &["daemon", "run"]),
        ("AGTMUX_CONFIG", parent.join("agtmux/config.toml"), &["adapters", "new", "mine"]),
    ];
    for (variable, path, args) in cases {
        let done = run(world.agtmux().args(args).env(variable, &path));
        let CommandResult { code, stderr, .. } = &done;
        assert_eq!(*code, Some(2), "{variable}={}: {stderr}", path.display());
        assert!(stderr.contains(because) && stderr.contains(&parent.display().to_string()), "{stderr}");
        assert!(stderr.contains(&format!("set {variable} to a path below")), "{stderr}");
    }
    assert_eq!(fs::read_dir(parent).expect("readable").count(), 0, "nothing was created");
    assert_eq!(world.daemons(), Vec::<u32>::new());
}

#[test]
fn a_directory_below_one_that_every_user_can_write_to_is_refused() {
    let world = world();
    let open = dir(&world, "open", 0o777);
    assert_refused(&world, &open, "can be written to by every user");
    let done = run(world.agtmux().args(["daemon", "run"]).env("AGTMUX_STATE_DIR", open.join("state")));
    assert!(done.stderr.contains(&format!("run `chmod o-w '{}'`", open.display())), "{}", done.stderr);
}

#[test]
fn a_private_directory_below_a_sticky_one_is_used() {
    let world = world();
    let sticky = dir(&world, "sticky", 0o1777);
    let state = sticky.join("agtmux");
    let with_state = |args: &[&str]| run(world.agtmux().args(args).env("AGTMUX_STATE_DIR", &state));
    assert_eq!(with_state(&["daemon", "start"]).code, Some(0));
    assert_eq!(fs::metadata(&state).expect("created").permissions().mode() & 0o777, 0o700);
    assert_eq!(with_state(&["daemon", "stop"]).code, Some(0));
}

#[test]
fn directories_and_links_of_another_user_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give a directory to another user");
    }
    let world = world();
    let theirs = dir(&world, "theirs", 0o755);
    chown(&theirs, Some(OTHER_UID), None).expect("root may");
    assert_refused(&world, &theirs, "belongs to another user");
    let (real, link) = (dir(&world, "real", 0o755), world.dir().join("link"));
    symlink(&real, &link).expect("the world is writable");
    lchown(&link, Some(OTHER_UID), None).expect("root may");
    assert_refused(&world, &link, "is a symbolic link of another user");
    lchown(&link, Some(0), None).expect("root may");
    let started = run(world.agtmux().args(["daemon", "start"]).env("AGTMUX_STATE_DIR", link.join("state")));
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(real.join("state/state.db").exists());
}

/// A directory that becomes unsafe while the daemon runs does not disturb the daemon, but is refused at the next start.
#[test]
fn a_parent_that_becomes_unsafe_is_refused_at_the_next_start() {
    let world = world();
    let parent = dir(&world, "parent", 0o755);
    let with_state = |args: &[&str]| run(world.agtmux().args(args).env("AGTMUX_STATE_DIR", parent.join("state")));
    assert_eq!(with_state(&["daemon", "start"]).code, Some(0));
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).expect("the mode is set");
    assert_eq!(with_state(&["daemon", "stop"]).code, Some(0));
    let refused = with_state(&["daemon", "start"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("every user"), "{}", refused.stderr);
    start(&world);
    assert_eq!(agtmux(&world, &["list", "panes"]).code, Some(0));
}
