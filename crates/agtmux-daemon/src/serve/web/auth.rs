//! Access control of the web port: users, tokens, login links and browser sessions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use agtmux_api::wire::WebLoginItem;

use super::logins::{LoginEnd, Logins};
use super::tokens::WebTokens;

/// What an authenticated client may do.
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
    /// Other users whose processes may connect.
    proxy_uids: Vec<u32>,
    logins: Mutex<Logins>,
}

/// The access of one request, and the end of the login that gives this access. A token for scripts has no end.
pub(super) struct RequestAccess {
    pub(super) level: AccessLevel,
    pub(super) end: Option<LoginEnd>,
}

impl WebAuth {
    /// `proxy_hosts` are the host names of a proxy that the user runs in front of this port.
    pub(super) fn new(address: SocketAddr, tokens: WebTokens, proxy_hosts: &[String], proxy_uids: Vec<u32>) -> Self {
        let port = address.port();
        let local_hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        // An unspecified address such as 0.0.0.0 is not a host name.
        let own_address = Some(address.to_string()).filter(|_| !address.ip().is_unspecified());
        let hosts =
            local_hosts.into_iter().chain(own_address).chain(proxy_hosts.iter().map(|host| host.to_lowercase()));
        Self { address, tokens, hosts: hosts.collect(), proxy_uids, logins: Mutex::default() }
    }

    /// Whether processes of this user may connect.
    pub(super) fn admits(&self, uid: u32) -> bool {
        uid == rustix::process::geteuid().as_raw() || self.proxy_uids.contains(&uid)
    }

    /// The address at which a browser on this host reaches the port.
    pub(super) fn browser_address(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// Whether `host` is a name of this server. A foreign host name that resolves to this address is rejected, to
    /// prevent DNS rebinding.
    pub(super) fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether pages of this origin may send requests.
    pub(super) fn is_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.is_host(host))
    }

    /// The access that a bearer token gives. The token is one of the tokens for scripts, or the token of a browser that
    /// is logged in.
    pub(super) fn access(&self, token: &str) -> Option<RequestAccess> {
        let of_script = self.tokens.access(token).map(|level| RequestAccess { level, end: None });
        let of_browser = || {
            let (level, end) = self.lock_logins().access(token)?;
            Some(RequestAccess { level, end: Some(end) })
        };
        of_script.or_else(of_browser)
    }

    /// Creates a code for a login link. The login that this link creates ends at `login_expires`.
    pub(super) fn create_link(&self, access: AccessLevel, login_expires: Option<Instant>) -> String {
        self.lock_logins().create_link(access, login_expires)
    }

    /// Exchanges the code for a token. `browser` is what the browser calls itself.
    pub(super) fn redeem_link(&self, code: &str, browser: &str) -> Option<(String, AccessLevel)> {
        self.lock_logins().redeem_link(code, browser)
    }

    pub(super) fn list_logins(&self) -> Vec<WebLoginItem> {
        self.lock_logins().list()
    }

    pub(super) fn revoke(&self, id: &str) -> bool {
        self.lock_logins().revoke(id)
    }

    fn lock_logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web_auth() -> WebAuth {
        web_auth_at("127.0.0.1:7777")
    }

    fn web_auth_at(address: &str) -> WebAuth {
        let dir = tempfile::tempdir().expect("a directory");
        let tokens = WebTokens::load_or_create(dir.path()).expect("created");
        WebAuth::new(address.parse().expect("an address"), tokens, &["agents.example".into()], vec![4321])
    }

    #[test]
    fn an_unspecified_address_is_not_a_host_name() {
        for (address, browser_address) in [("0.0.0.0:7777", "127.0.0.1:7777"), ("[::]:7777", "[::1]:7777")] {
            let web_auth = web_auth_at(address);
            assert!(!web_auth.is_host(address) && web_auth.is_host(browser_address), "{address}");
            assert_eq!(web_auth.browser_address().to_string(), browser_address);
        }
        assert_eq!(web_auth().browser_address(), web_auth().address);
    }

    #[test]
    fn only_known_names_are_accepted_as_hosts_and_origins() {
        let web_auth = web_auth();
        for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST:7777", "[::1]:7777", "agents.example"] {
            assert!(web_auth.is_host(host), "{host}");
            assert!(web_auth.is_origin(&format!("http://{host}")), "{host}");
        }
        for host in ["", "127.0.0.1", "localhost", "localhost:80", "evil.com", "localhost.evil:7777", "0.0.0.0:7777"] {
            assert!(!web_auth.is_host(host), "{host}");
        }
        for origin in
            ["null", "", "http://evil.com", "localhost:7777", "ftp://localhost:7777", "http://localhost:7777.evil"]
        {
            assert!(!web_auth.is_origin(origin), "{origin}");
        }
    }

    #[test]
    fn a_link_logs_in_one_browser_only() {
        let web_auth = web_auth();
        let code = web_auth.create_link(AccessLevel::ReadOnly, None);
        let (token, access) = web_auth.redeem_link(&code, "b").expect("a valid code");
        assert_eq!(web_auth.redeem_link(&code, "b"), None);
        assert_eq!(access, AccessLevel::ReadOnly);
        assert_eq!(web_auth.access(&token).map(|access| access.level), Some(AccessLevel::ReadOnly));
        assert!(web_auth.access(&code).is_none() && web_auth.access("").is_none());
    }

    #[test]
    fn only_the_own_user_and_proxy_users_may_connect() {
        let us = rustix::process::geteuid().as_raw();
        assert!(web_auth().admits(us) && web_auth().admits(4321) && !web_auth().admits(us + 1));
    }
}
