//! Serves the API of the unix socket also on a TCP port, for browsers and scripts. The port is open only if it is
//! configured, or after `agtmux web`. Requests need a token. A client on this machine must run as the user of the daemon
//! or as a configured proxy user.

mod access;
mod auth;
mod connections;
mod dashboard;
pub(super) mod login;
mod logins;
mod pages;
mod peers;
mod port;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;

use super::{ServeContext, router};

pub(super) use access::refuse_read_only;
pub(crate) use auth::{AccessLevel, WebAuth};
pub(crate) use port::WebPort;

/// The API and the files of the page, behind the checks of the port.
fn routes(context: ServeContext, auth: Arc<WebAuth>) -> Router {
    pages::add_to(router::router(context)).layer(from_fn_with_state(auth, access::check))
}

/// The two ends of a TCP connection.
#[derive(Debug, Clone, Copy)]
struct TcpClient {
    from: SocketAddr,
    to: Option<SocketAddr>,
}

impl TcpClient {
    /// Whether the client runs on this machine. A local client can use any address of this machine. An address belongs
    /// to this machine if a socket can be bound to it.
    fn is_local(self) -> bool {
        let from = self.from.ip().to_canonical();
        let is_to = |to: SocketAddr| to.ip().to_canonical().is_loopback() || to.ip().to_canonical() == from;
        let is_own = || std::net::UdpSocket::bind(SocketAddr::new(from, 0)).is_ok();
        from.is_loopback() || self.to.is_none_or(is_to) || is_own()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_this_machine_is_local_from_every_address() {
        let client = |from: &str, to: &str| {
            let address = |text: &str| text.parse().expect("an address");
            TcpClient { from: address(from), to: Some(address(to)) }
        };
        for (from, to) in [
            ("127.0.0.1:1", "127.0.0.1:7777"),
            ("127.0.0.2:1", "192.0.2.1:7777"),
            ("192.0.2.1:1", "127.0.0.1:7777"),
            ("192.0.2.1:1", "192.0.2.1:7777"),
            ("[::1]:1", "[::1]:7777"),
            ("[::ffff:127.0.0.2]:1", "[::ffff:192.0.2.1]:7777"),
            ("192.0.2.1:1", "[::ffff:192.0.2.1]:7777"),
        ] {
            assert!(client(from, to).is_local(), "{from} to {to}");
        }
        assert!(!client("203.0.113.2:1", "192.0.2.1:7777").is_local());
        assert!(TcpClient { from: ([203, 0, 113, 2], 1).into(), to: None }.is_local());
    }
}
