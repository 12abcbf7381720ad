//! The same API on a TCP port, for browsers and scripts. The port is open only if it is configured, and requests need a
//! token or a login.

mod access;
mod auth;
mod connections;
pub(super) mod login;
mod pages;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tokio::net::TcpListener;

use super::{ServeContext, routes};

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
        hosts: &[String],
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let tokens = tokens::WebTokens::load_or_create(state_dir)?;
        let auth = Arc::new(WebAuth::new(listener.local_addr()?, tokens, hosts));
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
    let router = pages::add_to(routes::router(context))
        .merge(Router::new().route("/login/{code}", get(login::log_in)).with_state(auth.clone()))
        .layer(from_fn_with_state(auth, access::check));
    connections::serve(listener, router, stopping).await
}

/// The two ends of a TCP connection.
#[derive(Debug, Clone, Copy)]
struct TcpClient {
    from: SocketAddr,
    to: Option<SocketAddr>,
}
