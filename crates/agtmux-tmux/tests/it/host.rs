//! A host that has only tmux and a shell, used through one open shell. In these tests the shell runs on this machine.
//! host_ssh.rs tests hosts behind ssh.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_testkit::{TestWorld, process, skip, wait_for, wait_until};
use agtmux_tmux::host::{HostScan, HostScanRequest, HostShell, ShellError};
use agtmux_tmux::platform::process_table;
use agtmux_tmux::{PaneGuard, PaneInput, TmuxError, TmuxKey, TypeError, TypeRefusal};
use rustix::process::Signal;
use tokio::process::Command;

const DEADLINE: Duration = Duration::from_secs(20);
/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the test in a new world. The runtime is dropped before the world, so that the processes of the runtime have
/// ended when the world looks for leaked processes.
fn in_world(test: impl AsyncFnOnce(&TestWorld)) {
    let world = TestWorld::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test(&world));
}

async fn shell(world: &TestWorld) -> HostShell {
    shell_of(world, "sh", &[]).await.expect("a shell")
}

async fn shell_of(world: &TestWorld, program: &str, args: &[&str]) -> Result<HostShell, ShellError> {
    let mut command = world.command(program);
    command.args(args);
    HostShell::open(Command::from(command), TIMEOUT).await
}

/// The shells that run without arguments. These are the host shells, which read a script from stdin. The shells in
/// panes have arguments.
fn shells(world: &TestWorld) -> Vec<u32> {
    world.processes().into_iter().filter(|pid| process::argv(*pid) == [b"sh"]).collect()
}

/// Waits until the pane runs the command. Until exec, the first process of a pane is a fork of the server and has the
/// server's name.
fn wait_for_command(server: &agtmux_testkit::TestTmuxServer, pane: &str, command: &str) {
    wait_until("the pane's program", DEADLINE, || {
        server.run(&["display-message", "-p", "-t", pane, "#{pane_current_command}"]) == command
    });
}

async fn scan(shell: &HostShell, servers: Vec<PathBuf>) -> HostScan {
    let request = HostScanRequest { sockets: true, servers, processes: true, ..HostScanRequest::default() };
    shell.scan(&request, TIMEOUT).await.expect("tmux answers")
}

fn guard(server: &agtmux_testkit::TestTmuxServer, pane: &str) -> PaneGuard {
    let facts = server.run(&["display-message", "-p", "-t", pane, "#{pid} #{start_time} #{pane_pid}"]);
    let facts: Vec<i64> = facts.split(' ').map(|fact| fact.parse().expect("a number")).collect();
    let pid = |n: i64| u32::try_from(n).expect("a pid");
    let pane = pane.trim_start_matches('%').parse().expect("a number");
    PaneGuard { server_pid: pid(facts[0]), server_start: facts[1], pane, pane_pid: pid(facts[2]) }
}

#[test]
fn one_scan_returns_the_whole_host() {
    in_world(async |world| {
        let (one, two) = (world.tmux("default"), world.tmux("a$(touch x);'b"));
        let pane = one.new_session("work", "exec cat");
        two.new_session("`id`", "sleep 600");
        wait_for_command(&one, &pane, "cat");
        let shell = shell(world).await;
        let found = scan(&shell, Vec::new()).await.sockets.expect("requested");
        assert_eq!(found.len(), 2, "{found:?}");
        let seen = scan(&shell, found.clone()).await;
        for (socket, listing) in &seen.servers {
            let listing = listing.as_ref().unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
            assert_eq!((listing.listing.rows.len(), listing.activity.len()), (1, 1));
            let direct = agtmux_tmux::TmuxServer::new("tmux", socket, TIMEOUT).list().await.expect("tmux answers");
            assert_eq!(listing.listing, direct, "the same listing as from this machine");
        }
        let pid = guard(&one, &pane).pane_pid;
        let tree = seen.processes.expect("requested").tree(pid).expect("the process of the pane");
        let local = process_table(false).trees(&[pid]).expect("readable").pop().flatten().expect("the process runs");
        let facts = |tree: &agtmux_tmux::platform::PaneProcesses| {
            let first = &tree.processes[0];
            (
                first.pid,
                first.start,
                first.pgrp,
                first.tpgid,
                first.name.clone(),
                first.argv.clone(),
                tree.foreground_pgrp,
            )
        };
        assert_eq!(facts(&tree), facts(&local));
        assert!(!world.home().join("x").exists() && !world.dir().join("x").exists());
    });
}

