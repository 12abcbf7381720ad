//! Connections over TCP. Anybody on this machine can make one before it is known who it is: there are only so many, and
//! whoever does not come to the point is dropped.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::TcpClient;
use crate::serve::listener::{StallGuard, pause_after_accept_error};

/// Many dashboards with many streams each.
const MAX_CONNECTIONS: usize = 512;
/// A request is said within this time, also the next one on a connection that is kept.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Of what was said and not yet understood.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Serves until `stopping` turns true, then until everybody has left.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (mut connections, told) = (JoinSet::new(), stopping.clone());
    loop {
        tokio::select! {
            (stream, from, place) = accept(&listener, &room) => {
                connections.spawn(serve_connection(stream, from, router.clone(), told.clone(), place));
            }
            Some(_) = connections.join_next() => {}
            _ = stopping.wait_for(|stop| *stop) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    let place = room.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, from)) => return (stream, from, place),
            Err(error) => pause_after_accept_error(&error).await,
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    from: SocketAddr,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    _place: Option<OwnedSemaphorePermit>,
) {
    let client = TcpClient { from, to: stream.local_addr().ok() };
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(client));
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let connection = builder.serve_connection(TokioIo::new(StallGuard::new(stream)), service).with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = stopping.wait_for(|stop| *stop) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}
