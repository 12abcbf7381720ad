//! The same API for a browser and for scripts: on a TCP port of this machine, only when asked for, and only with a token.

mod access;
mod connections;
mod door;
pub(super) mod login;
mod pages;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tokio::net::TcpListener;

use super::{Context, routes};

pub(crate) use door::{Access, Door};

/// A port that is open.
pub(crate) struct Port {
    listener: TcpListener,
    door: Arc<Door>,
}

impl Port {
    pub(crate) async fn open(
        address: SocketAddr,
        state_dir: &std::path::Path,
        hosts: &[String],
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let tokens = tokens::Tokens::in_dir(state_dir)?;
        let door = Arc::new(Door::new(listener.local_addr()?, tokens, hosts));
        Ok(Self { listener, door })
    }

    pub(crate) fn door(&self) -> Arc<Door> {
        self.door.clone()
    }
}

/// Serves until `stopping` turns true.
pub(crate) async fn serve(port: Port, context: Context) -> std::io::Result<()> {
    let stopping = context.stopping.clone();
    let Port { listener, door } = port;
    let router = pages::add_to(routes::router(context))
        .merge(Router::new().route("/login/{code}", get(login::enter)).with_state(door.clone()))
        .layer(from_fn_with_state(door, access::check));
    connections::serve(listener, router, stopping).await
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
struct Client {
    from: SocketAddr,
    to: Option<SocketAddr>,
}
