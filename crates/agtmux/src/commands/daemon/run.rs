use std::io::Write;

use agtmux_api::config::{Config, Listen};
use agtmux_api::paths::Paths;
use agtmux_daemon::{DaemonError, LogTo, RunOptions};
use clap::Args;

use crate::connect::{ALREADY_RUNNING, READY};
use crate::error::{CliError, Exit};
use crate::message::Message;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// For whoever starts it in the background: own session, log file, word of readiness on stdout
    #[arg(long, hide = true)]
    detached: bool,
    /// Also let browsers and scripts in, with a token, on this address of this machine
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<Listen>,
    /// Listen on an address that other machines can reach, although nothing is encrypted
    #[arg(long, requires = "listen")]
    i_know: bool,
}

pub(super) fn run(args: RunArgs) -> Result<Exit, CliError> {
    if args.detached {
        // Fails only for the leader of a process group, who has no terminal that could take it down.
        let _ = rustix::process::setsid();
    }
    let paths = Paths::from_env()?;
    let mut config = Config::load(&paths.config)?;
    if let Some(listen) = args.listen {
        config.web.listen = listen;
        config.web.i_know |= args.i_know;
        if let Some(fault) = config.web.fault() {
            return Err(CliError::new(
                Exit::Usage,
                Message::new(fault).hint("agtmux daemon run --listen 127.0.0.1:7777"),
            ));
        }
    }
    let log_to = if args.detached { LogTo::File } else { LogTo::Stderr };
    let on_ready = move || {
        if args.detached {
            tell_starter(READY);
            let_go_of_starter();
        }
    };
    match agtmux_daemon::run(RunOptions { paths, config, log_to }, on_ready) {
        Ok(()) => Ok(Exit::Ok),
        Err(DaemonError::AlreadyRunning { .. }) if args.detached => {
            tell_starter(ALREADY_RUNNING);
            Ok(Exit::Ok)
        }
        Err(error @ DaemonError::AlreadyRunning { .. }) => Err(CliError::failed(
            Message::new(error.to_string()).hint("agtmux daemon status").hint("agtmux daemon restart"),
        )),
        Err(DaemonError::Paths(error)) => Err(error.into()),
        Err(error) => Err(CliError::failed(Message::new(error.to_string()))),
    }
}

fn tell_starter(word: &str) {
    // The starter may have given up waiting.
    let _ = writeln!(std::io::stdout(), "{word}");
}

/// The pipes end at the starter, which is about to exit: writing to them would then be an error.
fn let_go_of_starter() {
    let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = rustix::stdio::dup2_stdout(&null);
    let _ = rustix::stdio::dup2_stderr(&null);
}
