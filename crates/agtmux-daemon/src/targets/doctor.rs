//! What a host has, what that means, and what to run.

use std::process::{Output, Stdio};
use std::time::Duration;

use agtmux_api::error::ApiError;
use agtmux_api::wire::{TargetCheck, TargetCheckReport};
use agtmux_api::{SCHEMA_VERSION, VERSION};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::is_agent_name;
use agtmux_core::sanitize;
use agtmux_core::target::SshTarget;
use agtmux_tmux::host::EXTRA_PATH_DIRS;
use agtmux_tmux::ssh::{ConnectionSharing, ProcessGroup};
use agtmux_tmux::{MIN_VERSION, TmuxVersion};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::TargetManager;

/// A login by an older machine, and a look at a few programs.
const SSH_TIMEOUT: Duration = Duration::from_secs(12);
/// Far more than the question brings.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// A clock that is further off than this is worth a word.
const MAX_CLOCK_DIFFERENCE_MS: i64 = 5_000;

/// What the host said of itself, a word and a value a line.
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
                target: self.local_item(),
                checks: Vec::new(),
            });
        }
        let (key, ssh, link) = self.find(name)?;
        let (reached, found) = self.probe(&key, &ssh, &agents).await;
        let mut checks = vec![reached];
        if let Some(found) = found {
            let target = self.item(&key, &ssh, &link);
            checks.extend([
                check_tmux(&found),
                check_agtmux(&found, &ssh),
                check_agents(&found),
                check_hooks(&found, &ssh),
            ]);
            checks.extend(target.clock_ahead_ms.map(check_clock));
        }
        Ok(TargetCheckReport { schema_version: SCHEMA_VERSION, target: self.item(&key, &ssh, &link), checks })
    }

    /// By a login of its own: what is tried is what a person would get.
    async fn probe(
        &self,
        target: &TargetName,
        destination: &SshTarget,
        agents: &[String],
    ) -> (TargetCheck, Option<HostReport>) {
        let agents: Vec<&str> = agents.iter().map(String::as_str).filter(|name| is_agent_name(name)).collect();
        let command = self.ssh(target, destination).command(ConnectionSharing::Dedicated, probe_command(&agents));
        let answer = tokio::time::timeout(SSH_TIMEOUT, run_bounded(command)).await;
        let by_hand = Some(format!("ssh {destination} true   (it has to work without a question)"));
        let fails = |found: String| {
            let means = "agtmux cannot look at this host".into();
            (TargetCheck { name: "ssh".into(), ok: false, found, means, run: by_hand.clone() }, None)
        };
        match answer {
            Err(_) => fails(format!("no answer within {} s", SSH_TIMEOUT.as_secs())),
            Ok(Err(error)) => fails(format!("ssh cannot be started: {error}")),
            Ok(Ok(output)) if output.status.success() => {
                let means = "this host can be looked at".into();
                let check = TargetCheck { name: "ssh".into(), ok: true, found: "connects".into(), means, run: None };
                (check, Some(parse_report(&String::from_utf8_lossy(&output.stdout))))
            }
            Ok(Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last =
                    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed, and said nothing");
                fails(sanitize_line(last))
            }
        }
    }
}

/// What it prints, as far as anybody would read it. Who prints more is cut off.
async fn run_bounded(mut command: Command) -> std::io::Result<Output> {
    let mut group = ProcessGroup::new(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    let (out, err) = (group.child().stdout.take(), group.child().stderr.take());
    let (stdout, stderr) = tokio::join!(read_bounded(out), read_bounded(err));
    Ok(Output { status: group.child().wait().await?, stdout, stderr })
}

async fn read_bounded(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut said = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(MAX_OUTPUT_BYTES).read_to_end(&mut said).await;
    }
    said
}

/// No quotes but those around it: it is the same to every shell.
fn probe_command(agents: &[&str]) -> String {
    format!(
        "exec sh -c 'PATH=\"$PATH:{EXTRA_PATH_DIRS}\"; export PATH; \
         echo \"tmux=$(tmux -V 2>/dev/null)\"; echo \"agtmux=$(agtmux --version 2>/dev/null)\"; \
         for agent in {}; do command -v \"$agent\" >/dev/null 2>&1 && echo \"agent=$agent\"; done; \
         if command -v agtmux >/dev/null 2>&1; then \
         if agtmux setup --dry-run --json 2>/dev/null | grep -Eq \"action.: ?.(create|change)\"; \
         then echo hooks=missing; else echo hooks=present; fi; fi; exit 0'",
        agents.join(" ")
    )
}

