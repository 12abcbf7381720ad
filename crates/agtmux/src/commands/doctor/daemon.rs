//! Checks of the daemon and of what it watches. The daemon is not started.

use std::net::TcpStream;
use std::time::Duration;

use agtmux_api::config::Config;
use agtmux_api::wire::{AdapterHealth, AdapterList, DaemonHealth, ListQuery, TargetList};
use agtmux_client::{ClientError, DaemonClient};
use agtmux_core::target::TargetKind;

use super::check::DoctorCheck;
use crate::error::CliResult;

const PORT_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn checks() -> CliResult<Vec<DoctorCheck>> {
    let daemon = DaemonClient::from_env()?;
    let health: DaemonHealth = match daemon.api.get_bytes("/v1/health", &ListQuery::default()).await {
        Ok(bytes) => agtmux_client::parse(&bytes)?,
        Err(ClientError::NotRunning(_)) => {
            let found = "not running; the first command that needs it starts it";
            return Ok(vec![DoctorCheck::warning("daemon", found, "agtmux daemon start")]);
        }
        Err(error @ ClientError::Version { .. }) => {
            return Ok(vec![DoctorCheck::problem("daemon", error.to_string(), "agtmux daemon restart")]);
        }
        Err(error) => return Ok(vec![DoctorCheck::problem("daemon", error.to_string(), "agtmux daemon logs")]),
    };
    let config = Config::load(&daemon.paths.config).unwrap_or_default();
    let mut checks = vec![version(&health), store(&health)];
    checks.extend(components(&health));
    checks.extend(servers(&health, &config));
    if let Ok(adapters) = daemon.get::<AdapterList>("/v1/adapters", &()).await {
        checks.extend(adapter_checks(&adapters));
    }
    if let Ok(targets) = daemon.get::<TargetList>("/v1/targets", &()).await {
        checks.extend(target_checks(&targets));
    }
    checks.push(port(&config));
    Ok(checks)
}

fn version(health: &DaemonHealth) -> DoctorCheck {
    match health.version == agtmux_api::VERSION {
        true => DoctorCheck::ok("daemon", format!("version {}, pid {}", health.version, health.pid)),
        false => {
            let found = format!("version {}, but this is agtmux {}", health.version, agtmux_api::VERSION);
            DoctorCheck::warning("daemon", found, "agtmux daemon restart")
        }
    }
}

fn store(health: &DaemonHealth) -> DoctorCheck {
    let path = &health.store.path;
    match (&health.store.error, &health.store.quarantined) {
        (Some(error), _) => DoctorCheck::problem("store", format!("{path}: {error}"), format!("df -h '{path}'")),
        (None, Some(moved)) => {
            let found = format!("the old database was damaged and is kept at {moved}");
            DoctorCheck::warning("store", found, format!("rm '{moved}'   (when you do not need it)"))
        }
        (None, None) => DoctorCheck::ok("store", path.clone()),
    }
}

fn components(health: &DaemonHealth) -> Vec<DoctorCheck> {
    // The first summarises what other checks report; the second counts agents that do not accept input.
    let is_usual = |name: &str| matches!(name, "tmux_bridge" | "commander_availability");
    let failed = health.components.iter().filter(|(name, state)| !is_usual(name) && state.status != "ok");
    failed
        .map(|(name, state)| {
            DoctorCheck::problem("component", format!("{name}: {}", state.detail), "agtmux daemon logs")
        })
        .collect()
}

fn servers(health: &DaemonHealth, config: &Config) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    for server in health.servers.iter().filter(|server| server.target == "host") {
        let name = &server.server;
        checks.push(match (server.hooks || !config.tmux.hooks, server.evidence.as_str()) {
            (false, _) => {
                let found = format!("{name}: the tmux hooks are not installed, so changes are found later");
                DoctorCheck::warning("tmux server", found, "agtmux daemon restart")
            }
            (true, "polling") if config.tmux.pty_events && cfg!(target_os = "linux") => {
                let found = format!("{name}: terminals cannot be watched, so panes are polled");
                DoctorCheck::warning("tmux server", found, "agtmux daemon logs")
            }
            (true, evidence) => {
                let found = format!("{name}: tmux {}, {} panes, {evidence}", server.tmux_version, server.panes);
                DoctorCheck::ok("tmux server", found)
            }
        });
    }
    if health.servers.is_empty() && health.target_errors.is_empty() {
        checks.push(DoctorCheck::warning("tmux server", "no tmux server is running", "tmux new-session"));
    }
    let errors = health.target_errors.iter().map(|error| {
        let server = error.server.as_ref().map(|server| format!("@{server}")).unwrap_or_default();
        DoctorCheck::problem("tmux server", format!("{}{server}: {}", error.target, error.message), error.hint.clone())
    });
    checks.extend(errors);
    checks
}

fn adapter_checks(adapters: &AdapterList) -> Vec<DoctorCheck> {
    let check_file = |file: &str| format!("agtmux adapters check {file}");
    let broken = adapters.broken.iter().map(|broken| {
        DoctorCheck::problem("adapter", format!("{}: {}", broken.file, broken.error), check_file(&broken.file))
    });
    let of_item = |item: &agtmux_api::wire::AdapterItem| {
        if let (Some(error), Some(file)) = (&item.error, &item.file) {
            return Some(DoctorCheck::problem("adapter", format!("{}: {error}", item.name), check_file(file)));
        }
        match item.health {
            AdapterHealth::Ok => Some(DoctorCheck::ok("adapter", format!("{}: {} agents", item.name, item.agents))),
            AdapterHealth::Degraded => {
                let found =
                    format!("{}: the state of {} of {} agents is unknown", item.name, item.unknown, item.agents);
                Some(DoctorCheck::warning("adapter", found, "agtmux explain"))
            }
            AdapterHealth::Unused | AdapterHealth::Disabled => None,
        }
    };
    broken.chain(adapters.items.iter().filter_map(of_item)).collect()
}

fn target_checks(targets: &TargetList) -> Vec<DoctorCheck> {
    let remote = targets.items.iter().map(|item| &item.status).filter(|status| status.kind == TargetKind::Ssh);
    remote
        .map(|status| match &status.message {
            None => DoctorCheck::ok("target", format!("{}: {}", status.name, status.health)),
            Some(message) => {
                let run = status.hint.clone().unwrap_or_else(|| format!("agtmux target doctor {}", status.name));
                DoctorCheck::problem("target", format!("{}: {}, {message}", status.name, status.health), run)
            }
        })
        .collect()
}

fn port(config: &Config) -> DoctorCheck {
    let Some(address) = config.web.listen.0 else { return DoctorCheck::ok("port", "off (web.listen is empty)") };
    // Port 0 means that the system chooses a port.
    match address.port() == 0 || TcpStream::connect_timeout(&address, PORT_TIMEOUT).is_ok() {
        true => DoctorCheck::ok("port", address.to_string()),
        false => DoctorCheck::problem("port", format!("nothing listens on {address}"), "agtmux daemon restart"),
    }
}
