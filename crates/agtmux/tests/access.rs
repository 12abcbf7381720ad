//! Only the user gets in, only one daemon runs, and what is stored survives what happens to disks.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/trial_part.rs"]
mod part;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use agtmux::{
    Done, SOON, agtmux, errors, health, items, kill, list, pid, run, start, stop, wait_for_hooks, wait_for_panes, world,
};
use agtmux_testkit::{ChildGuard, TestWorld, process, wait_for, wait_until};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: only root can take another user's part");
    }
    root
}

#[test]
fn whatever_the_umask_nobody_else_can_read_anything() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    let base = world.dir().join("fresh");
    let places = [("AGTMUX_STATE_DIR", base.join("deep/state")), ("AGTMUX_SOCKET", base.join("run/deep/agtmuxd.sock"))];
    let careless = |args: &str| {
        let script = format!("umask 000; exec \"$0\" {args}");
        let mut command = world.command("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_agtmux")]).envs(places.clone());
        run(&mut command)
    };
    assert_eq!(careless("daemon start").code, Some(0));
    wait_for("hooks", SOON, || {
        let told = careless("daemon status --json").text();
        if told.contains("\"hooks\":true") { Ok(()) } else { Err(told) }
    });
    let found = list_modes(&base);
    for name in ["state.db", "state.db-wal", "agtmuxd.log", "agtmuxd.lock", "hooks", "agtmuxd.sock", ".agtmux-hint"] {
        assert!(found.iter().any(|(path, _)| path.to_string_lossy().ends_with(name)), "no {name} in {found:?}");
    }
    for (path, mode) in found {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{} is {mode:o}", path.display());
    }
    assert_eq!(careless("daemon stop").code, Some(0));
}

fn list_modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(dir.to_owned(), mode(dir))];
    for entry in fs::read_dir(dir).expect("ours").flatten().map(|entry| entry.path()) {
        if entry.is_dir() {
            found.extend(list_modes(&entry));
        } else {
            found.push((entry.clone(), mode(&entry)));
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

#[test]
fn a_state_directory_that_others_can_enter_is_closed() {
    let world = world();
    fs::set_permissions(world.state_dir(), fs::Permissions::from_mode(0o777)).expect("ours");
    start(&world);
    assert_eq!(mode(&world.state_dir()), 0o700);
}

#[test]
fn a_linked_or_foreign_directory_is_refused() {
    let world = world();
    let (real, link) = (world.dir().join("real"), world.dir().join("link"));
    fs::create_dir(&real).expect("ours");
    symlink(&real, &link).expect("ours");
    let with_socket_in = |dir: &Path| ("AGTMUX_SOCKET", dir.join("agtmuxd.sock"));
    let with_state_in = |dir: &Path| ("AGTMUX_STATE_DIR", dir.to_owned());
    for variable in [with_state_in(&link), with_socket_in(&link)] {
        assert_refused(&world, variable, &link, "is a symbolic link");
    }
    if is_root() {
        chown(&real, Some(NOBODY), None).expect("root may");
        for variable in [with_state_in(&real), with_socket_in(&real)] {
            assert_refused(&world, variable, &real, "belongs to another user");
        }
    }
    assert_eq!(fs::read_dir(&real).expect("readable").count(), 0, "nothing was put there");
    let file = world.dir().join("run/file");
    fs::write(&file, "theirs").expect("ours");
    assert_refused(&world, with_state_in(&file), &file, "is not a directory");
    assert_refused(&world, ("AGTMUX_SOCKET", file.clone()), &file, "not a socket");
    assert_eq!(fs::read(&file).expect("readable"), b"theirs");
}

#[track_caller]
fn assert_refused(world: &TestWorld, (variable, value): (&str, PathBuf), place: &Path, why: &str) {
    let place = place.to_str().expect("a plain path");
    for args in [&["list", "panes"][..], &["daemon", "run"]] {
        let done = run(world.agtmux().args(args).env(variable, &value));
        assert!(matches!(done.code, Some(1..)), "{done:?}");
        assert!(done.stderr.contains(why) && done.stderr.contains(place), "{}", done.stderr);
    }
    assert_eq!(world.daemons(), Vec::<u32>::new());
}

#[test]
fn another_user_is_refused_even_where_the_files_would_let_him() {
    if !is_root() {
        return;
    }
    let world = world();
    start(&world);
    let stranger = world.dir().join("stranger");
    assert_eq!(run(world.command("cp").arg(part::test_program()).arg(&stranger)).code, Some(0));
    for dir in [world.dir().to_owned(), world.dir().join("run")] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o711)).expect("ours");
    }
    fs::set_permissions(world.socket(), fs::Permissions::from_mode(0o666)).expect("ours");
    let ask = |user: u32| {
        let mut command = world.command("setpriv");
        command.arg(format!("--reuid={user}")).arg("--clear-groups").arg(&stranger);
        part::run_as_helper(&mut command, "a_stranger_asks", &world.socket());
        run(&mut command).text()
    };
    assert!(ask(0).contains("got HTTP/1.0 200 OK"), "{}", ask(0));
    assert!(ask(NOBODY).contains("got nothing"), "{}", ask(NOBODY));
    let log = fs::read_to_string(world.state_dir().join("agtmuxd.log")).expect("the daemon logs");
    assert!(log.contains("refused a connection of another user"), "{log}");
    assert_eq!(health(&world)["status"], "ok");
}

