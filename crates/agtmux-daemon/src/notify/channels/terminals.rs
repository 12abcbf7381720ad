//! The channels that use the terminals of attached tmux clients on this host.
//!
//! The bell and the escape sequences are written to the terminal itself, because tmux passes neither on to clients that
//! show another session. Each is one short write, so that it does not mix with what tmux writes at the same time.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use agtmux_api::wire::Notice;
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use agtmux_tmux::{ClientTerminal, TmuxServer};
use futures_util::future::join_all;
use rustix::fs::OFlags;
use tokio::task::spawn_blocking;

use super::DeliveryResult;
use crate::notify::message::one_line;
use crate::observe::Discovery;

/// The most characters of an escape sequence. Terminals ignore longer ones, and a short write is not divided.
const MAX_SEQUENCE_CHARS: usize = 400;

const NO_CLIENT: &str = "no tmux client is attached";

/// Shows the notice in the status line of every attached client.
pub(super) async fn show_message(discovery: &Discovery, notice: &Notice, time: Duration) -> DeliveryResult {
    let text = one_line(notice);
    let clients = clients(discovery).await;
    let shown = clients.iter().map(|(server, client)| server.show_message(&client.name, &text, Some(time)));
    one_success(join_all(shown).await.into_iter().map(|shown| shown.map_err(|error| error.to_string())))
}

/// Writes bytes to the terminal of every attached client.
pub(super) async fn write(discovery: &Discovery, bytes: &[u8]) -> DeliveryResult {
    let clients = clients(discovery).await;
    let writes = clients.into_iter().map(|(_, client)| {
        let bytes = bytes.to_vec();
        spawn_blocking(move || write_to_terminal(&client.tty, &bytes))
    });
    one_success(join_all(writes).await.into_iter().map(|written| match written {
        Ok(written) => written.map_err(|error| format!("cannot write to a terminal: {error}")),
        Err(error) => Err(error.to_string()),
    }))
}

/// The escape sequence that makes a terminal show this notice. The text contains no control characters, because
/// notices are sanitized.
pub(super) fn sequence(code: u32, notice: &Notice) -> Vec<u8> {
    let cut = |text: &str| text.chars().take(MAX_SEQUENCE_CHARS).collect::<String>();
    let body = match code {
        777 => format!("777;notify;{};{}", cut(&notice.title.replace(';', ",")), cut(&one_line(notice))),
        99 => format!("99;i={};{}", notice.notice_id, cut(&one_line(notice))),
        // Some terminals read a number after `9;` as a command. A notice begins with the name of an agent.
        _ => format!("9;{}", cut(&one_line(notice))),
    };
    format!("\x1b]{body}\x1b\\").into_bytes()
}

/// The attached clients of all tmux servers on this host.
async fn clients(discovery: &Discovery) -> Vec<(TmuxServer, ClientTerminal)> {
    let servers = discovery.servers().into_iter().filter(|server| server.target == TargetName::LOCAL);
    let servers = servers.filter_map(|server| {
        let key = ServerKey { target: TargetName::local(), server: ServerName::new(server.server) };
        discovery.server_access(&key).map(|access| access.tmux)
    });
    let lists = servers.map(|tmux| async move {
        let clients = tmux.client_terminals().await.unwrap_or_default();
        clients.into_iter().map(|client| (tmux.clone(), client)).collect::<Vec<_>>()
    });
    join_all(lists).await.into_iter().flatten().collect()
}

/// The path comes from the client, so it must be checked: only a terminal of this user is written to. A terminal that
/// does not take the bytes at once, because its output is stopped, is skipped.
fn write_to_terminal(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let mut terminal = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let data = terminal.metadata()?;
    let is_own = data.uid() == rustix::process::geteuid().as_raw();
    if !data.file_type().is_char_device() || !is_own || !rustix::termios::isatty(&terminal) {
        return Err(io::Error::other("it is not a terminal of this user"));
    }
    terminal.write_all(bytes)
}

/// A notice is delivered if one terminal took it.
fn one_success(results: impl Iterator<Item = DeliveryResult>) -> DeliveryResult {
    let mut last = Err(NO_CLIENT.to_owned());
    for result in results {
        if result.is_ok() {
            return result;
        }
        last = result;
    }
    last
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::notify::message::NoticeWriter;

    #[test]
    fn a_sequence_has_one_beginning_and_one_end() {
        let test = NoticeWriter { zone: TimeZone::UTC }.test("0a1b", Timestamp::UNIX_EPOCH);
        let notice = Notice { title: "claude; asks".into(), text: "x".repeat(2_000), ..test };
        for (code, start) in [(9, "9;claude; asks · x"), (99, "99;i=0a1b;claude"), (777, "777;notify;claude, asks;")] {
            let bytes = sequence(code, &notice);
            let text = String::from_utf8(bytes).expect("text");
            assert!(text.starts_with(&format!("\x1b]{start}")) && text.ends_with("\x1b\\"), "{text:?}");
            assert_eq!(text.matches('\x1b').count(), 2);
            assert!(text.len() < 2_000, "one write is not divided");
        }
    }

    #[test]
    fn only_a_terminal_is_written_to() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        std::fs::write(&file, "kept").expect("written");
        for path in [file.as_path(), Path::new("/dev/null"), &dir.path().join("missing")] {
            assert!(write_to_terminal(path, b"\x07").is_err(), "{}", path.display());
        }
        assert_eq!(std::fs::read(&file).expect("readable"), b"kept");
    }
}
