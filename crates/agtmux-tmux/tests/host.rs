//! A host that has only tmux and a shell, asked through one shell that stays open. The shell is one of this machine: what ssh
//! does in between is tried elsewhere.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_testkit::{TestWorld, process, wait_for, wait_until};
use agtmux_tmux::host::{HostScan, HostScanRequest, HostShell, ShellError};
use agtmux_tmux::platform::process_table;
use agtmux_tmux::{PaneGuard, PaneInput, TmuxError, TmuxKey, TypeError, TypeRefusal};
use rustix::process::Signal;
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(20);
/// Long enough for a busy machine.
const PATIENT: Duration = Duration::from_secs(10);

/// The runtime ends before the world does: what it has started is gone by then.
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
    HostShell::open(Command::from(command), PATIENT).await
}

/// Those that read what they are to run, as ours does and those of panes do not.
fn shells(world: &TestWorld) -> Vec<u32> {
    world.processes().into_iter().filter(|pid| process::argv(*pid) == [b"sh"]).collect()
}

/// A pane's first process is a copy of its server until it has become what it is to run.
fn becomes(server: &agtmux_testkit::TestTmuxServer, pane: &str, command: &str) {
    wait_until("the pane's program", SOON, || {
        server.run(&["display-message", "-p", "-t", pane, "#{pane_current_command}"]) == command
    });
}

async fn sweep(shell: &HostShell, servers: Vec<PathBuf>) -> HostScan {
    let sweep = HostScanRequest { sockets: true, servers, processes: true, ..HostScanRequest::default() };
    shell.scan(&sweep, PATIENT).await.expect("it answers")
}

fn guard(server: &agtmux_testkit::TestTmuxServer, pane: &str) -> PaneGuard {
    let facts = server.run(&["display-message", "-p", "-t", pane, "#{pid} #{start_time} #{pane_pid}"]);
    let facts: Vec<i64> = facts.split(' ').map(|fact| fact.parse().expect("a number")).collect();
    let pid = |n: i64| u32::try_from(n).expect("a pid");
    let pane = pane.trim_start_matches('%').parse().expect("a number");
    PaneGuard { server_pid: pid(facts[0]), server_start: facts[1], pane, pane_pid: pid(facts[2]) }
}

#[test]
fn everything_on_a_host_is_seen_in_one_question() {
    in_world(async |world| {
        let (one, two) = (world.tmux("default"), world.tmux("a$(touch x);'b"));
        let pane = one.new_session("work", "exec cat");
        two.new_session("`id`", "sleep 600");
        becomes(&one, &pane, "cat");
        let shell = shell(world).await;
        let found = sweep(&shell, Vec::new()).await.sockets.expect("asked for");
        assert_eq!(found.len(), 2, "{found:?}");
        let seen = sweep(&shell, found.clone()).await;
        for (socket, listing) in &seen.servers {
            let listing = listing.as_ref().unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
            assert_eq!((listing.listing.rows.len(), listing.activity.len()), (1, 1));
            let there = agtmux_tmux::TmuxServer::new("tmux", socket, PATIENT).list().await.expect("it answers");
            assert_eq!(listing.listing, there, "as it is seen from here");
        }
        let pid = guard(&one, &pane).pane_pid;
        let tree = seen.processes.expect("asked for").tree(pid).expect("the pane's program");
        let here = process_table(false).trees(&[pid]).pop().flatten().expect("it runs");
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
        assert_eq!(facts(&tree), facts(&here));
        assert!(!world.home().join("x").exists() && !world.dir().join("x").exists());
    });
}

