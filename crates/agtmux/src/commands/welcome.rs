//! `agtmux welcome`: run by `make run` after the build.

use std::io::IsTerminal;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use clap::Parser;

use super::{demo, list, watch};
use crate::cli::{Cli, CliCommand};
use crate::error::{CliError, CliResult};
use crate::input;
use crate::terminal::StdoutTerminal;

pub(crate) async fn run() -> CliResult {
    let config = Config::load(&Paths::from_env()?.config)?;
    let on_terminal = StdoutTerminal::detect().is_tty;
    if tmux_server_runs(&config) {
        return if on_terminal {
            watch::run(watch_args()?).await?.into_result()
        } else {
            list::run(list::ListArgs::default()).await
        };
    }
    if on_terminal && std::io::stdin().is_terminal() && !wants_demo()? {
        return Ok(());
    }
    demo::run().await
}

/// Checks the sockets without the daemon, so that no daemon is left running on a machine without tmux servers.
fn tmux_server_runs(config: &Config) -> bool {
    let listed = std::fs::read_dir(tmux_dir()).into_iter().flatten().flatten().map(|entry| entry.path());
    let inherited = std::env::var("TMUX").ok().and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    listed.chain(inherited).chain(config.tmux.sockets.iter().cloned()).any(|socket| UnixStream::connect(socket).is_ok())
}

fn tmux_dir() -> PathBuf {
    let base = std::env::var_os("TMUX_TMPDIR").filter(|dir| !dir.is_empty()).map_or("/tmp".into(), PathBuf::from);
    base.join(format!("tmux-{}", rustix::process::geteuid().as_raw()))
}

fn wants_demo() -> CliResult<bool> {
    let answer = input::ask("No tmux server is running. Show a demo on a private one? [Y/n]")?;
    Ok(answer.is_some_and(|answer| !matches!(answer.to_lowercase().as_str(), "n" | "no")))
}

/// Parses `agtmux watch`, so that the defaults are defined in one place.
fn watch_args() -> CliResult<watch::WatchArgs> {
    match Cli::try_parse_from(["agtmux", "watch"]).map(|cli| cli.command) {
        Ok(Some(CliCommand::Watch(args))) => Ok(args),
        _ => Err(CliError::io("run `agtmux watch`", "its default arguments are invalid")),
    }
}
