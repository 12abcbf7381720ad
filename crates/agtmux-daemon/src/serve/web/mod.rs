//! The same API for a browser and for scripts: on a TCP port of this machine, only when asked for, and only with a token.

mod access;
mod door;
pub(super) mod login;
mod pages;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::serve::IncomingStream;
use tokio::net::{TcpListener, TcpStream};

use super::listener::{Guarded, wait_for_room};
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
    let mut stopping = context.stopping.clone();
    let until = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let Port { listener, door } = port;
    let router = pages::add_to(routes::router(context))
        .merge(Router::new().route("/login/{code}", get(login::enter)).with_state(door.clone()))
        .layer(from_fn_with_state(door, access::check));
    let service = router.into_make_service_with_connect_info::<Client>();
    axum::serve(Patient(listener), service).with_graceful_shutdown(until).await
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
struct Client {
    from: SocketAddr,
    to: Option<SocketAddr>,
}

/// Drops whoever stops reading.
struct Patient(TcpListener);

impl axum::serve::Listener for Patient {
    type Io = Guarded<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded<TcpStream>, SocketAddr) {
        loop {
            match self.0.accept().await {
                Ok((stream, from)) => return (Guarded::new(stream), from),
                Err(error) => wait_for_room(&error).await,
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Patient>> for Client {
    fn connect_info(stream: IncomingStream<'_, Patient>) -> Self {
        Self { from: *stream.remote_addr(), to: stream.io().local_addr() }
    }
}
