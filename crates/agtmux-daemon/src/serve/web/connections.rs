//! TCP connections. Every local user can open one before it is authenticated, so their number and the time for a
//! request are limited.

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

/// Enough for many dashboards with many streams each.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take to send a request, including the next one on a kept connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Serves until `stopping` turns true, then until all connections are closed.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (mut connections, connection_stopping) = (JoinSet::new(), stopping.clone());
    loop {
        tokio::select! {
            (stream, from, permit) = accept(&listener, &slots) => {
                connections.spawn(serve_connection(stream, from, router.clone(), connection_stopping.clone(), permit));
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
    slots: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    let permit = slots.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, from)) => return (stream, from, permit),
            Err(error) => pause_after_accept_error(&error).await,
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    from: SocketAddr,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    _permit: Option<OwnedSemaphorePermit>,
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
    let result = tokio::select! {
        result = connection.as_mut() => Some(result),
        _ = stopping.wait_for(|stop| *stop) => None,
    };
    let result = match result {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection failed");
    }
}
