//! Hosts behind a real sshd with different login shells. Session names, sockets and words arrive unchanged, and no part
//! of them is executed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_testkit::{TestHost, TestHostOptions, TestHosts, TestWorld, process, skip, skip_without_hosts, wait_until};
use agtmux_tmux::host::{HostScanRequest, HostShell, REMOTE_COMMAND, command_line};
use agtmux_tmux::ssh::{ConnectionSharing, SshClient};
use agtmux_tmux::{PaneGuard, PaneInput, TmuxServer};

const DEADLINE: Duration = Duration::from_secs(20);
/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(10);

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

/// Runs the test on one host for each installed login shell.
fn in_every_shell(test: impl AsyncFn(&TestWorld, &TestHost, &SshClient)) {
    if skip_without_hosts() {
        return;
    }
    let hub = TestWorld::new();
    let hosts = TestHosts::for_hub(&hub);
    let paths = ["/bin/sh", "/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/busybox"].map(PathBuf::from);
    let (installed, missing): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.exists());
    for shell in missing {
        skip(&format!("no {}: run scripts/ensure-tools shells", shell.display()));
    }
    for shell in installed {
        let alias = shell.file_name().expect("a name").to_string_lossy().into_owned();
        let shell = if alias == "busybox" { busybox_shell(&hub, shell) } else { shell.clone() };
        let host = hosts.start(&alias, TestHostOptions { shell: Some(shell), ..TestHostOptions::default() });
        let ssh = SshClient::new(hub.bin().join("ssh"), &alias, hub.dir().join(format!("{alias}.sock")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(test(&hub, &host, &ssh));
        drop(runtime);
        for world in [&hub, host.world()] {
            assert!(!marker_file_exists(world.dir()), "{alias}: a word was executed");
        }
    }
}

/// busybox selects its applet by the name of the link.
fn busybox_shell(hub: &TestWorld, busybox: &Path) -> PathBuf {
    let link = hub.dir().join("ash");
    std::os::unix::fs::symlink(busybox, &link).expect("linked");
    link
}

fn marker_file_exists(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name() == "x" || (is_dir && marker_file_exists(&entry.path()))
    })
}

async fn open(ssh: &SshClient) -> HostShell {
    HostShell::open(ssh.command(ConnectionSharing::Shared, REMOTE_COMMAND), TIMEOUT).await.expect("a shell on the host")
}

#[test]
fn sessions_and_servers_with_any_name_are_listed_and_accept_input() {
    in_every_shell(async |_, host, ssh| {
        let notes = host.world().home().join("notes");
        for (n, name) in HOSTILE.iter().enumerate() {
            let server = host.tmux("default");
            // tmux expands formats in the name of a new session.
            let as_it_is = name.replace('#', "##");
            server.run(&["new-session", "-d", "-s", &as_it_is, "-n", &as_it_is, "cat"]);
            // Socket names cannot contain a slash, and their length is limited.
            if n < 4 {
                host.tmux(&name.replace(' ', "")).new_session("work", "cat");
            }
        }
        let server = host.tmux("default");
        let pane = server.new_session("reader", &format!("stty raw -echo; exec cat >{}", notes.display()));
        wait_until("the reader", DEADLINE, || {
            server.run(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]) == "cat"
        });
        let shell = open(ssh).await;
        let find = HostScanRequest { sockets: true, ..HostScanRequest::default() };
        let servers = shell.scan(&find, TIMEOUT).await.expect("tmux answers").sockets.expect("requested");
        assert_eq!(servers.len(), 5, "{servers:?}");
        let list = HostScanRequest { servers, ..HostScanRequest::default() };
        for (socket, listing) in shell.scan(&list, TIMEOUT).await.expect("tmux answers").servers {
            let direct = TmuxServer::new("tmux", &socket, TIMEOUT).list().await.expect("tmux answers");
            let scanned = listing.unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
            assert_eq!(scanned.listing, direct, "the same listing as on the host");
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
        // One shell gets the longest allowed text.
        let times = if ssh.destination() == "sh" { (1 << 20) / words.len() } else { 1 };
        let text = words.repeat(times) + "\n\n|";
        let tmux = shell.tmux(server.socket(), TIMEOUT);
        tmux.type_into(guard, PaneInput::Bracketed(&text)).await.expect("input is accepted");
        wait_until("the whole text", DEADLINE, || fs::read(&notes).is_ok_and(|read| read == text.as_bytes()));
    });
}

/// ssh sends the words as one line, and the login shell of the host splits the line into words again.
#[test]
fn any_words_arrive_unchanged() {
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
        let output =
            tokio::time::timeout(DEADLINE, command.output()).await.expect("before the timeout").expect("ssh runs");
        let expected: Vec<u8> = words.iter().flat_map(|word| [b"<", word.as_slice(), b">"].concat()).collect();
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(&output.stdout), shown(&expected), "{}: {}", ssh.destination(), shown(&output.stderr));
    });
}

#[test]
fn a_scan_leaves_no_traces_on_the_host() {
    in_every_shell(async |_, host, ssh| {
        let server = host.tmux("default");
        server.new_session("work", "cat");
        let queries = [
            ["list-sessions", "-F", "#{session_name} #{session_attached} #{session_last_attached}"],
            ["list-buffers", "-F", "#{buffer_name}"],
            ["list-clients", "-F", "#{client_name}"],
            ["show-hooks", "-g", ""],
        ];
        let seen = || queries.map(|words| server.run(&words[..if words[2].is_empty() { 2 } else { 3 }]));
        let files = || fs::read_dir(host.world().home()).expect("a home").flatten().map(|e| e.file_name()).collect();
        let (before, files_before): (_, BTreeSet<OsString>) = (seen(), files());
        // The login shell executes `sh` without arguments.
        let shells = || {
            let all = host.world().processes().into_iter();
            all.filter(|pid| process::argv(*pid) == [b"sh"]).count()
        };
        let shell = open(ssh).await;
        for _ in 0..3 {
            let request = HostScanRequest {
                sockets: true,
                servers: vec![server.socket().to_owned()],
                processes: true,
                ..HostScanRequest::default()
            };
            shell.scan(&request, TIMEOUT).await.expect("tmux answers");
        }
        assert_eq!(seen(), before);
        assert_eq!(shells(), 1);
        drop(shell);
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while shells() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(shells(), 0, "a process remains");
        assert_eq!(files(), files_before);
    });
}
