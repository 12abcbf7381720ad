//! `agtmux sidebar`: the list of agents in a narrow pane.

use std::ffi::OsString;

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use agtmux_tmux::{TmuxError, TmuxServer, WindowPane, socket_of_tmux_variable};
use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use super::attach::{CallingClient, ClientArgs};
use super::interface;
use crate::error::{CliError, CliResult};

const MIN_COLUMNS: u32 = 24;
const MAX_COLUMNS: u32 = 40;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  agtmux sidebar toggle
  tmux bind-key S run-shell -b \"agtmux sidebar toggle --client '#{client_tty}'\""
)]
pub(crate) struct SidebarArgs {
    #[command(subcommand)]
    command: Option<SidebarCommand>,
}

#[derive(Debug, Subcommand)]
enum SidebarCommand {
    /// Open the sidebar at the left edge of your window, or remove it
    ///
    /// The pane in which you work stays active. After the sidebar is removed, the window has its layout back.
    Toggle(ToggleArgs),
}

#[derive(Debug, Args)]
struct ToggleArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// The width in columns, from 24 to 40
    #[arg(long, value_name = "COLUMNS", default_value_t = 32,
        value_parser = clap::value_parser!(u32).range(i64::from(MIN_COLUMNS)..=i64::from(MAX_COLUMNS)))]
    width: u32,
    /// Open or remove the sidebar in every window of your session
    #[arg(long)]
    every_window: bool,
}

pub(crate) async fn run(args: SidebarArgs) -> CliResult {
    match args.command {
        None => show().await,
        Some(SidebarCommand::Toggle(args)) => toggle(args).await,
    }
}

/// Shows the interface until the person quits it, or until the sidebar would be the last pane of its window.
async fn show() -> CliResult {
    let Some(guard) = WindowGuard::of_this_pane()? else { return interface::run(false).await };
    tokio::select! {
        ended = interface::run(false) => ended,
        () = guard.is_last_pane() => Ok(()),
    }
}

/// Watches the window that contains this sidebar.
struct WindowGuard {
    server: TmuxServer,
    pane: u32,
}

impl WindowGuard {
    fn of_this_pane() -> CliResult<Option<Self>> {
        let pane = std::env::var("TMUX_PANE").ok().and_then(|pane| pane.strip_prefix('%')?.parse().ok());
        let socket = socket_of_tmux_variable(&std::env::var("TMUX").unwrap_or_default());
        let (Some(pane), Some(socket)) = (pane, socket) else { return Ok(None) };
        let tmux = Config::load(&Paths::from_env()?.config)?.tmux;
        Ok(Some(Self { server: TmuxServer::new(&tmux.program, socket, tmux.command_timeout.0), pane }))
    }

    /// Returns when the other panes of the window have ended. tmux resizes the sidebar then, so this costs nothing while
    /// nothing happens.
    async fn is_last_pane(&self) {
        let Ok(mut resized) = signal(SignalKind::window_change()) else { return std::future::pending().await };
        let mut had_company = false;
        loop {
            // If tmux does not answer, the next resize asks again.
            if let Ok(panes) = self.server.panes_beside(self.pane).await {
                let own = panes.iter().find(|pane| pane.pane == self.pane);
                had_company |= own.is_some_and(WindowPane::is_sidebar);
                let is_alone = panes.iter().all(|pane| pane.pane == self.pane || pane.is_sidebar());
                if is_alone && had_company {
                    return;
                }
                had_company |= !is_alone;
                self.keep_width(own).await;
            }
            if resized.recv().await.is_none() {
                return std::future::pending().await;
            }
        }
    }

    /// tmux scales all panes when the window changes its size.
    async fn keep_width(&self, own: Option<&WindowPane>) {
        let Some(own) = own.filter(|own| own.is_sidebar()) else { return };
        let width = own.width.clamp(MIN_COLUMNS, MAX_COLUMNS);
        if width != own.width {
            // A window without room keeps its widths.
            let _ = self.server.resize_pane_width(self.pane, width).await;
        }
    }
}

async fn toggle(args: ToggleArgs) -> CliResult {
    let tmux = Config::load(&Paths::from_env()?.config)?.tmux;
    let Some(client) = args.client.find(&tmux).await? else {
        return Err(CliError::failed("there is no tmux window for a sidebar").because("this command runs outside tmux"));
    };
    let done = toggle_for(&client, &args).await;
    client.report(&args.client, done).await
}

async fn toggle_for(client: &CallingClient, args: &ToggleArgs) -> CliResult {
    let failed = |error: TmuxError| CliError::failed("tmux did not change the window").because(error.to_string());
    let session = client.view.client.session;
    let mut panes = client.server.window_panes().await.map_err(failed)?;
    panes.retain(|pane| pane.session == session && (args.every_window || pane.window == client.view.window));
    let in_window = |window| move |pane: &&WindowPane| pane.window == window;
    let closes = panes.iter().filter(in_window(client.view.window)).any(WindowPane::is_sidebar);
    if closes {
        for sidebar in panes.iter().filter(|pane| pane.is_sidebar()) {
            client.server.close_sidebar(sidebar).await.map_err(failed)?;
        }
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| CliError::io("find the agtmux program", error))?;
    let argv: [OsString; 2] = [program.into(), "sidebar".into()];
    let mut windows: Vec<u32> = panes.iter().map(|pane| pane.window).collect();
    windows.dedup();
    for window in windows {
        let mut there = panes.iter().filter(in_window(window));
        if there.clone().any(WindowPane::is_sidebar) {
            continue;
        }
        let Some(beside) = there.next() else { continue };
        client.server.open_sidebar(beside, args.width, &argv).await.map_err(failed)?;
    }
    Ok(())
}
