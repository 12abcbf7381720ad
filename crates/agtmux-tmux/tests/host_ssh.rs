//! Hosts behind a real sshd, whose accounts have the login shells that people have. Whatever a session, a socket or a word is
//! called, it arrives as it is, and nothing of it is run.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_testkit::{TestHost, TestHostOptions, TestHosts, TestWorld, hosts_unavailable_reason, process, wait_until};
use agtmux_tmux::host::{HostScanRequest, HostShell, REMOTE_COMMAND, command_line};
use agtmux_tmux::ssh::{ConnectionSharing, SshClient};
use agtmux_tmux::{PaneGuard, PaneInput, TmuxServer};

const SOON: Duration = Duration::from_secs(20);
/// Long enough for a busy machine.
const PATIENT: Duration = Duration::from_secs(10);

const HOSTILE: [&str; 9] = [
    "-oProxyCommand=touch x",
    "a$(touch x)",
    "`touch x`",
    "a;touch x",
    "two\nlines",
    "it's \"quoted\" \\ $HOME",
    "ünïcode 日本",
    "#(touch x) #{pane_id}",
    "~ * ? [a] {a,b} !! %s",
];

/// A host for each login shell that is installed here.
fn in_every_shell(test: impl AsyncFn(&TestWorld, &TestHost, &SshClient)) {
    if let Some(why) = hosts_unavailable_reason() {
        eprintln!("skipped: {why}");
        return;
    }
    let hub = TestWorld::new();
    let hosts = TestHosts::for_hub(&hub);
    let paths = ["/bin/sh", "/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/busybox"].map(PathBuf::from);
    for shell in paths.iter().filter(|path| path.exists()) {
        let alias = shell.file_name().expect("a name").to_string_lossy().into_owned();
        let shell = if alias == "busybox" { busybox_shell(&hub, shell) } else { shell.clone() };
        let host = hosts.start(&alias, TestHostOptions { shell: Some(shell), ..TestHostOptions::default() });
        let ssh = SshClient::new(hub.bin().join("ssh"), &alias, hub.dir().join(format!("{alias}.sock")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(test(&hub, &host, &ssh));
        drop(runtime);
        for world in [&hub, host.world()] {
            assert!(!made_anywhere(world.dir()), "{alias}: something was run");
        }
    }
}

/// busybox is the shell that it is called as.
fn busybox_shell(hub: &TestWorld, busybox: &Path) -> PathBuf {
    let link = hub.dir().join("ash");
    std::os::unix::fs::symlink(busybox, &link).expect("linked");
    link
}

fn made_anywhere(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name() == "x" || (is_dir && made_anywhere(&entry.path()))
    })
}

async fn open(ssh: &SshClient) -> HostShell {
    HostShell::open(ssh.command(ConnectionSharing::Shared, REMOTE_COMMAND), PATIENT).await.expect("a shell there")
}

#[test]
fn sessions_and_servers_of_any_name_are_seen_and_typed_into() {
    in_every_shell(async |_, host, ssh| {
        let notes = host.world().home().join("notes");
        for (n, name) in HOSTILE.iter().enumerate() {
            let server = host.tmux("default");
            // tmux itself would run what is in a name that it is given for a new session.
            let as_it_is = name.replace('#', "##");
            server.run(&["new-session", "-d", "-s", &as_it_is, "-n", &as_it_is, "cat"]);
            // A socket cannot have a slash in its name, and some names are too long.
            if n < 4 {
                host.tmux(&name.replace(' ', "")).new_session("work", "cat");
            }
        }
        let server = host.tmux("default");
        let pane = server.new_session("reader", &format!("stty raw -echo; exec cat >{}", notes.display()));
        wait_until("the reader", SOON, || {
            server.run(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]) == "cat"
        });
        let shell = open(ssh).await;
        let find = HostScanRequest { sockets: true, ..HostScanRequest::default() };
        let servers = shell.scan(&find, PATIENT).await.expect("it answers").sockets.expect("asked for");
        assert_eq!(servers.len(), 5, "{servers:?}");
        let list = HostScanRequest { servers, ..HostScanRequest::default() };
        for (socket, listing) in shell.scan(&list, PATIENT).await.expect("it answers").servers {
            let here = TmuxServer::new("tmux", &socket, PATIENT).list().await.expect("it answers");
            let there = listing.unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
            assert_eq!(there.listing, here, "as it is seen on the host itself");
        }
        let facts = server.run(&["display-message", "-p", "-t", &pane, "#{pid} #{start_time} #{pane_pid}"]);
        let facts: Vec<u32> = facts.split(' ').map(|fact| fact.parse().expect("a number")).collect();
        let guard = PaneGuard {
            server_pid: facts[0],
            server_start: facts[1].into(),
            pane: pane.trim_start_matches('%').parse().expect("a number"),
            pane_pid: facts[2],
        };
        let words = HOSTILE.join("\n");
        // Once as long as a text may be.
        let times = if ssh.destination() == "sh" { (1 << 20) / words.len() } else { 1 };
        let text = words.repeat(times) + "\n\n|";
        let tmux = shell.tmux(server.socket(), PATIENT);
        tmux.type_into(guard, PaneInput::Bracketed(&text)).await.expect("typed");
        wait_until("all of it", SOON, || fs::read(&notes).is_ok_and(|read| read == text.as_bytes()));
    });
}