/// A redraw in place changes neither the cursor nor the history. It changes only the window activity, which is in whole
/// seconds.
#[test]
fn a_redraw_in_place_changes_the_window_activity() {
    in_world(async |world| {
        let server = world.tmux("default");
        let pane = server.new_session("work", "printf '\\033[?1049h'; exec cat");
        let tty = server.run(&["display-message", "-p", "-t", &pane, "#{pane_tty}"]);
        let shell = shell(world).await;
        let look = async || {
            let seen = scan(&shell, vec![server.socket().to_owned()]).await.servers.remove(0).1.expect("tmux answers");
            (seen.activity.into_values().next().expect("one pane"), seen.clock.expect("the server reports its time"))
        };
        let (first, clock) = look().await;
        wait_until("another second", DEADLINE, || {
            server.run(&["display-message", "-p", "%s"]).parse::<i64>().is_ok_and(|now| now > clock + 1)
        });
        let (quiet, _) = look().await;
        assert_eq!(
            (quiet.window_activity, quiet.cursor),
            (first.window_activity, first.cursor),
            "the pane has written nothing"
        );
        fs::write(&tty, "\x1b[s\x1b[5;5Hredrawn\x1b[u").expect("the terminal is writable");
        wait_until("the redraw", DEADLINE, || server.run(&["capture-pane", "-p", "-t", &pane]).contains("redrawn"));
        let (wrote, clock) = look().await;
        assert_eq!(wrote.cursor, first.cursor);
        assert!(
            wrote.window_activity > first.window_activity && wrote.window_activity <= clock,
            "{wrote:?} at {clock}"
        );
    });
}

#[test]
fn a_large_paste_arrives_completely() {
    in_world(async |world| {
        let (server, notes) = (world.tmux("default"), world.home().join("notes"));
        let pane = server.new_session("work", &format!("stty raw -echo; exec cat >{}", notes.display()));
        wait_for_command(&server, &pane, "cat");
        let shell = shell(world).await;
        let tmux = shell.tmux(server.socket(), TIMEOUT);
        let line = "$(touch x) `id` 'q' \"d\" \\n \\ %s %% 日本語 -x ; # \u{1}\u{7f}\t\u{80}\n";
        let text = format!("-{}\n\n", line.repeat((1 << 20) / line.len()));
        tmux.type_into(guard(&server, &pane), PaneInput::Bracketed(&text)).await.expect("input is accepted");
        tmux.type_into(guard(&server, &pane), PaneInput::Keys(&[TmuxKey::Character('|')]))
            .await
            .expect("input is accepted");
        let read = wait_for("the last byte", Duration::from_secs(60), || {
            fs::read(&notes).ok().filter(|read| read.ends_with(b"|")).ok_or("not yet")
        });
        assert!(read == format!("{text}|").as_bytes(), "{} of {} bytes arrived", read.len(), text.len() + 1);
        assert_eq!(server.run(&["list-buffers"]), "", "no buffer remains");
        let other = PaneGuard { pane_pid: 1, ..guard(&server, &pane) };
        let refused = tmux.type_into(other, PaneInput::Paste("x")).await;
        assert_eq!(refused, Err(TypeError::Refused(TypeRefusal::OtherProcess)));
        assert!(!world.home().join("x").exists() && !world.dir().join("x").exists());
    });
}

#[test]
fn output_of_the_login_shell_is_ignored() {
    in_world(async |world| {
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let talk = ["-c", "echo 'Welcome!'; echo 'Last login' >&2; exec sh"];
        let shell = shell_of(world, "sh", &talk).await.expect("a shell");
        assert_eq!(shell.tmux(server.socket(), TIMEOUT).list().await.expect("tmux answers").rows.len(), 1);
    });
}

#[test]
fn a_hanging_server_does_not_affect_others() {
    in_world(async |world| {
        let (hangs, well) = (world.tmux("hangs"), world.tmux("well"));
        let pid: u32 = guard(&hangs, &hangs.new_session("a", "cat")).server_pid;
        well.new_session("b", "cat");
        let shell = shell(world).await;
        process::signal(pid, Signal::STOP);
        let servers = vec![hangs.socket().to_owned(), well.socket().to_owned()];
        let request = HostScanRequest { servers, ..HostScanRequest::default() };
        let seen = shell.scan(&request, Duration::from_secs(1)).await.expect("the shell answers");
        let outcomes: Vec<bool> = seen.servers.iter().map(|(_, listing)| listing.is_ok()).collect();
        assert_eq!(outcomes, [false, true]);
        assert!(matches!(seen.servers[0].1, Err(TmuxError::Timeout(_))), "{:?}", seen.servers[0].1);
        assert!(!shell.has_ended());
        process::signal(pid, Signal::CONT);
    });
}

