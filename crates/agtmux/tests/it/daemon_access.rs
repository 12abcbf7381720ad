//! Access control, the single daemon per user, and recovery from damaged or full disks.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use agtmux_testkit::agtmux::{
    CommandResult, SOON, agtmux, errors, health, items, kill, list, pid, run, start, stop, wait_for_hooks,
    wait_for_panes, world,
};
use agtmux_testkit::{ChildGuard, TestWorld, http, process, skip, wait_for, wait_until};

use crate::helper_process::{self, is_root};

const NOBODY_UID: u32 = 65534;

#[test]
fn all_files_are_private_even_with_an_open_umask() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    let base = world.dir().join("fresh");
    let paths = [("AGTMUX_STATE_DIR", base.join("deep/state")), ("AGTMUX_SOCKET", base.join("run/deep/agtmuxd.sock"))];
    let run_with_open_umask = |args: &str| {
        let script = format!("umask 000; exec \"$0\" {args}");
        let mut command = world.command("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_agtmux")]).envs(paths.clone());
        run(&mut command)
    };
    assert_eq!(run_with_open_umask("daemon start").code, Some(0));
    wait_for("hooks", SOON, || {
        let status = run_with_open_umask("daemon status --json").text();
        if status.contains("\"hooks\":true") { Ok(()) } else { Err(status) }
    });
    let found = list_modes(&base);
    for name in ["state.db", "state.db-wal", "agtmuxd.log", "agtmuxd.lock", "hooks", "agtmuxd.sock", ".agtmux-hint"] {
        assert!(found.iter().any(|(path, _)| path.to_string_lossy().ends_with(name)), "no {name} in {found:?}");
    }
    for (path, mode) in found {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{} is {mode:o}", path.display());
    }
    assert_eq!(run_with_open_umask("daemon stop").code, Some(0));
}

fn list_modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(dir.to_owned(), mode(dir))];
    for entry in fs::read_dir(dir).expect("readable").flatten().map(|entry| entry.path()) {
        if entry.is_dir() {
            found.extend(list_modes(&entry));
        } else {
            found.push((entry.clone(), mode(&entry)));
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("the path exists").permissions().mode() & 0o7777
}

#[test]
fn a_world_accessible_state_directory_is_made_private() {
    let world = world();
    fs::set_permissions(world.state_dir(), fs::Permissions::from_mode(0o777)).expect("writable");
    start(&world);
    assert_eq!(mode(&world.state_dir()), 0o700);
}

#[test]
fn symlinked_or_foreign_directories_are_refused() {
    let world = world();
    let (real, link) = (world.dir().join("real"), world.dir().join("link"));
    fs::create_dir(&real).expect("writable");
    symlink(&real, &link).expect("writable");
    let with_socket_in = |dir: &Path| ("AGTMUX_SOCKET", dir.join("agtmuxd.sock"));
    let with_state_in = |dir: &Path| ("AGTMUX_STATE_DIR", dir.to_owned());
    for variable in [with_state_in(&link), with_socket_in(&link)] {
        assert_refused(&world, variable, &link, "is a symbolic link");
    }
    if is_root() {
        chown(&real, Some(NOBODY_UID), None).expect("root may");
        for variable in [with_state_in(&real), with_socket_in(&real)] {
            assert_refused(&world, variable, &real, "belongs to another user");
        }
    }
    assert_eq!(fs::read_dir(&real).expect("readable").count(), 0, "no file is created there");
    let file = world.dir().join("run/file");
    fs::write(&file, "theirs").expect("writable");
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
fn connections_of_another_user_are_refused_even_if_file_modes_allow_them() {
    if !is_root() {
        return;
    }
    let world = world();
    start(&world);
    fs::set_permissions(world.dir().join("run"), fs::Permissions::from_mode(0o711)).expect("writable");
    fs::set_permissions(world.socket(), fs::Permissions::from_mode(0o666)).expect("writable");
    let ask = |user: u32| {
        let name = "daemon_access::helper_requests_health_as_another_user";
        run(&mut helper_process::helper_of_user(&world, user, name, world.socket())).text()
    };
    assert!(ask(0).contains("got HTTP/1.0 200 OK"), "{}", ask(0));
    assert!(ask(NOBODY_UID).contains("got nothing"), "{}", ask(NOBODY_UID));
    let log = fs::read_to_string(world.state_dir().join("agtmuxd.log")).expect("the daemon logs");
    assert!(log.contains("rejected a connection from another user"), "{log}");
    assert_eq!(health(&world)["status"], "ok");
}

#[test]
#[ignore = "helper process of another test"]
fn helper_requests_health_as_another_user() {
    let Some(socket) = helper_process::helper_argument() else { return };
    let mut stream = UnixStream::connect(socket).expect("the file modes allow the connection");
    let _ = stream.write_all(&http::request("GET", "/v1/health", ""));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    println!("got {}", answer.lines().next().unwrap_or("nothing"));
}

#[test]
fn the_daemon_opens_no_network_port() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    list(&world);
    let sockets: Vec<String> = process::open_fds(pid(&world))
        .iter()
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    assert!(!sockets.is_empty(), "the daemon listens on its unix socket");
    for table in ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"] {
        // A kernel without IPv6 has no such table.
        let Ok(rows) = fs::read_to_string(format!("/proc/net/{table}")) else { continue };
        let inodes: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split_whitespace().nth(9)).collect();
        assert!(!sockets.iter().any(|socket| inodes.contains(&socket.as_str())), "a port in {table}: {rows}");
    }
}