#[test]
#[ignore = "a part in another test"]
fn a_stranger_asks() {
    let Some(socket) = part::helper_argument() else { return };
    let mut stream = UnixStream::connect(socket).expect("the files let everybody in");
    let _ = stream.write_all(&http::request("GET", "/v1/health", ""));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    println!("got {}", answer.lines().next().unwrap_or("nothing"));
}

#[test]
fn no_port_is_open() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    list(&world);
    let sockets: Vec<String> = process::open_fds(pid(&world))
        .iter()
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    assert!(!sockets.is_empty(), "it listens on its unix socket");
    for table in ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"] {
        // A kernel without IPv6 has no such table.
        let Ok(rows) = fs::read_to_string(format!("/proc/net/{table}")) else { continue };
        let inodes: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split_whitespace().nth(9)).collect();
        assert!(!sockets.iter().any(|socket| inodes.contains(&socket.as_str())), "a port in {table}: {rows}");
    }
}

/// All of them at once, each to its end.
fn run_concurrently(commands: Vec<Command>) -> Vec<Done> {
    std::thread::scope(|scope| {
        let running: Vec<_> = commands.into_iter().map(|mut command| scope.spawn(move || run(&mut command))).collect();
        running.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    })
}

#[test]
fn twenty_lists_at_once_start_one_daemon() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    let listing = |_| {
        let mut command = world.agtmux();
        command.args(["list", "panes", "--all", "--json"]);
        command
    };
    for done in run_concurrently((0..20).map(listing).collect()) {
        assert_eq!(items(&done.json()).len(), 1, "{done:?}");
    }
    wait_until("one daemon", SOON, || world.daemons().len() == 1);
    assert_eq!(world.daemons(), [pid(&world)]);
}

#[test]
fn twenty_daemons_at_once_leave_one() {
    let world = world();
    let start_one = |n: usize| {
        let mut command = world.agtmux();
        if n.is_multiple_of(2) {
            command.args(["daemon", "run"]);
        } else {
            // `agtmuxd` is a link to the same executable.
            command.arg0("agtmuxd");
        }
        let said = fs::File::create(world.dir().join(format!("said-{n}"))).expect("writable");
        ChildGuard::start(command.stdout(Stdio::null()).stderr(said))
    };
    let mut daemons: Vec<ChildGuard> = (0..20).map(start_one).collect();
    wait_until("nineteen to give up", SOON, || {
        daemons.iter_mut().filter_map(|daemon| daemon.try_wait().expect("a child")).count() == 19
    });
    let mut owners = 0;
    for (n, daemon) in daemons.iter_mut().enumerate() {
        let Some(status) = daemon.try_wait().expect("a child") else {
            owners += 1;
            assert_eq!(daemon.id(), wait_for_running_daemon(&world));
            continue;
        };
        let said = fs::read_to_string(world.dir().join(format!("said-{n}"))).expect("readable");
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("already runs") && said.contains("try: agtmux daemon status"), "{said}");
    }
    assert_eq!(owners, 1);
    stop(&world);
}

fn wait_for_running_daemon(world: &TestWorld) -> u32 {
    wait_for("the owner to serve", SOON, || {
        let done = agtmux(world, &["daemon", "status", "--json"]);
        if done.code == Some(0) { Ok(pid(world)) } else { Err(done) }
    })
}

#[test]
fn what_a_dead_daemon_left_is_cleaned_up() {
    let world = world();
    let first = start(&world);
    kill(first);
    assert!(world.socket().exists() && world.state_dir().join("agtmuxd.lock").exists());
    let second = start(&world);
    assert_ne!(first, second);
    stop(&world);
    assert!(!world.socket().exists(), "a daemon that ends in peace removes its socket");

    drop(UnixListener::bind(world.socket()).expect("the place is free"));
    fs::write(world.state_dir().join("agtmuxd.lock"), "4194304 nonsense\n").expect("ours");
    assert_eq!(agtmux(&world, &["daemon", "status"]).code, Some(3));
    assert_eq!(errors(&list(&world)), []);
    assert_eq!(mode(&world.socket()), 0o600);
    assert!(fs::symlink_metadata(world.socket()).is_ok_and(|meta| meta.file_type().is_socket()));
}