#[test]
fn opening_a_silent_host_times_out() {
    in_world(async |world| {
        let mut command = world.command("sh");
        command.args(["-c", "read -r line; exec sleep 600"]);
        let opened = HostShell::open(Command::from(command), Duration::from_millis(500)).await;
        assert!(matches!(opened, Err(ShellError::Timeout { .. })), "{opened:?}");
        wait_until("the processes to end", DEADLINE, || world.processes().is_empty());
    });
}

/// A shell that has been stopped by a signal.
async fn stopped_shell(world: &TestWorld) -> HostShell {
    let id_file = world.home().join("id");
    let script = format!("echo $$ >{}; exec sh", id_file.display());
    let shell = shell_of(world, "sh", &["-c", &script]).await.expect("a shell");
    shell.ping(TIMEOUT).await.expect("it exists");
    let id: u32 = fs::read_to_string(&id_file).expect("written").trim().parse().expect("a pid");
    process::signal(id, Signal::STOP);
    shell
}

/// If the host is silent, the result of the tmux call is unknown.
#[test]
fn a_silent_host_makes_tmux_unreachable() {
    in_world(async |world| {
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let shell = stopped_shell(world).await;
        let listed = shell.tmux(server.socket(), Duration::from_millis(100)).list().await;
        assert!(matches!(listed, Err(TmuxError::Unreachable(_))), "{listed:?}");
    });
}

