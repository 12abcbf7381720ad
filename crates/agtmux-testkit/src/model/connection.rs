//! The connection of a client. With this handle, the mock model can reset the connection.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use rustix::net::sockopt::set_socket_linger;
use tokio::net::TcpListener;

/// A second handle of a client's connection.
#[derive(Debug, Clone)]
pub(super) struct ClientConnection(Option<Arc<OwnedFd>>);

impl ClientConnection {
    /// Makes the kernel reset the connection when it is closed. The client then gets an error instead of the end of the
    /// data.
    pub(super) fn reset_when_closed(&self) {
        if let Some(socket) = &self.0 {
            set_socket_linger(socket, Some(Duration::ZERO)).expect("an open socket accepts the option");
        }
    }
}

impl Connected<IncomingStream<'_, TcpListener>> for ClientConnection {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self(stream.io().as_fd().try_clone_to_owned().ok().map(Arc::new))
    }
}
