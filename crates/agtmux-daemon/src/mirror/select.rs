//! Finds shared terminals by their own pane, by the pane that they were made for, or by their session.

use std::path::Path;
use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::ApiResult;
use agtmux_api::wire::{MirrorList, MirrorQuery};
use agtmux_core::ids::{PaneId, ServerKey, SessionId, TargetName};
use agtmux_tmux::default_socket;

use super::terminal::SharedTerminal;
use super::{Mirrors, errors};
use crate::actions::{MirrorPlace, tmux_error};
use crate::observe::server_name;

impl Mirrors {
    /// The terminals on one server, or on all servers.
    pub(crate) fn list(&self, query: &MirrorQuery) -> ApiResult<MirrorList> {
        let chosen = match (&query.pane, &query.for_pane) {
            (None, None) => self.terminals(),
            _ => self.find(query)?.into_iter().collect(),
        };
        let socket = query.socket.as_ref().map(|socket| socket_of(Some(socket))).transpose()?;
        let is_wanted =
            |terminal: &&Arc<SharedTerminal>| socket.as_ref().is_none_or(|socket| terminal.spec.socket == *socket);
        let items = chosen.iter().filter(is_wanted);
        Ok(MirrorList { schema_version: SCHEMA_VERSION, items: items.map(|terminal| self.item(terminal)).collect() })
    }

    /// The newest terminal that the query names and that is not closed.
    fn find(&self, query: &MirrorQuery) -> ApiResult<Option<Arc<SharedTerminal>>> {
        let socket = socket_of(query.socket.as_ref())?;
        let (pane, for_pane) = (pane_of(query.pane.as_ref())?, pane_of(query.for_pane.as_ref())?);
        let matches = |terminal: &&Arc<SharedTerminal>| {
            let spec = &terminal.spec;
            spec.socket == socket
                && match (pane, for_pane) {
                    (Some(pane), _) => spec.pane == pane.0,
                    // A caller inside the terminal finds the terminal, too.
                    (None, Some(for_pane)) => spec.for_pane == Some(for_pane.0) || spec.pane == for_pane.0,
                    (None, None) => false,
                }
                && !terminal.is_closed()
                && !self.is_gone(terminal)
        };
        Ok(self.terminals().iter().rev().find(matches).cloned())
    }

    /// The terminal that the query names. If the query has no `pane`, any terminal in the session of the caller's pane
    /// also counts, and the newest one is returned. Fails if there is no such terminal.
    pub(super) async fn select(&self, query: &MirrorQuery) -> ApiResult<Arc<SharedTerminal>> {
        if let Some(found) = self.find(query)? {
            return Ok(found);
        }
        let of_session = match query.pane {
            None => self.of_session(query).await?,
            Some(_) => None,
        };
        of_session.ok_or_else(|| errors::no_terminal(query))
    }

    /// The newest terminal in the session of the caller's pane.
    async fn of_session(&self, query: &MirrorQuery) -> ApiResult<Option<Arc<SharedTerminal>>> {
        let Some(for_pane) = pane_of(query.for_pane.as_ref())? else { return Ok(None) };
        let socket = socket_of(query.socket.as_ref())?;
        let source = self.tmux(&socket).split_source(for_pane.0).await.map_err(tmux_error)?;
        let Some(source) = source else { return Ok(None) };
        let server = (source.server_pid, source.server_start);
        let session = SessionId(source.session).to_string();
        let is_there = |terminal: &&Arc<SharedTerminal>| {
            terminal.server() == server && terminal.spec.session == session && !terminal.is_closed()
        };
        Ok(self.terminals().iter().rev().find(is_there).cloned())
    }
}

/// The location of a terminal. It decides which agents may use the terminal.
pub(super) fn place(terminal: &SharedTerminal) -> ApiResult<MirrorPlace> {
    let spec = &terminal.spec;
    let server = ServerKey { target: TargetName::local(), server: server_name(Path::new(&spec.socket)) };
    let session = spec.session.parse().map_err(|_| errors::pane_gone())?;
    Ok(MirrorPlace { server, session, for_pane: spec.for_pane.map(PaneId) })
}

pub(super) fn socket_of(socket: Option<&String>) -> ApiResult<String> {
    match socket {
        Some(socket) if Path::new(socket).is_absolute() => Ok(real_path(Path::new(socket))),
        Some(socket) => Err(errors::bad(format!("'{socket}' is not an absolute path to a tmux socket"))),
        None => Ok(real_path(&default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()))),
    }
}

/// The path of a socket with all symbolic links resolved, because callers may name the same socket by different paths.
fn real_path(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

pub(super) fn pane_of(pane: Option<&String>) -> ApiResult<Option<PaneId>> {
    let parse = |pane: &String| pane.parse().map_err(|_| errors::bad(format!("'{pane}' is not a pane; use %N")));
    pane.map(parse).transpose()
}
