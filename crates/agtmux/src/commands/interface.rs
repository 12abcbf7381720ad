//! The terminal interface: `agtmux` without a command, and `agtmux inbox`.

use std::future::{Future, pending};
use std::io::IsTerminal;
use std::path::Path;
use std::pin::Pin;

use agtmux_api::config::Config;
use agtmux_client::DaemonClient;
use agtmux_tmux::platform::{self, Platform, PlatformSignal, WatchToken};
use agtmux_tui::{TerminalWatcher, TuiExit, TuiOptions, look_from_environment};

use super::attach::CLIENT_VARIABLE;
use crate::error::{CliError, CliExit, CliResult};
use crate::terminal::StdoutTerminal;

const PANE: WatchToken = WatchToken(1);

/// Whether a person can use the interface here.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && StdoutTerminal::detect().can_redraw()
}

/// Shows the interface. With `waiting_only`, starts with the agents that wait.
pub(crate) async fn run(waiting_only: bool) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let settings = Config::load(&daemon.paths.config)?.interface;
    let options = TuiOptions {
        daemon,
        program: std::env::current_exe().map_err(|error| CliError::io("find the agtmux program", error))?,
        look: look_from_environment(),
        settings,
        waiting_only,
        // A popup would hide the pane.
        quits_after_attach: std::env::var_os(CLIENT_VARIABLE).is_some_and(|tty| !tty.is_empty()),
        watcher: Box::new(WatchedPane::open()),
    };
    match agtmux_tui::run(options).await {
        Ok(TuiExit::Quit) => Ok(()),
        Ok(TuiExit::Terminated) => Err(CliError::silent(CliExit::Terminated)),
        Err(error) => Err(CliError::failed(error.to_string())),
    }
}

/// Watches the terminal of the pane that the interface shows.
struct WatchedPane(Option<Platform>);

impl WatchedPane {
    /// On a platform that cannot report output, the preview is read again only when the agent changes.
    fn open() -> Self {
        let platform = platform::open(platform::PlatformOptions::default()).ok();
        Self(platform.filter(|platform| platform.watcher.reports_output()))
    }
}

impl TerminalWatcher for WatchedPane {
    fn watch(&mut self, tty: Option<&str>) {
        let Some(platform) = &self.0 else { return };
        platform.watcher.unwatch(PANE);
        if let Some(tty) = tty {
            // If the terminal cannot be watched, the pane has just been closed.
            let _ = platform.watcher.watch_terminal(PANE, Path::new(tty));
        }
    }

    fn wrote(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            let Some(platform) = &mut self.0 else { return pending().await };
            while let Some(signal) = platform.signals.recv().await {
                if matches!(signal, PlatformSignal::Wrote(_)) {
                    return;
                }
            }
            pending().await
        })
    }
}
