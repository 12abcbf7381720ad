//! Serves the API of the unix socket also on a TCP port, for browsers and scripts. The port is open only if it is
//! configured. Requests need a token. A client on this machine must run as the user of the daemon or as a configured
//! proxy user.

mod access;
mod auth;
mod connections;
pub(super) mod login;
mod pages;
mod peers;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use agtmux_api::config::WebConfig;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;

use super::{ServeContext, router};

pub(super) use access::refuse_read_only;
pub(crate) use auth::{AccessLevel, WebAuth};

/// An open TCP port.
pub(crate) struct WebPort {
    listener: TcpListener,
    auth: Arc<WebAuth>,
}

impl WebPort {
    pub(crate) async fn open(
        address: SocketAddr,
        state_dir: &std::path::Path,
        config: &WebConfig,
    ) -> std::io::Result<Self> {
        let proxy_uids = peers::user_ids(&config.proxy_users)?;
        let listener = TcpListener::bind(address).await?;
        let tokens = tokens::WebTokens::load_or_create(state_dir)?;
        let auth = Arc::new(WebAuth::new(listener.local_addr()?, tokens, &config.hosts, proxy_uids));
        Ok(Self { listener, auth })
    }

    pub(crate) fn auth(&self) -> Arc<WebAuth> {
        self.auth.clone()
    }
}

/// Serves until `stopping` turns true.
pub(crate) async fn serve(port: WebPort, context: ServeContext) -> std::io::Result<()> {
    let stopping = context.stopping.clone();
    let WebPort { listener, auth } = port;
    let router = pages::add_to(router::router(context)).layer(from_fn_with_state(auth.clone(), access::check));
    connections::serve(listener, auth, router, stopping).await
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
