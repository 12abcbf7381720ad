//! The clients that are attached to a tmux server, and the session and pane that each client shows.

use crate::command::{Framing, TmuxCommand};
use crate::listing::{parse_id, parse_number};
use crate::server::{TmuxError, TmuxServer};

pub(crate) const CLIENT: char = 'c';
pub(crate) const CLIENT_FIELDS: &str = "client_pid client_activity client_control_mode session_id pane_id";

/// One attached client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TmuxClient {
    pub pid: u32,
    /// The time of the last key press, in seconds since the epoch.
    pub last_key: u64,
    /// Whether the client is in control mode. A program such as a terminal emulator then shows the panes. It types by
    /// sending tmux commands instead of key presses.
    pub control_mode: bool,
    pub session: u32,
    /// The pane that receives the key presses of this client.
    pub pane: u32,
}

impl TmuxServer {
    /// Lists the attached clients.
    pub async fn clients(&self) -> Result<Vec<TmuxClient>, TmuxError> {
        let framing = Framing::fresh();
        let format = framing.variables(CLIENT, CLIENT_FIELDS);
        let answer = self.run(&[TmuxCommand::new("list-clients").arg("-F").arg(format)]).await?;
        Ok(framing.records(CLIENT, &answer).iter().filter_map(|fields| parse(fields)).collect())
    }
}

/// Parses one client. `None` for a client without a session, because its fields are empty.
pub(crate) fn parse(fields: &[&[u8]]) -> Option<TmuxClient> {
    let &[pid, last_key, control_mode, session, pane] = fields else { return None };
    Some(TmuxClient {
        pid: parse_number(pid)?,
        last_key: std::str::from_utf8(last_key).ok()?.parse().ok()?,
        control_mode: control_mode == b"1",
        session: parse_id(b'$', session)?,
        pane: parse_id(b'%', pane)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_without_a_session_is_skipped() {
        let attached = TmuxClient { pid: 7, last_key: 1_700_000_000, control_mode: false, session: 3, pane: 12 };
        assert_eq!(parse(&[b"7", b"1700000000", b"", b"$3", b"%12"]), Some(attached));
        let control = TmuxClient { control_mode: true, ..attached };
        assert_eq!(parse(&[b"7", b"1700000000", b"1", b"$3", b"%12"]), Some(control));
        assert_eq!(parse(&[b"7", b"1700000000", b"", b"", b""]), None);
        assert_eq!(parse(&[b"7"]), None);
    }
}
