//! Finds the tmux client of the person who runs a command. Another client is never moved instead.

use std::os::unix::process::parent_id;
use std::path::PathBuf;

use agtmux_api::config::TmuxConfig;
use agtmux_tmux::platform::process_table;
use agtmux_tmux::{ClientView, TmuxServer, is_listening, socket_of_tmux_variable};
use clap::Args;

use crate::error::{CliError, CliResult};

/// Names the client for commands that run outside a pane, for example in a popup.
pub(crate) const CLIENT_VARIABLE: &str = "AGTMUX_TMUX_CLIENT";

/// At most this many processes between this process and the first process of its pane.
const MAX_ANCESTORS: usize = 64;

#[derive(Debug, Default, Args)]
pub(crate) struct ClientArgs {
    /// Move this tmux client, named by its terminal. In a key binding, write --client '#{client_tty}'. Without this
    /// option: the client that AGTMUX_TMUX_CLIENT names, or the one that shows this pane. Errors are also shown in the
    /// status line of the client
    #[arg(long, value_name = "TTY")]
    pub(crate) client: Option<String>,
}

/// The client that called, and its tmux server.
#[derive(Debug)]
pub(crate) struct CallingClient {
    pub(crate) server: TmuxServer,
    pub(crate) socket: PathBuf,
    pub(crate) view: ClientView,
}

impl ClientArgs {
    /// The calling client; `None` outside tmux. Fails if it is not certain which client called.
    pub(crate) async fn find(&self, tmux: &TmuxConfig) -> CliResult<Option<CallingClient>> {
        // TMUX may name a server that has ended; this process is then no longer inside tmux.
        let socket = socket_of_tmux_variable(&std::env::var("TMUX").unwrap_or_default());
        let Some(socket) = socket.filter(|socket| is_listening(socket)) else {
            return match &self.client {
                None => Ok(None),
                Some(_) => Err(CliError::usage("--client works only inside tmux").because("TMUX names no tmux server")),
            };
        };
        let server = TmuxServer::new(&tmux.program, &socket, tmux.command_timeout.0);
        let views = server.client_views().await.map_err(|error| CliError::io("list the tmux clients", error))?;
        let named = self.client.clone().or_else(|| std::env::var(CLIENT_VARIABLE).ok().filter(|tty| !tty.is_empty()));
        let view = match named {
            Some(tty) => views.into_iter().find(|view| view.tty == tty).ok_or_else(|| not_attached(&tty))?,
            None => match pane_of_this_process(&server).await {
                Some(window) => newest_in_window(views, window)?,
                None => of_popup(views)?,
            },
        };
        Ok(Some(CallingClient { server, socket, view }))
    }
}

impl CallingClient {
    /// Shows the error in the client if the command line names it: such a command runs in a key binding, where stderr
    /// is invisible.
    pub(crate) async fn report<T>(&self, args: &ClientArgs, result: CliResult<T>) -> CliResult<T> {
        if let (Err(error), true) = (&result, args.client.is_some())
            && let Some(headline) = error.headline()
        {
            // The error is also printed and decides the exit code, so a failure here changes nothing.
            let _ = self.server.show_message(&self.view.tty, &format!("agtmux: {headline}"), None).await;
        }
        result
    }
}

fn not_attached(tty: &str) -> CliError {
    CliError::failed(format!("no tmux client is attached at '{tty}'"))
        .because("a client is named by its terminal, such as /dev/pts/3")
        .hint("tmux list-clients")
}

/// The window that contains this process. `TMUX_PANE` alone is no proof: jobs of a tmux server inherit the variable from
/// the environment in which the server was started.
async fn pane_of_this_process(server: &TmuxServer) -> Option<u32> {
    let pane = std::env::var("TMUX_PANE").ok()?.strip_prefix('%')?.parse().ok()?;
    let listing = server.read(&[pane]).await.ok()?;
    let row = listing.rows.first()?;
    let processes = process_table(false);
    let mut pid = parent_id();
    if row.pid == std::process::id() {
        return Some(row.window);
    }
    for _ in 0..MAX_ANCESTORS {
        if pid == row.pid {
            return Some(row.window);
        }
        pid = processes.process(pid)?.ppid;
    }
    None
}

/// The client that shows the window. If several clients show it, the one in which the last key was pressed.
fn newest_in_window(views: Vec<ClientView>, window: u32) -> CliResult<ClientView> {
    let mut there: Vec<ClientView> = views.into_iter().filter(|view| view.window == window).collect();
    there.sort_by_key(|view| std::cmp::Reverse(view.client.last_key));
    let is_tied = there.len() > 1 && there[0].client.last_key == there[1].client.last_key;
    match there.into_iter().next() {
        None => Err(CliError::failed("cannot tell which tmux client to move: no client shows this pane")
            .hint("tmux list-clients   (then name one with --client TTY)")),
        Some(_) if is_tied => Err(several("several clients show this pane, and keys were pressed in them at once")),
        Some(view) => Ok(view),
    }
}

/// The client of a popup. A popup is shown in a client, so if only one client is attached, it is that one.
fn of_popup(mut views: Vec<ClientView>) -> CliResult<ClientView> {
    let has_terminal = std::fs::File::open("/dev/tty").is_ok();
    match views.pop() {
        Some(view) if views.is_empty() && has_terminal => Ok(view),
        Some(_) if has_terminal => Err(several("this command runs outside a pane, and several clients are attached")),
        Some(_) => Err(several("this command runs outside a pane")),
        None => Err(CliError::failed("cannot tell which tmux client to move: no client is attached")),
    }
}

fn several(why: &str) -> CliError {
    CliError::failed("cannot tell which tmux client to move")
        .because(why)
        .hint("name the client with --client TTY; in a key binding: --client '#{client_tty}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_tmux::TmuxClient;

    fn view(tty: &str, window: u32, last_key: u64) -> ClientView {
        let client = TmuxClient { pid: 1, last_key, control_mode: false, session: 0, pane: 0 };
        ClientView { client, tty: tty.into(), created: 0, window, shown_agent: None }
    }

    #[test]
    fn the_client_with_the_last_key_press_is_moved_and_no_other() {
        let tty = |views: &[ClientView]| newest_in_window(views.to_vec(), 1).ok().map(|view| view.tty);
        let (here, older, elsewhere) = (view("/dev/pts/1", 1, 9), view("/dev/pts/2", 1, 8), view("/dev/pts/3", 2, 99));
        assert_eq!(tty(&[older.clone(), here.clone(), elsewhere.clone()]).as_deref(), Some("/dev/pts/1"));
        assert_eq!(tty(&[here.clone(), view("/dev/pts/4", 1, 9)]), None, "both were used in the same second");
        assert_eq!(tty(std::slice::from_ref(&elsewhere)), None, "no client shows the window");
    }
}
