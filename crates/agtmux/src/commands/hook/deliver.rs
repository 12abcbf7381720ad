//! Sends one request to the daemon, without an async runtime and with a deadline.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use agtmux_api::TMUX_HEADER;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::input::variable;

/// The time limit for the whole request. A healthy daemon needs about 2 ms.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Posts the event to the daemon. Every status except a server error counts as success, because an event that the
/// daemon rejected need not be sent again.
pub(super) fn post(socket: &Path, body: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    let mut stream = open(socket)?;
    write(&mut stream, head(body.len(), variable("TMUX").as_deref()).as_bytes(), deadline)?;
    write(&mut stream, body, deadline)?;
    if read_is_accepted(&mut stream, deadline)? {
        Ok(())
    } else {
        Err(io::Error::other("the daemon could not store the event"))
    }
}

/// Connects without blocking. A blocking connect to a stopped daemon would hang if the daemon's backlog is full.
pub(super) fn open(socket: &Path) -> io::Result<UnixStream> {
    let meta = fs::metadata(socket)?;
    if !meta.file_type().is_socket() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a socket of this user"));
    }
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    connect(&fd, &SocketAddrUnix::new(socket)?)?;
    rustix::io::ioctl_fionbio(&fd, false)?;
    Ok(UnixStream::from(fd))
}

fn head(length: usize, tmux: Option<&str>) -> String {
    let is_plain = |value: &&str| value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let tmux = tmux.filter(is_plain).map(|value| format!("{TMUX_HEADER}: {value}\r\n")).unwrap_or_default();
    format!(
        "POST /v1/events HTTP/1.1\r\nhost: agtmux\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n{tmux}\r\n"
    )
}

fn write(stream: &mut UnixStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(time_left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the status line of the HTTP response, which tells whether the daemon accepted the event.
fn read_is_accepted(stream: &mut UnixStream, deadline: Instant) -> io::Result<bool> {
    let (mut answer, mut buffer) = (Vec::new(), [0; 512]);
    loop {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if let Some(is_accepted) = is_accepted(&answer)? {
            return Ok(is_accepted);
        }
    }
}

/// True if the daemon has stored the event or rejected it permanently. False after a temporary error of the daemon.
/// `None` while the status line is incomplete.
fn is_accepted(bytes: &[u8]) -> io::Result<Option<bool>> {
    const START: &[u8] = b"HTTP/1.";
    let known = bytes.len().min(START.len());
    if bytes[..known] != START[..known] {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not HTTP"));
    }
    let Some(status) = bytes.get(9..12) else { return Ok(None) };
    match std::str::from_utf8(status).ok().and_then(|status| status.parse::<u16>().ok()) {
        // A temporary error of the daemon. If the event was stored after all, its dedupe key prevents a duplicate.
        Some(500..) => Ok(Some(false)),
        Some(_) => Ok(Some(true)),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "an HTTP response without a status")),
    }
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_status_code_is_used() {
        assert_eq!(is_accepted(b"HTTP/1.1 202 Accepted\r\n").ok(), Some(Some(true)));
        assert_eq!(is_accepted(b"HTTP/1.1 400").ok(), Some(Some(true)));
        for fault in ["500", "502", "503", "504", "599"] {
            let line = format!("HTTP/1.1 {fault} ");
            assert_eq!(is_accepted(line.as_bytes()).ok(), Some(Some(false)), "{line}");
        }
        assert_eq!(is_accepted(b"HTTP/1.1 20").ok(), Some(None));
        assert_eq!(is_accepted(b"").ok(), Some(None));
        assert!(is_accepted(b"SSH-2.0").is_err() && is_accepted(b"HTTP/1.1 abc").is_err());
    }
}