/// What is given to ssh is read by the login shell there.
#[test]
fn any_words_arrive_as_they_are() {
    in_every_shell(async |_, _, ssh| {
        let hostile = HOSTILE.iter().map(|word| word.as_bytes().to_vec());
        let more: [&[u8]; 5] = [b"", b"'", b"\\", b"\xff\xc3\x28 \x80", b"\n\n"];
        let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let noise = (0..24).map(|_| {
            let length = next() % 40;
            (0..length).map(|_| u8::try_from(next() % 255 + 1).expect("a byte")).collect::<Vec<u8>>()
        });
        let words: Vec<Vec<u8>> = hostile.chain(more.map(<[u8]>::to_vec)).chain(noise).collect();
        let printf = [OsStr::new("printf"), OsStr::new("<%s>")];
        let line = command_line(printf.into_iter().chain(words.iter().map(|word| OsStr::from_bytes(word))));
        let mut command = ssh.command(ConnectionSharing::Dedicated, OsString::from_vec(line));
        let output = tokio::time::timeout(SOON, command.output()).await.expect("in time").expect("ssh runs");
        let expected: Vec<u8> = words.iter().flat_map(|word| [b"<", word.as_slice(), b">"].concat()).collect();
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(&output.stdout), shown(&expected), "{}: {}", ssh.destination(), shown(&output.stderr));
    });
}

#[test]
fn nothing_is_left_on_a_host_and_its_tmux_shows_nothing_of_ours() {
    in_every_shell(async |_, host, ssh| {
        let server = host.tmux("default");
        server.new_session("work", "cat");
        let looks = [
            ["list-sessions", "-F", "#{session_name} #{session_attached} #{session_last_attached}"],
            ["list-buffers", "-F", "#{buffer_name}"],
            ["list-clients", "-F", "#{client_name}"],
            ["show-hooks", "-g", ""],
        ];
        let seen = || looks.map(|words| server.run(&words[..if words[2].is_empty() { 2 } else { 3 }]));
        let files = || fs::read_dir(host.world().home()).expect("a home").flatten().map(|e| e.file_name()).collect();
        let (before, files_before): (_, BTreeSet<OsString>) = (seen(), files());
        // By ssh they are called as the login shell was told to call them.
        let shells = || {
            let all = host.world().processes().into_iter();
            all.filter(|pid| process::argv(*pid) == [b"sh"]).count()
        };
        let shell = open(ssh).await;
        for _ in 0..3 {
            let sweep = HostScanRequest {
                sockets: true,
                servers: vec![server.socket().to_owned()],
                processes: true,
                ..HostScanRequest::default()
            };
            shell.scan(&sweep, PATIENT).await.expect("it answers");
        }
        assert_eq!(seen(), before);
        assert_eq!(shells(), 1);
        drop(shell);
        let deadline = tokio::time::Instant::now() + SOON;
        while shells() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(shells(), 0, "a process is left");
        assert_eq!(files(), files_before);
    });
}