fn parse_report(answer: &str) -> HostReport {
    let mut found = HostReport::default();
    for (word, value) in answer.lines().filter_map(|line| line.split_once('=')) {
        match word {
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
    let run = Some("install tmux there with its package manager".to_owned());
    if found.tmux.is_empty() {
        return check("tmux", false, "no tmux", "there is nothing to watch", run);
    }
    let fine = TmuxVersion::parse(&found.tmux).is_supported();
    let means = if fine { "its panes can be watched" } else { "it is too old to be watched" };
    check("tmux", fine, format!("{} (needs {MIN_VERSION})", found.tmux), means, run)
}

fn check_agtmux(found: &HostReport, ssh: &SshTarget) -> TargetCheck {
    let install = format!("scp \"$(command -v agtmux)\" {ssh}:.local/bin/   (same system), or cargo install there");
    let version = found.agtmux.strip_prefix("agtmux ").unwrap_or(&found.agtmux);
    if version.is_empty() {
        let means = "only its screens and processes are seen, about a second late, and hooks there reach nobody";
        return check("agtmux", false, "not installed", means, Some(install));
    }
    let same = version == VERSION;
    let means = if same { "all that agents there tell and show is known at once" } else { "it is another version" };
    check("agtmux", same, format!("{version} (here: {VERSION})"), means, Some(install))
}

fn check_agents(found: &HostReport) -> TargetCheck {
    let any = !found.agents.is_empty();
    let (list, means) = match any {
        true => (found.agents.join(", "), "these are known by their processes and screens"),
        false => ("none on the PATH".to_owned(), "an agent that is started there by its path is seen all the same"),
    };
    check("agents", any, list, means, Some("install one, or look with `agtmux list panes --all`".into()))
}

/// What `agtmux setup` there would change: nothing where everything is in place.
fn check_hooks(found: &HostReport, ssh: &SshTarget) -> TargetCheck {
    let run = Some(format!("ssh -t {ssh} agtmux setup"));
    if found.hooks.is_empty() {
        return check("hooks", false, "not known", "without agtmux there no hook can be set up", None);
    }
    match found.hooks == "missing" {
        true => check("hooks", false, "not in place", "agents there do not tell of themselves", run),
        false => check("hooks", true, "in place", "agents there tell of themselves", run),
    }
}

fn check_clock(ahead_ms: i64) -> TargetCheck {
    let off = ahead_ms.abs() > MAX_CLOCK_DIFFERENCE_MS;
    let means = if off { "times from there are put right; set its clock" } else { "it agrees with ours" };
    check("clock", !off, format!("{ahead_ms} ms ahead"), means, Some("timedatectl set-ntp true   (there)".into()))
}

#[cfg(test)]
mod tests {
    use super::super::test_process;
    use super::*;

    #[tokio::test]
    async fn who_says_too_much_is_cut_off() {
        let mut endless = Command::new("yes");
        endless.kill_on_drop(true);
        let output = run_bounded(endless).await.expect("it ran");
        assert_eq!(output.stdout.len() as u64, MAX_OUTPUT_BYTES);
    }

    /// Such as a program that leads over another host.
    #[tokio::test]
    async fn whoever_does_not_answer_leaves_nothing_behind() {
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
    fn what_a_host_says_is_read_and_cleaned() {
        let found =
            parse_report("hello\ntmux=tmux 3.3a\nagtmux=agtmux \u{1b}[31m9\nagent=claude\nagent=$(x)\nhooks=present\n");
        assert_eq!((found.tmux.as_str(), found.agents.as_slice()), ("tmux 3.3a", &["claude".to_owned()][..]));
        assert!(!found.agtmux.contains('\u{1b}'));
        assert!(check_tmux(&found).ok && !check_agtmux(&found, &"vm1".parse().expect("a host")).ok);
        let bare = parse_report("tmux=\nagtmux=\n");
        let ssh = "vm1".parse().expect("a host");
        for check in [check_tmux(&bare), check_agtmux(&bare, &ssh), check_agents(&bare)] {
            assert!(!check.ok && check.run.is_some(), "{check:?}");
        }
    }

    #[test]
    fn the_question_is_one_word_to_every_shell() {
        let question = probe_command(&["claude", "codex"]);
        let inner = question.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(inner.is_some_and(|inner| !inner.contains('\'') && !inner.contains('\\')), "{question}");
    }
}
