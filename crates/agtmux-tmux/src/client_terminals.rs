//! The terminals of attached clients: what each one shows, and messages in its status line.

use std::path::PathBuf;
use std::time::Duration;

use crate::command::{Framing, TmuxCommand};
use crate::listing::parse_id;
use crate::server::{TmuxError, TmuxServer};

const CLIENT: char = 't';
const CLIENT_FIELDS: &str =
    "client_name client_tty client_activity client_control_mode window_id pane_id window_zoomed_flag";

/// The terminal of one attached client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTerminal {
    pub name: String,
    /// The path of the terminal, as the client reported it. It may name any file.
    pub tty: PathBuf,
    /// The time of the last key press, in seconds since the epoch.
    pub last_key: u64,
    window: u32,
    pane: u32,
    /// Whether the active pane fills the window, so that the other panes are hidden.
    zoomed: bool,
}

impl ClientTerminal {
    /// Whether the client shows this pane of this window.
    pub fn shows(&self, window: u32, pane: u32) -> bool {
        self.window == window && (self.pane == pane || !self.zoomed)
    }
}

impl TmuxServer {
    /// Lists the terminals of all attached clients, except those in control mode, which have none.
    pub async fn client_terminals(&self) -> Result<Vec<ClientTerminal>, TmuxError> {
        let framing = Framing::fresh();
        let format = framing.variables(CLIENT, CLIENT_FIELDS);
        let answer = self.run(&[TmuxCommand::new("list-clients").arg("-F").arg(format)]).await?;
        Ok(framing.records(CLIENT, &answer).iter().filter_map(|fields| parse(fields)).collect())
    }

    /// Shows a text in the status line of a client, as it is. `client` is the client's name or terminal. Without a time,
    /// the user's option `display-time` counts.
    pub async fn show_message(&self, client: &str, text: &str, time: Option<Duration>) -> Result<(), TmuxError> {
        let command = TmuxCommand::new("display-message").arg("-c").arg(client);
        let command = match time {
            Some(time) => command.arg("-d").arg(time.as_millis().to_string()),
            None => command,
        };
        self.run(&[command.arg("--").arg(literal(text))]).await.map(drop)
    }
}

/// Escapes what `display-message` would expand: formats and styles begin with `#`, and times with `%`.
fn literal(text: &str) -> String {
    text.replace('#', "##").replace('%', "%%")
}

/// Parses one client. `None` for a client without a session or without a terminal.
fn parse(fields: &[&[u8]]) -> Option<ClientTerminal> {
    let &[name, tty, last_key, control_mode, window, pane, zoomed] = fields else { return None };
    let text = |field: &[u8]| std::str::from_utf8(field).ok().filter(|text| !text.is_empty()).map(str::to_owned);
    if control_mode == b"1" {
        return None;
    }
    Some(ClientTerminal {
        name: text(name)?,
        tty: text(tty)?.into(),
        last_key: text(last_key)?.parse().ok()?,
        window: parse_id(b'@', window)?,
        pane: parse_id(b'%', pane)?,
        zoomed: zoomed == b"1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zoomed_window_shows_only_its_active_pane() {
        let fields =
            |zoomed| -> [&[u8]; 7] { [b"/dev/pts/3", b"/dev/pts/3", b"1700000000", b"", b"@2", b"%5", zoomed] };
        let split = parse(&fields(b"0")).expect("a client");
        assert!(split.shows(2, 5) && split.shows(2, 6) && !split.shows(3, 7));
        let zoomed = parse(&fields(b"1")).expect("a client");
        assert!(zoomed.shows(2, 5) && !zoomed.shows(2, 6));
        assert_eq!(split.last_key, 1_700_000_000);
    }

    #[test]
    fn clients_without_a_terminal_are_skipped() {
        assert_eq!(parse(&[b"c", b"/dev/pts/3", b"1700000000", b"1", b"@2", b"%5", b"0"]), None, "control mode");
        assert_eq!(parse(&[b"c", b"", b"1700000000", b"", b"@2", b"%5", b"0"]), None);
        assert_eq!(parse(&[b"c", b"/dev/pts/3", b"1700000000", b"", b"", b"", b""]), None, "no session");
    }

    #[test]
    fn formats_styles_and_times_are_escaped() {
        assert_eq!(literal("#(touch x) #[fg=red] 100% #"), "##(touch x) ##[fg=red] 100%% ##");
    }
}
