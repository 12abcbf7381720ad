//! Checks a host: what is installed there, what that means for agtmux, and which command to run next.

use std::process::{Output, Stdio};
use std::time::Duration;

use agtmux_api::error::ApiError;
use agtmux_api::wire::{TargetCheck, TargetCheckReport};
use agtmux_api::{SCHEMA_VERSION, VERSION};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::is_agent_name;
use agtmux_core::sanitize;
use agtmux_core::target::SshTarget;
use agtmux_tmux::host::find_agtmux_commands;
use agtmux_tmux::ssh::{ConnectionSharing, ProcessGroup};
use agtmux_tmux::{MIN_VERSION, TmuxVersion};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::connection_end::last_line;
use super::targets::TargetManager;

/// How long the probe may take. Enough for a slow login and a few programs.
const SSH_TIMEOUT: Duration = Duration::from_secs(12);
/// The most bytes of each output stream that are kept. The probe prints far less.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// A larger difference between the clocks is reported as a problem.
const MAX_CLOCK_DIFFERENCE_MS: i64 = 5_000;

/// The parsed output of the probe: one `key=value` per line.
#[derive(Debug, Default)]
struct HostReport {
    tmux: String,
    agtmux: String,
    agents: Vec<String>,
    hooks: String,
}

impl TargetManager {
    pub(crate) async fn checkup(&self, name: &str, agents: Vec<String>) -> Result<TargetCheckReport, ApiError> {
        if name == TargetName::LOCAL {
            return Ok(TargetCheckReport {
                schema_version: SCHEMA_VERSION,
                target: self.item(name)?,
                checks: Vec::new(),
            });
        }
        let (key, ssh, _) = self.find(name)?;
        let (reached, found) = self.probe(&key, &ssh, &agents).await;
        let mut checks = vec![reached];
        if let Some(found) = found {
            checks.extend([
                check_tmux(&found),
                check_agtmux(&found, &ssh),
                check_agents(&found),
                check_hooks(&found, &ssh),
            ]);
            checks.extend(self.item(name)?.status.clock_ahead_ms.map(check_clock));
        }
        Ok(TargetCheckReport { schema_version: SCHEMA_VERSION, target: self.item(name)?, checks })
    }

    /// Probes the host over a new connection that is not shared, like an ssh command that the user runs.
    async fn probe(
        &self,
        target: &TargetName,
        destination: &SshTarget,
        agents: &[String],
    ) -> (TargetCheck, Option<HostReport>) {
        let agents: Vec<&str> = agents.iter().map(String::as_str).filter(|name| is_agent_name(name)).collect();
        let command = self.ssh(target, destination).command(ConnectionSharing::Dedicated, probe_command(&agents));
        let answer = tokio::time::timeout(SSH_TIMEOUT, run_bounded(command)).await;
        let fails = |found: String| {
            let manual_check = format!("ssh {destination} true   (must work without a prompt)");
            (check("ssh", false, found, "agtmux cannot reach this host", Some(manual_check)), None)
        };
        match answer {
            Err(_) => fails(format!("no answer within {} s", SSH_TIMEOUT.as_secs())),
            Ok(Err(error)) => fails(format!("could not start ssh: {error}")),
            Ok(Ok(output)) if output.status.success() => {
                let reached = check("ssh", true, "connects", "agtmux can reach this host", None);
                (reached, Some(parse_report(&String::from_utf8_lossy(&output.stdout))))
            }
            Ok(Ok(output)) => {
                let last = last_line(&String::from_utf8_lossy(&output.stderr));
                fails(last.unwrap_or_else(|| "ssh failed without an error message".into()))
            }
        }
    }
}

/// Runs the command and keeps at most `MAX_OUTPUT_BYTES` of each stream.
async fn run_bounded(mut command: Command) -> std::io::Result<Output> {
    let mut group = ProcessGroup::new(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    let (out, err) = (group.child().stdout.take(), group.child().stderr.take());
    let (stdout, stderr) = tokio::join!(read_bounded(out), read_bounded(err));
    Ok(Output { status: group.child().wait().await?, stdout, stderr })
}

async fn read_bounded(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes).await;
    }
    bytes
}

/// The script inside the quotes contains no single quotes, so that every login shell passes it as one word.
fn probe_command(agents: &[&str]) -> String {
    format!(
        "exec sh -c '{find}\
         echo \"tmux=$(tmux -V 2>/dev/null)\"; echo \"agtmux=$(agtmux --version 2>/dev/null)\"; \
         for agent in {}; do command -v \"$agent\" >/dev/null 2>&1 && echo \"agent=$agent\"; done; \
         if command -v agtmux >/dev/null 2>&1; then \
         if agtmux setup --dry-run --json 2>/dev/null | grep -Eq \"action.: ?.(create|change)\"; \
         then echo hooks=missing; else echo hooks=present; fi; fi; exit 0'",
        agents.join(" "),
        find = find_agtmux_commands(),
    )
}

fn parse_report(answer: &str) -> HostReport {
    let mut found = HostReport::default();
    for (key, value) in answer.lines().filter_map(|line| line.split_once('=')) {
        match key {
            "tmux" => found.tmux = sanitize_line(value),
            "agtmux" => found.agtmux = sanitize_line(value),
            "agent" if found.agents.len() < 64 && is_agent_name(value) => found.agents.push(value.to_owned()),
            "hooks" => found.hooks = sanitize_line(value),
            _ => {}
        }
    }
    found
}

