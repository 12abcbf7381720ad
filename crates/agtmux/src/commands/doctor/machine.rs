//! Checks of this machine that need no daemon: tmux, settings, directories, hooks of agents, and helper programs.

use std::path::Path;

use agtmux_api::config::Config;
use agtmux_api::paths::{Paths, owned_dir};
use agtmux_core::notify::NotifyChannel;
use agtmux_tmux::{MIN_VERSION, TmuxError, TmuxServer};

use super::check::DoctorCheck;
use crate::commands::setup;
use crate::error::CliResult;

pub(super) async fn checks() -> CliResult<Vec<DoctorCheck>> {
    let paths = Paths::from_env()?;
    let (settings, config) = settings(&paths);
    let mut checks = vec![tmux(&config).await, settings];
    checks.extend(directories(&paths));
    checks.extend(agent_hooks());
    checks.extend(notifications(&config));
    Ok(checks)
}

/// The settings, or the defaults if the file is not valid.
fn settings(paths: &Paths) -> (DoctorCheck, Config) {
    let path = Config::resolve_file(&paths.config).unwrap_or_else(|_| paths.config.clone());
    match Config::load(&paths.config) {
        Ok(config) if path.exists() => (DoctorCheck::ok("settings", path.display().to_string()), config),
        Ok(config) => (DoctorCheck::ok("settings", "all defaults"), config),
        Err(error) => {
            let found = error.to_string().lines().collect::<Vec<_>>().join(" ");
            let run = "agtmux config check";
            (DoctorCheck::problem("settings", found, run), Config::default())
        }
    }
}

async fn tmux(config: &Config) -> DoctorCheck {
    let install = "install tmux 3.2 or newer, for example: sudo apt-get install tmux";
    match TmuxServer::program_version(&config.tmux.program, config.tmux.command_timeout.0).await {
        Ok(version) if version.is_supported() => DoctorCheck::ok("tmux", format!("tmux {version}")),
        Ok(version) => DoctorCheck::problem("tmux", format!("tmux {version} is older than {MIN_VERSION}"), install),
        Err(error @ TmuxError::NotInstalled(_)) => DoctorCheck::problem("tmux", error.to_string(), install),
        Err(error) => DoctorCheck::problem("tmux", error.to_string(), "tmux -V"),
    }
}

/// Checks who can replace or read the files of agtmux.
fn directories(paths: &Paths) -> Vec<DoctorCheck> {
    let socket_dir = paths.socket.parent().unwrap_or(Path::new("/"));
    let dirs = [(paths.state_dir.as_path(), "AGTMUX_STATE_DIR"), (socket_dir, "AGTMUX_SOCKET")];
    dirs.into_iter().filter(|(dir, _)| dir.is_dir()).map(|(dir, variable)| directory(dir, variable)).collect()
}

fn directory(dir: &Path, variable: &'static str) -> DoctorCheck {
    use std::os::unix::fs::PermissionsExt;
    let name = "permissions";
    let shown = dir.display();
    if let Err(error) = owned_dir(dir, variable) {
        return DoctorCheck::problem(name, error.to_string(), format!("ls -ld '{shown}'"));
    }
    let others = 0o077;
    match std::fs::metadata(dir) {
        Ok(data) if data.permissions().mode() & others != 0 => {
            DoctorCheck::warning(name, format!("other users can read {shown}"), format!("chmod 700 '{shown}'"))
        }
        Ok(_) => DoctorCheck::ok(name, format!("only you can read {shown}")),
        Err(error) => DoctorCheck::problem(name, format!("{shown}: {error}"), format!("ls -ld '{shown}'")),
    }
}

fn agent_hooks() -> Vec<DoctorCheck> {
    let name = "agent hooks";
    match setup::hook_status() {
        Err(_) => vec![DoctorCheck::warning(name, "cannot find the settings of agents", "agtmux setup --dry-run")],
        Ok(agents) if agents.is_empty() => vec![DoctorCheck::ok(name, "no agent is installed that has hooks")],
        Ok(agents) => {
            let status = |(agent, complete): &(&str, bool)| match complete {
                true => DoctorCheck::ok(name, format!("{agent} reports its events")),
                false => {
                    let found = format!("{agent} does not report its events, or its hooks are out of date");
                    DoctorCheck::warning(name, found, format!("agtmux setup --agent {agent}"))
                }
            };
            agents.iter().map(status).collect()
        }
    }
}

/// Checks the programs and services that the rules of notifications need.
fn notifications(config: &Config) -> Vec<DoctorCheck> {
    let name = "notifications";
    let used = config.notify.used_channels();
    if used.is_empty() {
        return vec![DoctorCheck::ok(name, "no rules, so nothing is sent")];
    }
    let words: Vec<&str> = used.iter().map(|channel| channel.as_str()).collect();
    let uses = |channel, url: &str| used.contains(&channel) && url.starts_with("https://");
    let needs_curl =
        uses(NotifyChannel::Webhook, &config.notify.webhook_url) || uses(NotifyChannel::Ntfy, &config.notify.ntfy_url);
    let mut checks = vec![DoctorCheck::ok(name, format!("rules use {}", words.join(", ")))];
    if needs_curl && !is_on_path("curl") {
        let run = "install curl, for example: sudo apt-get install curl";
        checks.push(DoctorCheck::problem(name, "https:// needs curl, which is not installed", run));
    }
    let runtime_bus = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("bus"));
    let has_bus = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some() || runtime_bus.is_some_and(|bus| bus.exists());
    if used.contains(&NotifyChannel::Desktop) && cfg!(target_os = "linux") && !has_bus {
        let run = "agtmux notify test desktop, in a session of the desktop";
        checks.push(DoctorCheck::warning(name, "there is no D-Bus session for the channel 'desktop'", run));
    }
    checks
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
