use std::io::Write;

use agtmux_api::config::{Config, ListenAddress};
use agtmux_api::paths::Paths;
use agtmux_daemon::{DaemonError, DaemonOptions, LogDestination};
use clap::Args;

use crate::connect::{ALREADY_RUNNING, READY};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;

#[derive(Debug, Args)]
pub(crate) struct DaemonRunArgs {
    /// For whoever starts it in the background: own session, log file, word of readiness on stdout
    #[arg(long, hide = true)]
    detached: bool,
    /// Also let browsers and scripts in, with a token, on this address of this machine
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<ListenAddress>,
    /// Listen on an address that other machines can reach, although nothing is encrypted
    #[arg(long, requires = "listen")]
    i_know: bool,
}

pub(super) fn run(args: DaemonRunArgs) -> Result<CliExit, CliError> {
    if args.detached {
        // Fails only for the leader of a process group, who has no terminal that could take it down.
        let _ = rustix::process::setsid();
    }
    let paths = Paths::from_env()?;
    let mut config = Config::load(&paths.config)?;
    if let Some(listen) = args.listen {
        config.web.listen = listen;
        config.web.i_know |= args.i_know;
        if let Some(fault) = config.web.exposure_error() {
            return Err(CliError::new(
                CliExit::Usage,
                CliMessage::new(fault).hint("agtmux daemon run --listen 127.0.0.1:7777"),
            ));
        }
    }
    let log_to = if args.detached { LogDestination::File } else { LogDestination::Stderr };
    let on_ready = move || {
        if args.detached {
            notify_starter(READY);
            close_starter_pipes();
        }
    };
    match agtmux_daemon::run(DaemonOptions { paths, config, log_to }, on_ready) {
        Ok(()) => Ok(CliExit::Ok),
        Err(DaemonError::AlreadyRunning { .. }) if args.detached => {
            notify_starter(ALREADY_RUNNING);
            Ok(CliExit::Ok)
        }
        Err(error @ DaemonError::AlreadyRunning { .. }) => Err(CliError::failed(
            CliMessage::new(error.to_string()).hint("agtmux daemon status").hint("agtmux daemon restart"),
        )),
        Err(DaemonError::Paths(error)) => Err(error.into()),
        Err(error) => Err(CliError::failed(CliMessage::new(error.to_string()))),
    }
}

fn notify_starter(word: &str) {
    // The starter may have given up waiting.
    let _ = writeln!(std::io::stdout(), "{word}");
}

/// The pipes end at the starter, which is about to exit: writing to them would then be an error.
fn close_starter_pipes() {
    let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = rustix::stdio::dup2_stdout(&null);
    let _ = rustix::stdio::dup2_stderr(&null);
}
