use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;

/// The process at the other end of a local connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpPeer {
    Process(u32),
    /// agtmux cannot identify the process. Either it belongs to another user, or it forbids inspection as sshd does, or
    /// the system does not report which process has the connection.
    Hidden,
    /// The peer has closed its end.
    Gone,
}

/// The user at the other end of a local connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpPeerUser {
    Uid(u32),
    /// The system reports the users of connections, but this connection has no user any more: the peer has closed its
    /// end.
    Unknown,
    /// This system does not report the users of connections.
    NotReported,
}

pub fn tcp_peer(local: SocketAddr, remote: SocketAddr) -> TcpPeer {
    match find_socket(local, remote) {
        None => TcpPeer::Hidden,
        Some(None) => TcpPeer::Gone,
        Some(Some(socket)) => socket_owner(socket.inode).map_or(TcpPeer::Hidden, TcpPeer::Process),
    }
}

/// The user who created the socket at the other end of this connection. Both ends must be on this machine.
pub fn tcp_peer_user(local: SocketAddr, remote: SocketAddr) -> TcpPeerUser {
    match find_socket(local, remote) {
        // On Linux, a missing table means that /proc is not available, so the user is unknown. Other systems have no
        // such table.
        None if cfg!(target_os = "linux") => TcpPeerUser::Unknown,
        None => TcpPeerUser::NotReported,
        Some(None) => TcpPeerUser::Unknown,
        Some(Some(socket)) => TcpPeerUser::Uid(socket.uid),
    }
}

/// A row of the kernel's table of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SocketRow {
    uid: u32,
    inode: u64,
}

/// Finds the socket with these addresses. The outer `None` means that the kernel shows no table of sockets. The inner
/// `None` means that the socket is not in the table, or that no process has it open.
fn find_socket(local: SocketAddr, remote: SocketAddr) -> Option<Option<SocketRow>> {
    let tables: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    if tables.is_empty() {
        return None;
    }
    let mut lines = tables.iter().flat_map(|table| table.lines().skip(1));
    // A socket without an inode is closed. The kernel reports it as a socket of root.
    Some(lines.find_map(|line| socket_of(line, local, remote)).filter(|socket| socket.inode != 0))
}

/// The socket in one line of the kernel's table. `None` if the line describes another connection. The fields of a line
/// are `sl local remote state queues timer retransmits uid timeout inode …`.
fn socket_of(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<SocketRow> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local_address, remote_address) = (address(fields.next()?)?, address(fields.next()?)?);
    let same = |one: SocketAddr, other: SocketAddr| {
        one.ip().to_canonical() == other.ip().to_canonical() && one.port() == other.port()
    };
    if !same(local_address, local) || !same(remote_address, remote) {
        return None;
    }
    let uid = fields.nth(4)?.parse().ok()?;
    Some(SocketRow { uid, inode: fields.nth(1)?.parse().ok()? })
}

/// Parses `ADDRESS:PORT` in the kernel's hexadecimal format. The address consists of words of four bytes in the byte
/// order of the machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for n in 0..4 {
                bytes[n * 4..n * 4 + 4].copy_from_slice(&word(n * 8)?);
            }
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

fn socket_owner(inode: u64) -> Option<u32> {
    let name = format!("socket:[{inode}]");
    let us = rustix::process::geteuid().as_raw();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ours = processes.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == us));
    ours.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let holds = |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == name.as_str());
        files.into_iter().any(holds)
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_local_process_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let remote_address = listener.local_addr().expect("an address");
            let stream = TcpStream::connect(remote_address).expect("connected");
            let local_address = stream.local_addr().expect("an address");
            assert_eq!(tcp_peer(local_address, remote_address), TcpPeer::Process(std::process::id()), "{address}");
            let us = rustix::process::geteuid().as_raw();
            assert_eq!(tcp_peer_user(local_address, remote_address), TcpPeerUser::Uid(us), "{address}");
            drop(stream);
            assert_eq!(tcp_peer_user(local_address, remote_address), TcpPeerUser::Unknown, "{address}");
            assert_eq!(tcp_peer(local_address, remote_address), TcpPeer::Gone, "{address}");
        }
    }

    #[test]
    fn the_user_and_the_inode_are_read_from_a_row() {
        let row =
            "   4: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 123456 1 0";
        let (local, remote) = (SocketAddr::from(([127, 0, 0, 1], 8080)), SocketAddr::from(([127, 0, 0, 1], 50000)));
        let on_little_endian = cfg!(target_endian = "little").then_some(SocketRow { uid: 1000, inode: 123_456 });
        assert_eq!(socket_of(row, local, remote), on_little_endian);
        assert_eq!(socket_of(row, remote, local), None);
    }

    #[test]
    fn an_unknown_connection_is_gone() {
        let unused_address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(tcp_peer(unused_address(1), unused_address(2)), TcpPeer::Gone);
    }
}
