use std::io::Write;

use agtmux_api::config::{Config, ListenAddress};
use agtmux_api::paths::Paths;
use agtmux_client::{ALREADY_RUNNING, READY};
use agtmux_daemon::{DaemonError, DaemonOptions, LogDestination};
use clap::Args;

use crate::error::{CliError, CliResult};

#[derive(Debug, Args)]
pub(crate) struct DaemonRunArgs {
    /// Run detached: in a new session, with a log file, and print a line on stdout when ready
    #[arg(long, hide = true)]
    detached: bool,
    /// Also serve the web dashboard and the API on this address, to clients that have a token
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<ListenAddress>,
    /// Allow an address that other machines can reach, although the connection is not encrypted
    #[arg(long, requires = "listen")]
    i_know: bool,
}

pub(super) fn run(args: DaemonRunArgs) -> CliResult {
    if args.detached {
        // `setsid` fails only if this process leads a process group. The daemon then stays in its session.
        let _ = rustix::process::setsid();
    }
    let paths = Paths::from_env()?;
    let mut config = Config::load(&paths.config)?;
    if let Some(listen) = args.listen {
        config.web.listen = listen;
        config.web.i_know |= args.i_know;
        if let Some(fault) = config.web.exposure_error() {
            return Err(CliError::usage(fault).hint("agtmux daemon run --listen 127.0.0.1:7777"));
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
        Ok(()) => Ok(()),
        Err(DaemonError::AlreadyRunning { .. }) if args.detached => {
            notify_starter(ALREADY_RUNNING);
            Ok(())
        }
        Err(error @ DaemonError::AlreadyRunning { .. }) => {
            Err(CliError::failed(error.to_string()).hint("agtmux daemon status").hint("agtmux daemon restart"))
        }
        Err(DaemonError::Paths(error)) => Err(error.into()),
        Err(error) => Err(CliError::failed(error.to_string())),
    }
}

fn notify_starter(word: &str) {
    // The process that started the daemon may have exited.
    let _ = writeln!(std::io::stdout(), "{word}");
}

/// Redirects stdout and stderr to /dev/null. They are pipes to the process that started the daemon. After that process
/// has exited, writing to the pipes would fail.
fn close_starter_pipes() {
    let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = rustix::stdio::dup2_stdout(&null);
    let _ = rustix::stdio::dup2_stderr(&null);
}