fn sanitize_line(text: &str) -> String {
    sanitize::for_terminal(&text.trim().chars().take(300).collect::<String>())
}

fn check(name: &str, ok: bool, found: impl Into<String>, means: &str, run: Option<String>) -> TargetCheck {
    let run = run.filter(|_| !ok);
    TargetCheck { name: name.into(), ok, found: found.into(), means: means.into(), run }
}

fn check_tmux(found: &HostReport) -> TargetCheck {
    let run = Some("install tmux on the host with its package manager".to_owned());
    if found.tmux.is_empty() {
        return check("tmux", false, "no tmux", "without tmux, the host has no panes to watch", run);
    }
    let fine = TmuxVersion::parse(&found.tmux).is_supported();
    let means = if fine { "agtmux can watch the panes of the host" } else { "this version of tmux is too old" };
    check("tmux", fine, format!("{} (needs {MIN_VERSION})", found.tmux), means, run)
}

fn check_agtmux(found: &HostReport, ssh: &SshTarget) -> TargetCheck {
    let install =
        format!("scp \"$(command -v agtmux)\" {ssh}:.local/bin/   (same platform only); or on the host: cargo install");
    let version = found.agtmux.strip_prefix("agtmux ").unwrap_or(&found.agtmux);
    if version.is_empty() {
        let means = "only screens and processes are visible, about a second late; hooks on the host are not delivered";
        return check("agtmux", false, "not installed", means, Some(install));
    }
    let same = version == VERSION;
    let means = if same { "events and screens of the host arrive at once" } else { "the versions differ" };
    check("agtmux", same, format!("{version} (here: {VERSION})"), means, Some(install))
}

fn check_agents(found: &HostReport) -> TargetCheck {
    let any = !found.agents.is_empty();
    let (list, means) = match any {
        true => (found.agents.join(", "), "agtmux recognises these agents by process and screen"),
        false => ("none on the PATH".to_owned(), "agents that are started by path are still detected"),
    };
    check("agents", any, list, means, Some("install an agent, or check with `agtmux list panes --all`".into()))
}

/// Checks whether `agtmux setup` on the host would change anything.
fn check_hooks(found: &HostReport, ssh: &SshTarget) -> TargetCheck {
    let run = Some(format!("ssh -t {ssh} agtmux setup"));
    if found.hooks.is_empty() {
        return check("hooks", false, "unknown", "hooks need agtmux on the host", None);
    }
    match found.hooks == "missing" {
        true => check("hooks", false, "not installed", "agents on the host do not report events", run),
        false => check("hooks", true, "installed", "agents on the host report events", run),
    }
}

fn check_clock(ahead_ms: i64) -> TargetCheck {
    let off = ahead_ms.abs() > MAX_CLOCK_DIFFERENCE_MS;
    let means = match off {
        true => "agtmux corrects the times that the host reports; set the host's clock",
        false => "the clocks agree",
    };
    check("clock", !off, format!("{ahead_ms} ms ahead"), means, Some("timedatectl set-ntp true   (on the host)".into()))
}

#[cfg(test)]
mod tests {
    use super::super::test_process;
    use super::*;

    #[tokio::test]
    async fn endless_output_is_cut_off() {
        let mut endless = Command::new("yes");
        endless.kill_on_drop(true);
        let output = run_bounded(endless).await.expect("the command ran");
        assert_eq!(output.stdout.len() as u64, MAX_OUTPUT_BYTES);
    }

    /// ssh may have started a helper, such as a ProxyCommand.
    #[tokio::test]
    async fn an_aborted_probe_leaves_no_process() {
        let dir = tempfile::tempdir().expect("a directory");
        let left = dir.path().join("left");
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "sleep 600 & echo $! >\"$1\"; wait", "sh"]).arg(&left).process_group(0).kill_on_drop(true);
        let hangs = tokio::spawn(run_bounded(hangs));
        let id = test_process::wait_for_pid_file(&left).await;
        hangs.abort();
        test_process::wait_for_exit(id).await;
    }

    #[test]
    fn the_report_is_parsed_and_sanitized() {
        let found =
            parse_report("hello\ntmux=tmux 3.3a\nagtmux=agtmux \u{1b}[31m9\nagent=claude\nagent=$(x)\nhooks=present\n");
        assert_eq!((found.tmux.as_str(), found.agents.as_slice()), ("tmux 3.3a", &["claude".to_owned()][..]));
        assert!(!found.agtmux.contains('\u{1b}'));
        assert!(check_tmux(&found).ok && !check_agtmux(&found, &"vm1".parse().expect("a host")).ok);
        let empty = parse_report("tmux=\nagtmux=\n");
        let ssh = "vm1".parse().expect("a host");
        for check in [check_tmux(&empty), check_agtmux(&empty, &ssh), check_agents(&empty)] {
            assert!(!check.ok && check.run.is_some(), "{check:?}");
        }
    }

    #[test]
    fn the_probe_command_has_no_inner_quotes() {
        let command = probe_command(&["claude", "codex"]);
        let inner = command.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(inner.is_some_and(|inner| !inner.contains('\'') && !inner.contains('\\')), "{command}");
    }
}
