//! `agtmux demo`

mod environment;
mod scripts;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::quit_signals::QuitSignals;
use crate::terminal::StdoutTerminal;
use environment::DemoEnvironment;

pub(crate) async fn run() -> Result<CliExit, CliError> {
    // From here on a signal ends the demo by way of its clean-up.
    let mut quit = QuitSignals::new()?;
    let world = DemoEnvironment::build()?;
    let on_terminal = StdoutTerminal::detect().is_tty;
    let view: &[&str] = if on_terminal { &["watch"] } else { &["list", "panes"] };
    // Another process, because a client tells the daemon of the tmux that it runs in, and this is not that one.
    let mut viewer = Command::from(world.agtmux(view)).spawn().map_err(|error| CliError::io("show the demo", error))?;
    let exit = tokio::select! {
        status = viewer.wait() => viewer_exit(status)?,
        exit = quit.received() => {
            stop_viewer(&mut viewer).await;
            exit
        }
    };
    drop(world);
    if on_terminal {
        CliMessage::new("that was the demo; its tmux server, its daemon and its files are gone")
            .hint("tmux new")
            .print_stderr();
    }
    Ok(exit)
}

fn viewer_exit(status: std::io::Result<std::process::ExitStatus>) -> Result<CliExit, CliError> {
    let status = status.map_err(|error| CliError::io("show the demo", error))?;
    Ok(match status.code() {
        Some(0) => CliExit::Ok,
        Some(130) => CliExit::Interrupted,
        // It has said why.
        _ => CliExit::Failed,
    })
}

/// Told, not killed: it has a screen to put back.
async fn stop_viewer(viewer: &mut Child) {
    if let Some(pid) = viewer.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let _ = viewer.wait().await;
}
