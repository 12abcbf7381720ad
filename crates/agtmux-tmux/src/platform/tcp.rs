use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;

/// The process at the other end of a local connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpPeer {
    Process(u32),
    /// The process exists but agtmux cannot identify it. It belongs to another user, it forbids inspection as sshd
    /// does, or the system does not report which process has the connection.
    Hidden,
    /// The peer has closed its end.
    Gone,
}

pub fn tcp_peer(local: SocketAddr, remote: SocketAddr) -> TcpPeer {
    let tables: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    if tables.is_empty() {
        return TcpPeer::Hidden;
    }
    let mut lines = tables.iter().flat_map(|table| table.lines().skip(1));
    match lines.find_map(|line| inode_of(line, local, remote)).filter(|inode| *inode != 0) {
        Some(inode) => socket_owner(inode).map_or(TcpPeer::Hidden, TcpPeer::Process),
        None => TcpPeer::Gone,
    }
}

/// The inode of the socket that this line describes. `None` if the line describes another connection. The fields are
/// `sl local remote state queues timer retransmits uid timeout inode …`.
fn inode_of(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local_address, remote_address) = (address(fields.next()?)?, address(fields.next()?)?);
    let same = |one: SocketAddr, other: SocketAddr| {
        one.ip().to_canonical() == other.ip().to_canonical() && one.port() == other.port()
    };
    (same(local_address, local) && same(remote_address, remote)).then(|| fields.nth(6)?.parse().ok())?
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
            drop(stream);
            assert_eq!(tcp_peer(local_address, remote_address), TcpPeer::Gone, "{address}");
        }
    }

    #[test]
    fn an_unknown_connection_is_gone() {
        let unused_address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(tcp_peer(unused_address(1), unused_address(2)), TcpPeer::Gone);
    }
}