/// What tells that a pane wrote, where nobody can watch its terminal. A redraw in place moves neither the cursor nor the
/// history; the window's activity moves with it, in whole seconds.
#[test]
fn a_pane_that_redraws_in_place_is_noticed() {
    in_world(async |world| {
        let server = world.tmux("default");
        let pane = server.new_session("work", "printf '\\033[?1049h'; exec cat");
        let tty = server.run(&["display-message", "-p", "-t", &pane, "#{pane_tty}"]);
        let shell = shell(world).await;
        let look = async || {
            let seen = sweep(&shell, vec![server.socket().to_owned()]).await.servers.remove(0).1.expect("it answers");
            (seen.activity.into_values().next().expect("one pane"), seen.clock.expect("it tells the time"))
        };
        let (first, clock) = look().await;
        wait_until("another second", SOON, || {
            server.run(&["display-message", "-p", "%s"]).parse::<i64>().is_ok_and(|now| now > clock + 1)
        });
        let (quiet, _) = look().await;
        assert_eq!(
            (quiet.window_activity, quiet.cursor),
            (first.window_activity, first.cursor),
            "it has written nothing"
        );
        fs::write(&tty, "\x1b[s\x1b[5;5Hredrawn\x1b[u").expect("its terminal");
        wait_until("the redraw", SOON, || server.run(&["capture-pane", "-p", "-t", &pane]).contains("redrawn"));
        let (wrote, clock) = look().await;
        assert_eq!(wrote.cursor, first.cursor);
        assert!(
            wrote.window_activity > first.window_activity && wrote.window_activity <= clock,
            "{wrote:?} at {clock}"
        );
    });
}

#[test]
fn a_large_paste_arrives_to_the_last_byte() {
    in_world(async |world| {
        let (server, notes) = (world.tmux("default"), world.home().join("notes"));
        let pane = server.new_session("work", &format!("stty raw -echo; exec cat >{}", notes.display()));
        becomes(&server, &pane, "cat");
        let shell = shell(world).await;
        let tmux = shell.tmux(server.socket(), PATIENT);
        let line = "$(touch x) `id` 'q' \"d\" \\n \\ %s %% 日本語 -x ; # \u{1}\u{7f}\t\u{80}\n";
        let text = format!("-{}\n\n", line.repeat((1 << 20) / line.len()));
        tmux.type_into(guard(&server, &pane), PaneInput::Bracketed(&text)).await.expect("typed");
        tmux.type_into(guard(&server, &pane), PaneInput::Keys(&[TmuxKey::Character('|')])).await.expect("typed");
        let read = wait_for("the end of it", Duration::from_secs(60), || {
            fs::read(&notes).ok().filter(|read| read.ends_with(b"|")).ok_or("not yet")
        });
        assert!(read == format!("{text}|").as_bytes(), "{} bytes of {} came", read.len(), text.len() + 1);
        assert_eq!(server.run(&["list-buffers"]), "", "no buffer is left behind");
        let other = PaneGuard { pane_pid: 1, ..guard(&server, &pane) };
        let refused = tmux.type_into(other, PaneInput::Paste("x")).await;
        assert_eq!(refused, Err(TypeError::Refused(TypeRefusal::OtherProcess)));
        assert!(!world.home().join("x").exists() && !world.dir().join("x").exists());
    });
}

/// What a login shell prints before ours has begun is nobody's answer.
#[test]
fn a_talkative_login_is_no_answer() {
    in_world(async |world| {
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let talk = ["-c", "echo 'Welcome!'; echo 'Last login' >&2; exec sh"];
        let shell = shell_of(world, "sh", &talk).await.expect("a shell");
        assert_eq!(shell.tmux(server.socket(), PATIENT).list().await.expect("it answers").rows.len(), 1);
    });
}

#[test]
fn a_server_that_hangs_costs_its_own_answer_only() {
    in_world(async |world| {
        let (hangs, well) = (world.tmux("hangs"), world.tmux("well"));
        let pid: u32 = guard(&hangs, &hangs.new_session("a", "cat")).server_pid;
        well.new_session("b", "cat");
        let shell = shell(world).await;
        process::signal(pid, Signal::STOP);
        let servers = vec![hangs.socket().to_owned(), well.socket().to_owned()];
        let sweep = HostScanRequest { servers, ..HostScanRequest::default() };
        let seen = shell.scan(&sweep, Duration::from_secs(1)).await.expect("the shell answers");
        let outcomes: Vec<bool> = seen.servers.iter().map(|(_, listing)| listing.is_ok()).collect();
        assert_eq!(outcomes, [false, true]);
        assert!(matches!(seen.servers[0].1, Err(TmuxError::Timeout(_))), "{:?}", seen.servers[0].1);
        assert!(!shell.has_ended());
        process::signal(pid, Signal::CONT);
    });
}