/// Runs all commands in parallel and returns their results.
fn run_concurrently(commands: Vec<Command>) -> Vec<CommandResult> {
    std::thread::scope(|scope| {
        let running: Vec<_> = commands.into_iter().map(|mut command| scope.spawn(move || run(&mut command))).collect();
        running.into_iter().map(|thread| thread.join().expect("the command thread ends")).collect()
    })
}

#[test]
fn twenty_concurrent_lists_start_one_daemon() {
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
fn one_of_twenty_concurrent_daemons_keeps_running() {
    let world = world();
    let start_one = |n: usize| {
        let mut command = world.agtmux();
        if n.is_multiple_of(2) {
            command.args(["daemon", "run"]);
        } else {
            // `agtmuxd` is a link to the same executable.
            command.arg0("agtmuxd");
        }
        let output = fs::File::create(world.dir().join(format!("output-{n}"))).expect("writable");
        ChildGuard::start(command.stdout(Stdio::null()).stderr(output))
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
        let output = fs::read_to_string(world.dir().join(format!("output-{n}"))).expect("readable");
        assert_eq!(status.code(), Some(1), "{output}");
        assert!(output.contains("is already running") && output.contains("try: agtmux daemon status"), "{output}");
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
fn stale_socket_and_lock_of_a_killed_daemon_are_replaced() {
    let world = world();
    let first = start(&world);
    kill(first);
    assert!(world.socket().exists() && world.state_dir().join("agtmuxd.lock").exists());
    let second = start(&world);
    assert_ne!(first, second);
    stop(&world);
    assert!(!world.socket().exists(), "a daemon that stops normally removes its socket");

    drop(UnixListener::bind(world.socket()).expect("the place is free"));
    fs::write(world.state_dir().join("agtmuxd.lock"), "4194304 nonsense\n").expect("writable");
    assert_eq!(agtmux(&world, &["daemon", "status"]).code, Some(3));
    assert_eq!(errors(&list(&world)), []);
    assert_eq!(mode(&world.socket()), 0o600);
    assert!(fs::symlink_metadata(world.socket()).is_ok_and(|meta| meta.file_type().is_socket()));
}

#[test]
fn no_command_starts_a_daemon_with_autostart_off() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    for args in [&["list", "panes"][..], &["list", "panes", "--json"], &["watch", "--once"], &["watch"]] {
        let done = run(world.agtmux().args(args).env("AGTMUX_NO_AUTOSTART", "1"));
        assert_eq!((done.code, done.text().as_str()), (Some(3), ""), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("try: agtmux daemon start"), "{}", done.stderr);
    }
    for args in [&["status"][..], &["status", "--json"], &["daemon", "status"], &["daemon", "status", "--json"]] {
        let done = agtmux(&world, args);
        let shown = match args {
            ["status"] => "off\n",
            ["status", "--json"] => "{\"daemon\":\"off\",\"schema_version\":2}\n",
            _ => "",
        };
        assert_eq!((done.code, done.text().as_str()), (Some(3), shown), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("try: agtmux daemon start"), "{}", done.stderr);
    }
    assert_eq!((world.daemons(), world.socket().exists()), (vec![], false));
}

#[test]
fn a_daemon_of_another_version_is_reported_and_can_be_replaced() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    for headers in ["", "agtmux-api: 0\r\nagtmux-version: 0.0.1\r\n", "agtmux-api: 99\r\nagtmux-version: 9.9.9\r\n"] {
        let mut other = world.command(helper_process::test_program());
        helper_process::run_as_helper(
            &mut other,
            "daemon_access::helper_serves_as_a_daemon_of_another_version",
            world.socket(),
        );
        let _other = ChildGuard::start(other.env("HEADERS", headers).stdout(Stdio::null()));
        wait_until("the other daemon", SOON, || UnixStream::connect(world.socket()).is_ok());
        for args in [&["list", "panes"][..], &["list", "panes", "--json"], &["status"], &["daemon", "status"]] {
            let done = agtmux(&world, args);
            assert_eq!((done.code, done.text().as_str()), (Some(4), ""), "{args:?}: {}", done.stderr);
            assert!(done.stderr.contains("run `agtmux daemon restart`"), "{}", done.stderr);
            assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        }
        let version = headers.rsplit(": ").next().unwrap_or_default().trim_end();
        assert!(agtmux(&world, &["list"]).stderr.contains(&format!("the daemon is version {version}")));
        assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
        wait_for_panes(&world, "default", &["%0".into()]);
        stop(&world);
    }
}

#[test]
#[ignore = "helper process of another test"]
fn helper_serves_as_a_daemon_of_another_version() {
    let Some(socket) = helper_process::helper_argument() else { return };
    let headers = std::env::var("HEADERS").expect("the parent test sets HEADERS");
    let listener = UnixListener::bind(socket).expect("the place is free");
    for mut stream in listener.incoming().flatten() {
        let mut request = [0; 4096];
        // A client that only checks whether the socket accepts connections sends nothing.
        if stream.read(&mut request).is_ok_and(|count| count > 0) {
            let body = std::env::var("BODY").unwrap_or_else(|_| "{\"panes\":[]}".to_owned());
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    }
}

fn database(world: &TestWorld) -> PathBuf {
    world.state_dir().join("state.db")
}

/// The database that a daemon leaves after it stored an agent.
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
fn a_damaged_database_is_quarantined_and_reported() {
    let world = world();
    let sound = used_database(&world);
    let mut scrambled = sound.clone();
    scrambled[4096..].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(7).wrapping_add(13));
    let cut = sound[..sound.len() / 2 + 100].to_vec();
    for damaged in [b"not a database at all".repeat(500), scrambled, cut] {
        fs::write(database(&world), &damaged).expect("writable");
        start(&world);
        let health = health(&world);
        let quarantined =
            health["store"]["quarantined"].as_str().unwrap_or_else(|| panic!("no database was quarantined: {health}"));
        assert!(fs::read(quarantined).is_ok_and(|kept| kept == damaged), "the quarantined file has the same bytes");
        assert_eq!(mode(Path::new(quarantined)), 0o600);
        wait_for_panes(&world, "default", &["%0".into()]);
        let status = agtmux(&world, &["daemon", "status"]).text();
        assert!(status.contains("was unreadable") && status.contains(quarantined), "{status}");
        stop(&world);
    }
    let quarantined = fs::read_dir(world.state_dir()).expect("writable").flatten();
    assert_eq!(quarantined.filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-")).count(), 3);
}

#[test]
fn the_daemon_starts_with_a_truncated_wal() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    for kept in [10, 100, 5000] {
        let daemon = start(&world);
        wait_for_panes(&world, "default", &["%0".into()]);
        kill(daemon);
        let wal = world.state_dir().join("state.db-wal");
        let bytes = fs::read(&wal).expect("a killed daemon leaves its WAL");
        fs::write(&wal, &bytes[..bytes.len().min(kept)]).expect("writable");
        start(&world);
        wait_for_panes(&world, "default", &["%0".into()]);
        assert_eq!(health(&world)["status"], "ok");
        stop(&world);
    }
}

#[test]
fn a_database_of_a_newer_agtmux_is_refused_and_unchanged() {
    let world = world();
    let mut newer = used_database(&world);
    // SQLite stores `PRAGMA user_version` in these bytes.
    newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
    fs::write(database(&world), &newer).expect("writable");
    for args in [&["list", "panes"][..], &["daemon", "start"], &["daemon", "run"]] {
        let done = agtmux(&world, args);
        assert!(matches!(done.code, Some(1..)), "{done:?}");
        assert!(done.stderr.contains("newer agtmux") && done.stderr.contains("999"), "{}", done.stderr);
        assert!(done.stderr.contains("AGTMUX_STATE_DIR"), "the error names AGTMUX_STATE_DIR: {}", done.stderr);
    }
    assert_eq!(world.daemons(), Vec::<u32>::new());
    assert!(fs::read(database(&world)).is_ok_and(|bytes| bytes == newer), "the database file is unchanged");
}

/// A small tmpfs mount, unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns None if mounting is not allowed.
    fn mount(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=6m,mode=0700", "agtmux-test"]).arg(at);
        let done = run(&mut mount);
        if done.code != Some(0) {
            skip(&format!("cannot mount a tmpfs: {}", done.stderr));
            return None;
        }
        Some(Self(at.to_owned()))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.filler()).expect("the disk has room for a file name");
        for size in [1 << 16, 1 << 10, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("the filler exists");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy unmount: after a failed test the daemon still uses the disk.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_reported_and_the_list_stays_current() {
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
    let degraded = wait_for("the full disk to be reported", SOON, || {
        changes += 1;
        server.run(&["rename-window", "-t", "=work:", &format!("name-{changes}")]);
        let health = health(&world);
        if health["store"]["error"].is_string() { Ok(health) } else { Err(health.to_string()) }
    });
    assert_eq!(degraded["status"], "degraded");
    assert!(agtmux(&world, &["daemon", "status"]).text().contains("cannot be written"));

    // Respawn the pane with another agent while the store cannot be written.
    server.run(&["respawn-pane", "-k", "-t", "%0", &codex]);
    wait_for_agent(&world, "codex");
    server.run(&["new-window", "-t", "=work:", "cat"]);
    wait_for_panes(&world, "default", &["%0".into(), "%1".into()]);

    disk.free();
    wait_for("the store to recover", SOON, || {
        changes += 1;
        server.run(&["rename-window", "-t", "=work:", &format!("name-{changes}")]);
        let health = health(&world);
        if health["store"]["error"].is_null() { Ok(()) } else { Err(health.to_string()) }
    });
    let runtime = wait_for_agent(&world, "codex");
    kill(pid(&world));
    start(&world);
    assert_eq!(wait_for_agent(&world, "codex"), runtime, "the runtime was stored after the disk recovered");
    stop(&world);
    assert!(!server.run(&["source-file", "/dev/null"]).contains("agtmux"), "the hooks caused no errors");
}

/// Waits until this is the only agent. Returns its runtime id.
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
fn state_files_are_owned_by_the_user() {
    let world = world();
    start(&world);
    for (path, _) in list_modes(&world.state_dir()) {
        let owner = fs::symlink_metadata(&path).expect("the file exists").uid();
        assert_eq!(owner, rustix::process::geteuid().as_raw(), "{}", path.display());
    }
}
