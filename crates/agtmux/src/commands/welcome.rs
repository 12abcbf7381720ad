//! `agtmux welcome`: run by `make run` after the build.

use std::io::IsTerminal;

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use agtmux_tmux::{SocketDir, is_listening, socket_of_tmux_variable};

use super::{demo, interface, list};
use crate::error::CliResult;
use crate::input;
use crate::terminal::StdoutTerminal;

pub(crate) async fn run() -> CliResult {
    let config = Config::load(&Paths::from_env()?.config)?;
    let on_terminal = StdoutTerminal::detect().is_tty;
    if tmux_server_runs(&config) {
        return match interface::is_possible() {
            true => interface::run(false).await,
            false => list::run(list::ListArgs::default()).await,
        };
    }
    if on_terminal && std::io::stdin().is_terminal() && !wants_demo()? {
        return Ok(());
    }
    demo::run().await
}

/// Checks the sockets without the daemon, so that no daemon is left running on a machine without tmux servers.
fn tmux_server_runs(config: &Config) -> bool {
    let listed = SocketDir::below(std::env::var_os("TMUX_TMPDIR").as_deref()).sockets();
    let inherited = std::env::var("TMUX").ok().and_then(|tmux| socket_of_tmux_variable(&tmux));
    listed.iter().chain(&inherited).chain(&config.tmux.sockets).any(|socket| is_listening(socket))
}

fn wants_demo() -> CliResult<bool> {
    let answer = input::ask("No tmux server is running. Show a demo on a private tmux server? [Y/n]")?;
    Ok(answer.is_some_and(|answer| !matches!(answer.to_lowercase().as_str(), "n" | "no")))
}
