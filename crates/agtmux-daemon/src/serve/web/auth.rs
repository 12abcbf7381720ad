//! Who is let in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::tokens::{WebTokens, random_token};

/// A link is for the one who has just asked for it.
const LINK_LIFETIME: Duration = Duration::from_secs(120);
/// A browser that was let in comes back for this long.
const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Nobody opens more links or browsers at a time.
const MAX_LOGINS: usize = 256;

/// What one who was let in may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLevel {
    Full,
    ReadOnly,
}

#[derive(Debug)]
pub(crate) struct WebAuth {
    address: SocketAddr,
    tokens: WebTokens,
    hosts: Vec<String>,
    logins: Mutex<Logins>,
}

#[derive(Debug, Default)]
struct Logins {
    links: HashMap<String, (AccessLevel, Instant)>,
    sessions: HashMap<String, (AccessLevel, Instant)>,
}

impl WebAuth {
    /// `more` are names under which a proxy of the user's is known.
    pub(super) fn new(address: SocketAddr, tokens: WebTokens, more: &[String]) -> Self {
        let port = address.port();
        let ours = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        // 0.0.0.0 is every address of this machine and no name of it.
        let named = Some(address.to_string()).filter(|_| !address.ip().is_unspecified());
        let hosts = ours.into_iter().chain(named).chain(more.iter().map(|host| host.to_lowercase()));
        Self { address, tokens, hosts: hosts.collect(), logins: Mutex::default() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that a browser of this machine uses.
    pub(super) fn browser_address(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// A name that a page elsewhere has made to lead here is not one of ours.
    pub(super) fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether a page from there may ask anything.
    pub(super) fn is_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.is_host(host))
    }

    pub(super) fn access_by_token(&self, token: &str) -> Option<AccessLevel> {
        self.tokens.access(token)
    }

    pub(super) fn access_by_session(&self, session: &str) -> Option<AccessLevel> {
        // A random key in a map: what looking it up tells about others is nothing that can be guessed from.
        let mut open = self.lock_logins();
        open.remove_expired();
        open.sessions.get(session).map(|(access, _)| *access)
    }

    /// A code that lets one browser in, once.
    pub(super) fn create_link(&self, access: AccessLevel) -> String {
        let code = random_token();
        let mut open = self.lock_logins();
        open.remove_expired();
        insert_bounded(&mut open.links, code.clone(), (access, Instant::now() + LINK_LIFETIME));
        code
    }

    /// The session that the code is good for.
    pub(super) fn redeem_link(&self, code: &str) -> Option<String> {
        let mut open = self.lock_logins();
        open.remove_expired();
        let (access, _) = open.links.remove(code)?;
        let session = random_token();
        insert_bounded(&mut open.sessions, session.clone(), (access, Instant::now() + SESSION_LIFETIME));
        Some(session)
    }

    fn lock_logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Logins {
    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.links.retain(|_, (_, until)| *until > now);
        self.sessions.retain(|_, (_, until)| *until > now);
    }
}

/// The one that would end first makes room.
fn insert_bounded(into: &mut HashMap<String, (AccessLevel, Instant)>, key: String, value: (AccessLevel, Instant)) {
    if into.len() >= MAX_LOGINS
        && let Some(oldest) = into.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone())
    {
        into.remove(&oldest);
    }
    into.insert(key, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> WebAuth {
        door_at("127.0.0.1:7777")
    }

    fn door_at(address: &str) -> WebAuth {
        let dir = tempfile::tempdir().expect("a directory");
        let tokens = WebTokens::load_or_create(dir.path()).expect("made");
        WebAuth::new(address.parse().expect("an address"), tokens, &["agents.example".into()])
    }

    #[test]
    fn every_address_of_the_machine_is_no_name_of_it() {
        for (address, reached_at) in [("0.0.0.0:7777", "127.0.0.1:7777"), ("[::]:7777", "[::1]:7777")] {
            let door = door_at(address);
            assert!(!door.is_host(address) && door.is_host(reached_at), "{address}");
            assert_eq!(door.browser_address().to_string(), reached_at);
        }
        assert_eq!(door().browser_address(), door().address());
    }

    #[test]
    fn only_our_own_names_are_hosts_and_origins() {
        let door = door();
        for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST:7777", "[::1]:7777", "agents.example"] {
            assert!(door.is_host(host), "{host}");
            assert!(door.is_origin(&format!("http://{host}")), "{host}");
        }
        for host in ["", "127.0.0.1", "localhost", "localhost:80", "evil.com", "localhost.evil:7777", "0.0.0.0:7777"] {
            assert!(!door.is_host(host), "{host}");
        }
        for origin in
            ["null", "", "http://evil.com", "localhost:7777", "ftp://localhost:7777", "http://localhost:7777.evil"]
        {
            assert!(!door.is_origin(origin), "{origin}");
        }
    }

    #[test]
    fn a_link_is_good_for_one_browser() {
        let door = door();
        let code = door.create_link(AccessLevel::ReadOnly);
        let session = door.redeem_link(&code).expect("good");
        assert_eq!(door.redeem_link(&code), None);
        assert_eq!(door.access_by_session(&session), Some(AccessLevel::ReadOnly));
        assert_eq!(door.access_by_session(&code), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let door = door();
        let first = door.create_link(AccessLevel::Full);
        for _ in 0..MAX_LOGINS {
            door.create_link(AccessLevel::Full);
        }
        assert_eq!(door.redeem_link(&first), None);
        assert_eq!(door.lock_logins().links.len(), MAX_LOGINS);
    }
}