#[test]
fn nothing_starts_a_daemon_where_that_is_forbidden() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    for args in [&["list", "panes"][..], &["list", "panes", "--json"], &["watch", "--once"], &["watch"]] {
        let done = run(world.agtmux().args(args).env("AGTMUX_NO_AUTOSTART", "1"));
        assert_eq!((done.code, done.text().as_str()), (Some(3), ""), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("try: agtmux daemon start"), "{}", done.stderr);
    }
    for args in [&["status"][..], &["status", "--json"], &["daemon", "status"], &["daemon", "status", "--json"]] {
        let done = agtmux(&world, args);
        assert_eq!((done.code, done.text().as_str()), (Some(3), ""), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("try: agtmux daemon start"), "{}", done.stderr);
    }
    assert_eq!((world.daemons(), world.socket().exists()), (vec![], false));
}

#[test]
fn a_daemon_of_another_version_is_named_and_replaced() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    for headers in ["", "agtmux-api: 0\r\nagtmux-version: 0.0.1\r\n", "agtmux-api: 99\r\nagtmux-version: 9.9.9\r\n"] {
        let mut other = world.command(part::test_program());
        part::run_as_helper(&mut other, "another_daemon", &world.socket());
        let _other = ChildGuard::start(other.env("HEADERS", headers).stdout(Stdio::null()));
        wait_until("the other daemon", SOON, || UnixStream::connect(world.socket()).is_ok());
        for args in [&["list", "panes"][..], &["list", "panes", "--json"], &["status"], &["daemon", "status"]] {
            let done = agtmux(&world, args);
            assert_eq!((done.code, done.text().as_str()), (Some(4), ""), "{args:?}: {}", done.stderr);
            assert!(done.stderr.contains("try: agtmux daemon restart"), "{}", done.stderr);
        }
        let version = headers.rsplit(": ").next().unwrap_or_default().trim_end();
        assert!(agtmux(&world, &["list"]).stderr.contains(&format!("the daemon is version {version}")));
        assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
        wait_for_panes(&world, "default", &["%0".into()]);
        stop(&world);
    }
}

#[test]
#[ignore = "a part in another test"]
fn another_daemon() {
    let Some(socket) = part::helper_argument() else { return };
    let headers = std::env::var("HEADERS").expect("it comes with the part");
    let listener = UnixListener::bind(socket).expect("the place is free");
    for mut stream in listener.incoming().flatten() {
        let mut request = [0; 4096];
        // Whoever only wants to know whether somebody listens sends nothing.
        if stream.read(&mut request).is_ok_and(|count| count > 0) {
            let body = "{\"panes\":[]}";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    }
}

fn database(world: &TestWorld) -> PathBuf {
    world.state_dir().join("state.db")
}

/// A database as a daemon leaves it that saw something.
fn used_database(world: &TestWorld) -> Vec<u8> {
    world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    wait_for("an agent", SOON, || {
        let listing = agtmux(world, &["list", "--json"]).json();
        if items(&listing).is_empty() { Err(listing.to_string()) } else { Ok(()) }
    });
    stop(world);
    fs::read(database(world)).expect("a daemon that ran has a database")
}

#[test]
fn a_damaged_database_is_put_aside_and_told_of() {
    let world = world();
    let sound = used_database(&world);
    let mut scrambled = sound.clone();
    scrambled[4096..].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(7).wrapping_add(13));
    let cut = sound[..sound.len() / 2 + 100].to_vec();
    for damaged in [b"not a database at all".repeat(500), scrambled, cut] {
        fs::write(database(&world), &damaged).expect("ours");
        start(&world);
        let health = health(&world);
        let aside = health["store"]["quarantined"].as_str().unwrap_or_else(|| panic!("nothing put aside: {health}"));
        assert!(fs::read(aside).is_ok_and(|kept| kept == damaged), "not a byte of it is lost");
        assert_eq!(mode(Path::new(aside)), 0o600);
        wait_for_panes(&world, "default", &["%0".into()]);
        let told = agtmux(&world, &["daemon", "status"]).text();
        assert!(told.contains("was unreadable") && told.contains(aside), "{told}");
        stop(&world);
    }
    let aside = fs::read_dir(world.state_dir()).expect("ours").flatten();
    assert_eq!(aside.filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-")).count(), 3);
}

#[test]
fn a_log_of_changes_that_was_cut_off_is_survived() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    for kept in [10, 100, 5000] {
        let daemon = start(&world);
        wait_for_panes(&world, "default", &["%0".into()]);
        kill(daemon);
        let wal = world.state_dir().join("state.db-wal");
        let bytes = fs::read(&wal).expect("a daemon that was killed leaves it");
        fs::write(&wal, &bytes[..bytes.len().min(kept)]).expect("ours");
        start(&world);
        wait_for_panes(&world, "default", &["%0".into()]);
        assert_eq!(health(&world)["status"], "ok");
        stop(&world);
    }
}

