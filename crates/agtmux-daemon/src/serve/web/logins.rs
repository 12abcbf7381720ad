//! The login links that can still be used, and the browsers that are logged in.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agtmux_api::wire::WebLoginItem;
use agtmux_core::sanitize;
use jiff::Timestamp;
use tokio::sync::watch;

use super::AccessLevel;
use super::tokens::random_token;

/// How long a login link stays valid. Users open a link right after they request it.
const LINK_LIFETIME: Duration = Duration::from_secs(120);
/// The longest time for which a browser stays logged in.
pub(super) const MAX_LOGIN_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// The maximum number of unused login links. The same limit applies to logins.
pub(super) const MAX_LOGINS: usize = 256;
/// The maximum number of columns of a browser's name.
const MAX_BROWSER_COLUMNS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Logins {
    pub(super) links: HashMap<String, LoginLink>,
    logins: HashMap<String, BrowserLogin>,
}

#[derive(Debug)]
pub(super) struct LoginLink {
    access: AccessLevel,
    expires: Instant,
    /// When the login that this link creates expires. `None`: after the longest lifetime of a login.
    login_expires: Option<Instant>,
}

#[derive(Debug)]
struct BrowserLogin {
    id: String,
    access: AccessLevel,
    browser: String,
    created_at: Timestamp,
    last_seen_at: Timestamp,
    expires_at: Timestamp,
    expires: Instant,
    /// Turns true when the login is revoked. The streams of the browser then end.
    revoked: watch::Sender<bool>,
}

/// Tells when a login ends, so that its streams can end, too.
#[derive(Debug, Clone)]
pub(super) struct LoginEnd {
    expires: Instant,
    revoked: watch::Receiver<bool>,
}

impl LoginEnd {
    /// Returns when the login has expired or is revoked.
    pub(super) async fn wait(mut self) {
        tokio::select! {
            _ = self.revoked.wait_for(|revoked| *revoked) => {}
            () = tokio::time::sleep_until(self.expires.into()) => {}
        }
    }
}

impl Logins {
    /// Creates a code for a login link. The code logs in one browser and works only once.
    pub(super) fn create_link(&mut self, access: AccessLevel, login_expires: Option<Instant>) -> String {
        self.remove_expired();
        let (code, expires) = (random_token(), Instant::now() + LINK_LIFETIME);
        make_room(&mut self.links, |link| link.expires);
        self.links.insert(code.clone(), LoginLink { access, expires, login_expires });
        code
    }

    /// Exchanges the code for a token.
    pub(super) fn redeem_link(&mut self, code: &str, browser: &str) -> Option<(String, AccessLevel)> {
        self.remove_expired();
        let LoginLink { access, login_expires, .. } = self.links.remove(code)?;
        let (now, wall_now) = (Instant::now(), Timestamp::now());
        let longest = now + MAX_LOGIN_LIFETIME;
        let expires = login_expires.map_or(longest, |end| end.min(longest));
        let (id, token) = (random_token()[..8].to_owned(), random_token());
        make_room(&mut self.logins, |login| login.expires);
        let login = BrowserLogin {
            id,
            access,
            browser: sanitize::for_column(browser, MAX_BROWSER_COLUMNS),
            created_at: wall_now,
            last_seen_at: wall_now,
            expires_at: wall_now + expires.saturating_duration_since(now),
            expires,
            revoked: watch::channel(false).0,
        };
        self.logins.insert(token.clone(), login);
        Some((token, access))
    }

    /// The access of a logged-in browser. Notes that the browser has sent a request.
    pub(super) fn access(&mut self, token: &str) -> Option<(AccessLevel, LoginEnd)> {
        self.remove_expired();
        // The keys are random, so the timing of the lookup reveals nothing.
        let login = self.logins.get_mut(token)?;
        login.last_seen_at = Timestamp::now();
        Some((login.access, LoginEnd { expires: login.expires, revoked: login.revoked.subscribe() }))
    }

    /// The logins, the latest first.
    pub(super) fn list(&mut self) -> Vec<WebLoginItem> {
        self.remove_expired();
        let mut items: Vec<WebLoginItem> = self.logins.values().map(BrowserLogin::item).collect();
        items.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
        items
    }

    /// Ends a login and its streams. Returns false if there is no such login.
    pub(super) fn revoke(&mut self, id: &str) -> bool {
        let Some(token) = self.logins.iter().find(|(_, login)| login.id == id).map(|(token, _)| token.clone()) else {
            return false;
        };
        if let Some(login) = self.logins.remove(&token) {
            login.revoked.send_replace(true);
        }
        true
    }

    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.links.retain(|_, link| link.expires > now);
        self.logins.retain(|_, login| login.expires > now);
    }
}

impl BrowserLogin {
    fn item(&self) -> WebLoginItem {
        WebLoginItem {
            id: self.id.clone(),
            read_only: self.access == AccessLevel::ReadOnly,
            browser: self.browser.clone(),
            created_at: self.created_at,
            last_seen_at: self.last_seen_at,
            expires_at: self.expires_at,
        }
    }
}

/// If the map is full, removes the entry that expires first.
fn make_room<T>(map: &mut HashMap<String, T>, expires: impl Fn(&T) -> Instant) {
    if map.len() >= MAX_LOGINS
        && let Some(oldest) = map.iter().min_by_key(|(_, entry)| expires(entry)).map(|(key, _)| key.clone())
    {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_links_is_limited() {
        let mut logins = Logins::default();
        let first = logins.create_link(AccessLevel::Full, None);
        for _ in 0..MAX_LOGINS {
            logins.create_link(AccessLevel::Full, None);
        }
        assert_eq!(logins.redeem_link(&first, "b"), None);
        assert_eq!(logins.links.len(), MAX_LOGINS);
    }

    #[test]
    fn a_login_ends_with_the_time_that_its_link_gives() {
        let mut logins = Logins::default();
        let code = logins.create_link(AccessLevel::Full, Some(Instant::now()));
        let (token, _) = logins.redeem_link(&code, "b").expect("a valid code");
        assert!(logins.access(&token).is_none());
        let code = logins.create_link(AccessLevel::Full, Some(Instant::now() + 2 * MAX_LOGIN_LIFETIME));
        let (token, _) = logins.redeem_link(&code, "b").expect("a valid code");
        let (_, end) = logins.access(&token).expect("logged in");
        assert!(end.expires <= Instant::now() + MAX_LOGIN_LIFETIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_login_ends_its_streams_and_gives_no_access() {
        let mut logins = Logins::default();
        let code = logins.create_link(AccessLevel::ReadOnly, None);
        let (token, _) = logins.redeem_link(&code, "Browser\u{1b}[31m").expect("a valid code");
        let (_, end) = logins.access(&token).expect("logged in");
        let [login] = &logins.list()[..] else { panic!("one login") };
        assert_eq!((login.read_only, login.browser.as_str()), (true, "Browser\\x1b[31m"));
        assert!(!token.contains(&login.id), "the id reveals nothing of the token");
        assert!(!logins.revoke("00000000") && logins.revoke(&login.id));
        assert!(logins.access(&token).is_none());
        let before = tokio::time::Instant::now();
        end.wait().await;
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