/// A scan of twenty servers may take longer than the timeout of one program. But the scan fails as soon as the host has
/// printed nothing for that time.
#[test]
fn a_scan_of_a_silent_host_ends_after_one_program_timeout() {
    in_world(async |world| {
        let shell = stopped_shell(world).await;
        let servers = (0..20).map(|n| world.dir().join(format!("no{n}"))).collect();
        let (request, began) = (HostScanRequest { servers, ..HostScanRequest::default() }, Instant::now());
        let seen = shell.scan(&request, Duration::from_millis(500)).await;
        assert!(matches!(seen, Err(ShellError::Timeout { answered: 0, .. })), "{seen:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(shell.has_ended() && shell.ping(TIMEOUT).await.is_err());
    });
}

#[test]
fn the_end_of_the_shell_is_reported_with_its_stderr() {
    in_world(async |world| {
        let ended = shell_of(world, "sh", &["-c", "echo 'no route to host' >&2; exit 255"]).await;
        assert_eq!(ended.err(), Some(ShellError::Closed("no route to host".into())));
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let shell = shell(world).await;
        let tmux = shell.tmux(server.socket(), TIMEOUT);
        tmux.list().await.expect("tmux answers");
        let [pid] = shells(world)[..] else { panic!("expected one shell") };
        process::signal(pid, Signal::KILL);
        assert!(matches!(tokio::time::timeout(DEADLINE, shell.ended()).await, Ok(ShellError::Closed(_))));
        assert!(matches!(tmux.list().await, Err(TmuxError::Unreachable(_))));
    });
}

/// If a caller gives up, the next caller must not get the answer to the abandoned request.
#[test]
fn an_abandoned_answer_is_not_given_to_the_next_caller() {
    in_world(async |world| {
        let (server, shell) = (world.tmux("default"), shell(world).await);
        server.new_session("work", "cat");
        for _ in 0..20 {
            let tmux = shell.tmux(server.socket(), TIMEOUT);
            let _ = tokio::time::timeout(Duration::from_micros(300), tmux.list()).await;
            assert!(shell.processes(TIMEOUT).await.expect("tmux answers").tree(std::process::id()).is_some());
            assert_eq!(tmux.list().await.expect("tmux answers").rows.len(), 1);
        }
    });
}

#[test]
fn only_the_expected_process_is_signalled() {
    in_world(async |world| {
        let shell = shell(world).await;
        let mut sleeper = world.command("sleep").arg("600").spawn().expect("the process starts");
        let found =
            shell.processes(TIMEOUT).await.expect("tmux answers").process(sleeper.id()).expect("the process runs");
        let other = agtmux_tmux::platform::ProcessInfo { start: found.start + 1, ..found.clone() };
        assert_eq!(shell.signal_process(&other, true, TIMEOUT).await, Ok(false));
        assert!(sleeper.try_wait().expect("a child").is_none(), "the other process was signalled");
        assert_eq!(shell.signal_process(&found, false, TIMEOUT).await, Ok(true));
        sleeper.wait().expect("the process ends");
        assert_eq!(shell.signal_process(&found, false, TIMEOUT).await, Ok(false), "it has ended");
    });
}

#[test]
fn closing_the_shell_leaves_nothing_behind() {
    in_world(async |world| {
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let shell = shell(world).await;
        assert_eq!(shells(world).len(), 1);
        scan(&shell, vec![server.socket().to_owned()]).await;
        drop(shell);
        // Sleep without blocking, because the runtime must run to close the shell.
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !shells(world).is_empty() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(shells(world), Vec::<u32>::new());
        assert_eq!(fs::read_dir(world.home()).expect("a home").count(), 0, "a file remains");
    });
}

/// tmux compares the deadline for typing with the host's clock, which can differ from the clock of this machine.
#[test]
fn deadlines_use_the_clock_of_the_host() {
    in_world(async |world| {
        let server = world.tmux("default");
        let pane = server.new_session("work", "exec cat");
        let bin = world.dir().join("wrong");
        fs::create_dir(&bin).expect("a new directory");
        let date = bin.join("date");
        fs::write(&date, "#!/bin/sh\necho $(($(/bin/date +%s) - 86400))\n").expect("written");
        fs::set_permissions(&date, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("permissions are set");
        let mut command = world.command("sh");
        let path = std::env::var("PATH").expect("PATH is set");
        command.env("PATH", format!("{}:{path}", bin.display()));
        let shell = HostShell::open(Command::from(command), TIMEOUT).await.expect("a shell");
        let offset = shell.clock_ahead_ms();
        assert!((-86_403_000..=-86_399_000).contains(&offset), "{offset} ms");
        let tmux = shell.tmux(server.socket(), TIMEOUT);
        let key = [TmuxKey::Character('x')];
        let late = tmux.type_into(guard(&server, &pane), PaneInput::Keys(&key)).await;
        assert_eq!(late, Err(TypeError::Refused(TypeRefusal::TooLate)), "the deadline has passed by the wrong clock");
        // A listing contains the server's own time.
        scan(&shell, vec![server.socket().to_owned()]).await;
        assert!(shell.clock_ahead_ms().abs() < 3000, "{} ms", shell.clock_ahead_ms());
        assert_eq!(tmux.type_into(guard(&server, &pane), PaneInput::Keys(&key)).await, Ok(()));
    });
}

/// The `ps` of busybox has few options. It prints neither start times nor foreground groups.
#[test]
fn a_busybox_host_returns_the_same_data() {
    let Some(busybox) = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| fs::exists(path).unwrap_or(false))
    else {
        return skip("busybox is not installed: run scripts/ensure-tools shells");
    };
    in_world(async |world| {
        let bin = world.dir().join("busybox");
        fs::create_dir(&bin).expect("a new directory");
        for name in ["sh", "ps", "grep", "timeout", "date", "id", "uname", "cat"] {
            std::os::unix::fs::symlink(busybox, bin.join(name)).expect("linked");
        }
        let tmux = world.command("sh").args(["-c", "command -v tmux"]).output().expect("sh runs").stdout;
        std::os::unix::fs::symlink(String::from_utf8_lossy(&tmux).trim(), bin.join("tmux")).expect("linked");
        let server = world.tmux("default");
        let pane = server.new_session("work", "exec cat");
        wait_for_command(&server, &pane, "cat");
        let mut command = world.command(bin.join("sh"));
        command.env("PATH", &bin);
        let shell = HostShell::open(Command::from(command), TIMEOUT).await.expect("a shell");
        let seen = scan(&shell, vec![server.socket().to_owned()]).await;
        assert!(seen.servers[0].1.is_ok(), "{:?}", seen.servers[0].1);
        let pid = guard(&server, &pane).pane_pid;
        let tree = seen.processes.expect("requested").tree(pid).expect("the process of the pane");
        let local = process_table(false).trees(&[pid]).expect("readable").pop().flatten().expect("the process runs");
        assert_eq!((tree.foreground_pgrp, tree.processes[0].start), (local.foreground_pgrp, local.processes[0].start));
        assert_eq!(tree.processes[0].argv, local.processes[0].argv);
        assert_eq!(shell.signal_process(&tree.processes[0], true, TIMEOUT).await, Ok(true));
    });
}