#[test]
fn a_database_of_a_newer_agtmux_is_left_alone() {
    let world = world();
    let mut newer = used_database(&world);
    // Where SQLite keeps `PRAGMA user_version`.
    newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
    fs::write(database(&world), &newer).expect("ours");
    for args in [&["list", "panes"][..], &["daemon", "start"], &["daemon", "run"]] {
        let done = agtmux(&world, args);
        assert!(matches!(done.code, Some(1..)), "{done:?}");
        assert!(done.stderr.contains("newer agtmux") && done.stderr.contains("999"), "{}", done.stderr);
        assert!(done.stderr.contains("AGTMUX_STATE_DIR"), "it says what to do: {}", done.stderr);
    }
    assert_eq!(world.daemons(), Vec::<u32>::new());
    assert!(fs::read(database(&world)).is_ok_and(|bytes| bytes == newer), "not a byte of it was changed");
}

/// A small disk of its own; gone with its value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where mounting is not allowed.
    fn mount(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=6m,mode=0700", "agtmux-test"]).arg(at);
        let done = run(&mut mount);
        if done.code != Some(0) {
            println!("skipped: no disk can be mounted: {}", done.stderr);
            return None;
        }
        Some(Self(at.to_owned()))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.filler()).expect("there is room for a name");
        for size in [1 << 16, 1 << 10, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: after a failed test the daemon is still there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_of_while_the_list_goes_on() {
    let world = world();
    let Some(disk) = SmallDisk::mount(&world.state_dir()) else { return };
    let server = world.tmux("default");
    let (claude, codex) = (world.fake_agent_command("claude"), world.fake_agent_command("codex"));
    server.new_session("work", &claude);
    start(&world);
    wait_for_hooks(&world, "default");
    wait_for_agent(&world, "claude");
    disk.fill();
    let mut changes = 0;
    let told = wait_for("a full disk to be told of", SOON, || {
        changes += 1;
        server.run(&["rename-window", "-t", "=work:", &format!("name-{changes}")]);
        let health = health(&world);
        if health["store"]["error"].is_string() { Ok(health) } else { Err(health.to_string()) }
    });
    assert_eq!(told["status"], "degraded");
    assert!(agtmux(&world, &["daemon", "status"]).text().contains("cannot be written"));

    // Another agent in the same pane, which ended and began while nothing could be written.
    server.run(&["respawn-pane", "-k", "-t", "%0", &codex]);
    wait_for_agent(&world, "codex");
    server.run(&["new-window", "-t", "=work:", "cat"]);
    wait_for_panes(&world, "default", &["%0".into(), "%1".into()]);

    disk.free();
    wait_for("the disk to be used again", SOON, || {
        changes += 1;
        server.run(&["rename-window", "-t", "=work:", &format!("name-{changes}")]);
        let health = health(&world);
        if health["store"]["error"].is_null() { Ok(()) } else { Err(health.to_string()) }
    });
    let runtime = wait_for_agent(&world, "codex");
    kill(pid(&world));
    start(&world);
    assert_eq!(wait_for_agent(&world, "codex"), runtime, "it was stored after all");
    stop(&world);
    assert!(!server.run(&["source-file", "/dev/null"]).contains("agtmux"), "the hooks made no errors");
}

/// Waits until this is the only agent. Gives its runtime.
#[track_caller]
fn wait_for_agent(world: &TestWorld, agent: &str) -> String {
    wait_for(&format!("{agent} alone"), Duration::from_secs(30), || {
        let listing = agtmux(world, &["list", "panes", "--json"]).json();
        match items(&listing).as_slice() {
            [only] if only["agent_type"] == agent => Ok(only["runtime_id"].as_str().unwrap_or_default().to_owned()),
            _ => Err(listing.to_string()),
        }
    })
}

#[test]
fn files_belong_to_their_user() {
    let world = world();
    start(&world);
    for (path, _) in list_modes(&world.state_dir()) {
        let owner = fs::symlink_metadata(&path).expect("there").uid();
        assert_eq!(owner, rustix::process::geteuid().as_raw(), "{}", path.display());
    }
}
