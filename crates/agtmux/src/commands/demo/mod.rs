//! `agtmux demo`: shows scripted agents on a private tmux server.

mod environment;
mod scripts;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::commands::interface;
use crate::error::{CliError, CliExit, CliResult};
use crate::message::CliMessage;
use crate::quit_signals::QuitSignals;
use crate::terminal::StdoutTerminal;
use environment::DemoEnvironment;

pub(crate) async fn run() -> CliResult {
    // From here on, a signal ends the demo with its cleanup.
    let mut quit = QuitSignals::new()?;
    let environment = DemoEnvironment::build()?;
    let on_terminal = StdoutTerminal::detect().is_tty;
    // Without arguments, agtmux opens the interface on a terminal.
    let view: &[&str] = match (interface::is_possible(), on_terminal) {
        (true, _) => &[],
        (false, true) => &["watch"],
        (false, false) => &["list", "panes"],
    };
    // The viewer is a separate process with the demo's environment, because a client reports its own tmux server to the
    // daemon.
    let mut viewer =
        Command::from(environment.agtmux(view)).spawn().map_err(|error| CliError::io("show the demo", error))?;
    let exit = tokio::select! {
        status = viewer.wait() => viewer_exit(status)?,
        exit = quit.received() => {
            stop_viewer(&mut viewer).await;
            exit
        }
    };
    drop(environment);
    if on_terminal {
        CliMessage::new("the demo has ended; its tmux server, daemon and files are removed")
            .hint("tmux new")
            .print_stderr();
    }
    exit.into_result()
}

fn viewer_exit(status: std::io::Result<std::process::ExitStatus>) -> CliResult<CliExit> {
    let status = status.map_err(|error| CliError::io("show the demo", error))?;
    Ok(match status.code() {
        Some(0) => CliExit::Ok,
        Some(130) => CliExit::Interrupted,
        // The viewer has printed the reason.
        _ => CliExit::Failed,
    })
}

/// Ends the viewer with SIGTERM, so that the viewer can restore the screen before it exits.
async fn stop_viewer(viewer: &mut Child) {
    if let Some(pid) = viewer.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let _ = viewer.wait().await;
}
