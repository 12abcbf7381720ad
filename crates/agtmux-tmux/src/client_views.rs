//! The attached clients with their terminals, and moving one of them to a pane.

use crate::clients::{CLIENT, CLIENT_FIELDS, parse};
use crate::command::{Framing, TmuxCommand};
use crate::listing::parse_id;
use crate::{TmuxClient, TmuxError, TmuxServer};

/// The window option in which agtmux stores what a window shows that agtmux opened for another host.
const SHOWN_AGENT: &str = "@agtmux_agent";

/// A place in a tmux server. Ids are unique within a server, so a place never means another pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientPlace {
    pub session: u32,
    pub window: u32,
    pub pane: u32,
}

impl ClientPlace {
    /// The target that names this place in tmux commands.
    pub fn target(self) -> String {
        format!("${}:@{}.%{}", self.session, self.window, self.pane)
    }
}

/// An attached client, its terminal, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientView {
    pub client: TmuxClient,
    /// The terminal of the client. tmux commands name the client by it.
    pub tty: String,
    /// When the client was attached, in seconds since the epoch.
    pub created: u64,
    pub window: u32,
    /// The runtime id of the agent on another host for which agtmux opened the window.
    pub shown_agent: Option<String>,
}

impl ClientView {
    pub fn place(&self) -> ClientPlace {
        ClientPlace { session: self.client.session, window: self.window, pane: self.client.pane }
    }
}

impl TmuxServer {
    /// Lists the attached clients that have a terminal.
    pub async fn client_views(&self) -> Result<Vec<ClientView>, TmuxError> {
        let framing = Framing::fresh();
        let names = format!("{CLIENT_FIELDS} client_tty client_created window_id {SHOWN_AGENT}");
        let format = framing.variables(CLIENT, &names);
        let answer = self.run(&[TmuxCommand::new("list-clients").arg("-F").arg(format)]).await?;
        Ok(framing.records(CLIENT, &answer).iter().filter_map(|fields| parse_view(fields)).collect())
    }

    /// Shows the place in the client on this terminal, and in no other client.
    pub async fn switch_client(&self, tty: &str, place: ClientPlace) -> Result<(), TmuxError> {
        let switch = TmuxCommand::new("switch-client").arg("-c").arg(tty).arg("-t").arg(place.target());
        self.run(&[switch]).await.map(drop)
    }

    /// Detaches the client on this terminal. With `then`, a shell command takes over the terminal.
    pub async fn detach_client(&self, tty: &str, then: Option<&str>) -> Result<(), TmuxError> {
        let detach = TmuxCommand::new("detach-client").arg("-t").arg(tty);
        let detach = match then {
            Some(command) => detach.arg("-E").arg(command),
            None => detach,
        };
        self.run(&[detach]).await.map(drop)
    }

    /// Runs a program in a window of the session that is marked with this runtime id. Starts the program again in the
    /// window that has the mark, or opens a window. Returns the place of the window.
    pub async fn open_agent_window(
        &self,
        session: u32,
        name: &str,
        runtime: &str,
        argv: &[std::ffi::OsString],
    ) -> Result<ClientPlace, TmuxError> {
        let with_program = |command: TmuxCommand| argv.iter().fold(command.arg("--"), TmuxCommand::arg);
        if let Some(place) = self.marked_window(runtime).await? {
            let target = format!("%{}", place.pane);
            let respawn = TmuxCommand::new("respawn-pane").arg("-k").arg("-t").arg(target);
            self.run(&[with_program(respawn)]).await?;
            return Ok(place);
        }
        let framing = Framing::fresh();
        let format = framing.variables(CLIENT, PLACE_FIELDS);
        let open = TmuxCommand::new("new-window").arg("-d").arg("-P").arg("-F").arg(format);
        let open = open.arg("-n").arg(name).arg("-t").arg(format!("${session}:"));
        let answer = self.run(&[with_program(open)]).await?;
        let records = framing.records(CLIENT, &answer);
        let place = records.first().and_then(|fields| parse_place(fields));
        let place = place.ok_or_else(|| TmuxError::Unreadable("new-window printed no ids".into()))?;
        let target = format!("@{}", place.window);
        self.run(&[TmuxCommand::new("set-option").arg("-w").arg("-t").arg(target).arg(SHOWN_AGENT).arg(runtime)])
            .await?;
        Ok(place)
    }

    async fn marked_window(&self, runtime: &str) -> Result<Option<ClientPlace>, TmuxError> {
        let framing = Framing::fresh();
        let format = framing.variables(CLIENT, &format!("{PLACE_FIELDS} window_panes {SHOWN_AGENT}"));
        let answer = self.run(&[TmuxCommand::new("list-windows").arg("-a").arg("-F").arg(format)]).await?;
        let records = framing.records(CLIENT, &answer);
        let is_marked = |fields: &&Vec<&[u8]>| fields.get(3..) == Some(&[b"1".as_slice(), runtime.as_bytes()]);
        Ok(records.iter().find(is_marked).and_then(|fields| parse_place(&fields[..3])))
    }
}

const PLACE_FIELDS: &str = "session_id window_id pane_id";

fn parse_place(fields: &[&[u8]]) -> Option<ClientPlace> {
    let &[session, window, pane] = fields else { return None };
    Some(ClientPlace {
        session: parse_id(b'$', session)?,
        window: parse_id(b'@', window)?,
        pane: parse_id(b'%', pane)?,
    })
}

/// Parses one client. `None` for a client whose terminal has an unusual name, because tmux commands name the client by
/// its terminal.
fn parse_view(fields: &[&[u8]]) -> Option<ClientView> {
    let (client, rest) = fields.split_at_checked(5)?;
    let &[tty, created, window, shown_agent] = rest else { return None };
    let tty = std::str::from_utf8(tty).ok().filter(|tty| is_terminal_path(tty))?;
    let shown_agent = Some(String::from_utf8_lossy(shown_agent).into_owned()).filter(|agent| !agent.is_empty());
    Some(ClientView {
        client: parse(client)?,
        tty: tty.to_owned(),
        created: std::str::from_utf8(created).ok()?.parse().ok()?,
        window: parse_id(b'@', window)?,
        shown_agent,
    })
}

/// Whether this is the path of a terminal, such as `/dev/pts/3` or `/dev/ttys003`.
pub fn is_terminal_path(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    path.starts_with('/') && path.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_with_a_plain_terminal_is_listed() {
        let fields: [&[u8]; 9] = [b"7", b"1700000000", b"0", b"$3", b"%12", b"/dev/pts/3", b"1600000000", b"@4", b""];
        let view = parse_view(&fields).expect("a client");
        assert_eq!((view.tty.as_str(), view.created, view.shown_agent.as_deref()), ("/dev/pts/3", 1_600_000_000, None));
        assert_eq!(view.place().target(), "$3:@4.%12");
        for tty in ["", "pts/3", "/dev/pts/3;kill-server", "/dev/pts/#{x}", "/dev/pts/3 "] {
            let mut other = fields;
            other[5] = tty.as_bytes();
            assert_eq!(parse_view(&other), None, "{tty}");
        }
        assert_eq!(parse_view(&fields[..8]), None);
    }
}
