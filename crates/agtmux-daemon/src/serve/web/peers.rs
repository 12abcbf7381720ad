//! Which users of this machine may connect to the port.

use std::io;
use std::time::Duration;

use agtmux_api::config::ProxyUser;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_tmux::platform::{self, TcpPeerUser};
use nix::unistd::User;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, sink};

use super::{TcpClient, WebAuth};

/// Limits for the response to a refused client: how long the client may take to read the response, and how much of its
/// request the daemon reads meanwhile. If the daemon closed the connection with unread data, the response could be
/// lost.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_UNREAD_BYTES: u64 = 64 << 10;

/// The user ids of the configured proxy users.
pub(super) fn user_ids(users: &[ProxyUser]) -> io::Result<Vec<u32>> {
    let id_of = |user: &ProxyUser| match user {
        ProxyUser::Uid(uid) => Ok(*uid),
        ProxyUser::Name(name) => match User::from_name(name) {
            Ok(Some(user)) => Ok(user.uid.as_raw()),
            Ok(None) => Err(invalid(format!("web.proxy_users: there is no user '{name}'"))),
            Err(error) => Err(invalid(format!("web.proxy_users: cannot look up the user '{name}': {error}"))),
        },
    };
    users.iter().map(id_of).collect()
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Whether the client may connect. Every user of this machine can reach the port and may have found a token, so the
/// user of a local client is checked. The user of a client on another machine is unknown, so only its token is checked.
pub(super) async fn is_admitted(client: TcpClient, auth: &WebAuth) -> bool {
    let Some(to) = client.to else { return false };
    match tokio::task::spawn_blocking(move || platform::tcp_peer_user(client.from, to)).await {
        Ok(TcpPeerUser::Uid(uid)) => auth.admits(uid),
        Ok(TcpPeerUser::NotReported) => true,
        Ok(TcpPeerUser::Unknown) => !client.is_local(),
        Err(_) => false,
    }
}

/// Answers 403 to any request, and closes the connection.
pub(super) async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let error = ApiError::new(ErrorCode::Forbidden, "connections from other users of this machine are refused")
        .with_hint(
            "if this user runs a proxy, add the name of the user to web.proxy_users, then run: agtmux daemon restart",
        );
    let body = serde_json::to_string(&error).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let exchange = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MAX_UNREAD_BYTES), &mut sink()).await
    };
    // A client that does not read the response is disconnected without it.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, exchange).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_users_are_looked_up() {
        let name = |name: &str| ProxyUser::Name(name.into());
        assert_eq!(user_ids(&[ProxyUser::Uid(33), name("root")]).expect("known"), [33, 0]);
        let error = user_ids(&[name("no such user")]).expect_err("unknown").to_string();
        assert_eq!(error, "web.proxy_users: there is no user 'no such user'");
    }

    #[tokio::test]
    async fn a_refused_client_gets_the_reason() {
        let (mut client, server) = tokio::io::duplex(1024);
        let refusal = tokio::spawn(refuse(server));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("written");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("read");
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("web.proxy_users"), "{answer}");
        drop(client);
        refusal.await.expect("the refusal ends");
    }
}