#[test]
fn a_host_that_does_not_answer_is_given_up_and_not_waited_for() {
    in_world(async |world| {
        let mut command = world.command("sh");
        command.args(["-c", "read -r line; exec sleep 600"]);
        let opened = HostShell::open(Command::from(command), Duration::from_millis(500)).await;
        assert!(matches!(opened, Err(ShellError::Timeout { .. })), "{opened:?}");
        wait_until("its end", SOON, || world.processes().is_empty());
    });
}

/// A shell that answers nothing any more.
async fn stopped_shell(world: &TestWorld) -> HostShell {
    let id_file = world.home().join("id");
    let script = format!("echo $$ >{}; exec sh", id_file.display());
    let shell = shell_of(world, "sh", &["-c", &script]).await.expect("a shell");
    shell.ping(PATIENT).await.expect("it is there");
    let id: u32 = fs::read_to_string(&id_file).expect("written").trim().parse().expect("a pid");
    process::signal(id, Signal::STOP);
    shell
}

/// It is not its tmux that does not answer: nobody knows what that did.
#[test]
fn no_word_of_a_host_is_no_word_about_its_tmux() {
    in_world(async |world| {
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let shell = stopped_shell(world).await;
        let listed = shell.tmux(server.socket(), Duration::from_millis(100)).list().await;
        assert!(matches!(listed, Err(TmuxError::Unreachable(_))), "{listed:?}");
    });
}

