//! `agtmux demo`

mod scripts;
mod world;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::quit::Quit;
use crate::terminal::Terminal;
use world::World;

pub(crate) async fn run() -> Result<Exit, CliError> {
    // From here on a signal ends the demo by way of its clean-up.
    let mut quit = Quit::new()?;
    let world = World::build()?;
    let on_terminal = Terminal::of_stdout().is_tty;
    let view: &[&str] = if on_terminal { &["watch"] } else { &["list", "panes"] };
    // Another process, because a client tells the daemon of the tmux that it runs in, and this is not that one.
    let mut viewer = Command::from(world.agtmux(view)).spawn().map_err(|error| CliError::io("show the demo", error))?;
    let exit = tokio::select! {
        status = viewer.wait() => ended(status)?,
        exit = quit.requested() => {
            end(&mut viewer).await;
            exit
        }
    };
    drop(world);
    if on_terminal {
        Message::new("that was the demo; its tmux server, its daemon and its files are gone").hint("tmux new").tell();
    }
    Ok(exit)
}

fn ended(status: std::io::Result<std::process::ExitStatus>) -> Result<Exit, CliError> {
    let status = status.map_err(|error| CliError::io("show the demo", error))?;
    Ok(match status.code() {
        Some(0) => Exit::Ok,
        Some(130) => Exit::Interrupted,
        // It has said why.
        _ => Exit::Failed,
    })
}

/// Told, not killed: it has a screen to put back.
async fn end(viewer: &mut Child) {
    if let Some(pid) = viewer.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let _ = viewer.wait().await;
}