/// However much it was asked: what is asked of twenty servers may take long, but not without a word.
#[test]
fn a_host_that_falls_silent_is_given_up_as_soon_as_one_program_should_have_answered() {
    in_world(async |world| {
        let shell = stopped_shell(world).await;
        let servers = (0..20).map(|n| world.dir().join(format!("no{n}"))).collect();
        let (sweep, began) = (HostScanRequest { servers, ..HostScanRequest::default() }, Instant::now());
        let seen = shell.scan(&sweep, Duration::from_millis(500)).await;
        assert!(matches!(seen, Err(ShellError::Timeout { answered: 0, .. })), "{seen:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(shell.has_ended() && shell.ping(PATIENT).await.is_err());
    });
}

#[test]
fn its_end_is_told_at_once_with_its_last_words() {
    in_world(async |world| {
        let ended = shell_of(world, "sh", &["-c", "echo 'no route to host' >&2; exit 255"]).await;
        assert_eq!(ended.err(), Some(ShellError::Closed("no route to host".into())));
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let shell = shell(world).await;
        let tmux = shell.tmux(server.socket(), PATIENT);
        tmux.list().await.expect("it answers");
        let [pid] = shells(world)[..] else { panic!("one shell is ours") };
        process::signal(pid, Signal::KILL);
        assert!(matches!(tokio::time::timeout(SOON, shell.ended()).await, Ok(ShellError::Closed(_))));
        assert!(matches!(tmux.list().await, Err(TmuxError::Unreachable(_))));
    });
}

/// Whoever stops waiting must not leave an answer behind for the next.
#[test]
fn an_answer_that_nobody_waits_for_is_not_given_to_the_next() {
    in_world(async |world| {
        let (server, shell) = (world.tmux("default"), shell(world).await);
        server.new_session("work", "cat");
        for _ in 0..20 {
            let tmux = shell.tmux(server.socket(), PATIENT);
            let _ = tokio::time::timeout(Duration::from_micros(300), tmux.list()).await;
            assert!(shell.processes(PATIENT).await.expect("it answers").tree(std::process::id()).is_some());
            assert_eq!(tmux.list().await.expect("it answers").rows.len(), 1);
        }
    });
}

#[test]
fn only_the_process_that_is_meant_is_struck() {
    in_world(async |world| {
        let shell = shell(world).await;
        let mut sleeper = world.command("sleep").arg("600").spawn().expect("it starts");
        let found = shell.processes(PATIENT).await.expect("it answers").process(sleeper.id()).expect("it runs");
        let stranger = agtmux_tmux::platform::ProcessInfo { start: found.start + 1, ..found.clone() };
        assert_eq!(shell.signal_process(&stranger, true, PATIENT).await, Ok(false));
        assert!(sleeper.try_wait().expect("a child").is_none(), "it was struck");
        assert_eq!(shell.signal_process(&found, false, PATIENT).await, Ok(true));
        sleeper.wait().expect("it ends");
        assert_eq!(shell.signal_process(&found, false, PATIENT).await, Ok(false), "it has ended");
    });
}

#[test]
fn nothing_is_left_when_the_shell_is_let_go() {
    in_world(async |world| {
        let server = world.tmux("default");
        server.new_session("work", "cat");
        let shell = shell(world).await;
        assert_eq!(shells(world).len(), 1);
        sweep(&shell, vec![server.socket().to_owned()]).await;
        drop(shell);
        // The farewell is said by the runtime.
        let deadline = tokio::time::Instant::now() + SOON;
        while !shells(world).is_empty() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(shells(world), Vec::<u32>::new());
        assert_eq!(fs::read_dir(world.home()).expect("a home").count(), 0, "no file either");
    });
}

/// What is typed is typed before a time by the clock of its server, which may show another day than ours.
#[test]
fn the_clock_of_a_host_is_its_own() {
    in_world(async |world| {
        let server = world.tmux("default");
        let pane = server.new_session("work", "exec cat");
        let bin = world.dir().join("wrong");
        fs::create_dir(&bin).expect("a new directory");
        let date = bin.join("date");
        fs::write(&date, "#!/bin/sh\necho $(($(/bin/date +%s) - 86400))\n").expect("written");
        fs::set_permissions(&date, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("set");
        let mut command = world.command("sh");
        let path = std::env::var("PATH").expect("there is one");
        command.env("PATH", format!("{}:{path}", bin.display()));
        let shell = HostShell::open(Command::from(command), PATIENT).await.expect("a shell");
        let behind = shell.clock_ahead_ms();
        assert!((-86_403_000..=-86_399_000).contains(&behind), "{behind} ms");
        let tmux = shell.tmux(server.socket(), PATIENT);
        let key = [TmuxKey::Character('x')];
        let late = tmux.type_into(guard(&server, &pane), PaneInput::Keys(&key)).await;
        assert_eq!(
            late,
            Err(TypeError::Refused(TypeRefusal::TooLate)),
            "by the clock that was believed it is too late"
        );
        // A listing tells the time at the server itself.
        sweep(&shell, vec![server.socket().to_owned()]).await;
        assert!(shell.clock_ahead_ms().abs() < 3000, "{} ms", shell.clock_ahead_ms());
        assert_eq!(tmux.type_into(guard(&server, &pane), PaneInput::Keys(&key)).await, Ok(()));
    });
}

/// busybox has a `ps` that knows few words, and neither when a process began nor who has its terminal.
#[test]
fn a_host_with_busybox_only_tells_as_much() {
    let Some(busybox) = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| fs::exists(path).unwrap_or(false))
    else {
        eprintln!("skipped: busybox is not installed: run scripts/ensure-tools shells");
        return;
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
        becomes(&server, &pane, "cat");
        let mut command = world.command(bin.join("sh"));
        command.env("PATH", &bin);
        let shell = HostShell::open(Command::from(command), PATIENT).await.expect("a shell");
        let seen = sweep(&shell, vec![server.socket().to_owned()]).await;
        assert!(seen.servers[0].1.is_ok(), "{:?}", seen.servers[0].1);
        let pid = guard(&server, &pane).pane_pid;
        let tree = seen.processes.expect("asked for").tree(pid).expect("the pane's program");
        let here = process_table(false).trees(&[pid]).pop().flatten().expect("it runs");
        assert_eq!((tree.foreground_pgrp, tree.processes[0].start), (here.foreground_pgrp, here.processes[0].start));
        assert_eq!(tree.processes[0].argv, here.processes[0].argv);
        assert_eq!(shell.signal_process(&tree.processes[0], true, PATIENT).await, Ok(true));
    });
}
