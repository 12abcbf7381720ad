//! Hosts that have tmux and a shell and nothing of ours, behind a real sshd: what is seen of them, and what is done there.

#[path = "support/actions_stage.rs"]
mod actions_stage;
#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;

use std::time::{Duration, Instant};

use actions_stage::{Agent, Stage, assert_done, assert_refused};
use agtmux::{SOON, items, list};
use agtmux_testkit::{TestHost, TestHostOptions, TestHosts, hosts_unavailable_reason, process, wait_for, wait_until};
use http::Answer;
use rustix::process::Signal;
use serde_json::{Value, json};

/// What is promised: this long after a host fell silent it is not called `ok` any more.
const MAX_OUTAGE_DELAY: Duration = Duration::from_secs(10);

/// A hub and the hosts that it knows. The hub ends first.
struct AgentlessHosts {
    stage: Stage,
    hosts: TestHosts,
}

impl AgentlessHosts {
    /// None where there can be no hosts.
    fn new() -> Option<Self> {
        if let Some(why) = hosts_unavailable_reason() {
            eprintln!("skipped: {why}");
            return None;
        }
        let mut hosts = None;
        let stage = Stage::with(|world| {
            hosts = Some(TestHosts::for_hub(world));
            String::new()
        });
        Some(Self { stage, hosts: hosts.expect("made with the world") })
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        let mut request = http::request("POST", path, &headers);
        request.extend(body.as_bytes());
        http::send(&self.stage.socket(), &request).unwrap_or_else(|| panic!("no answer to {path}"))
    }

    /// A host that is watched under its alias.
    #[track_caller]
    fn host(&self, alias: &str) -> TestHost {
        let host = self.hosts.agentless(alias);
        self.add_target(&host);
        host
    }

    #[track_caller]
    fn add_target(&self, host: &TestHost) -> Value {
        let added = assert_done(&self.post("/v1/targets", &json!({"name": host.alias(), "ssh_target": host.alias()})));
        assert_eq!((&added["evidence"], &added["fault"]), (&json!("screen"), &Value::Null), "{added}");
        self.wait_for_healthy(host.alias())
    }

    #[track_caller]
    fn wait_for_healthy(&self, name: &str) -> Value {
        self.wait_for_health(name, "ok")
    }

    #[track_caller]
    fn wait_for_health(&self, name: &str, health: &str) -> Value {
        wait_for(&format!("{name} to be {health}"), SOON, || {
            let targets = self.stage.get("/v1/targets");
            let found = items(&targets).iter().find(|item| item["name"] == name && item["health"] == health).cloned();
            found.ok_or(targets.to_string())
        })
    }

    fn panes(&self) -> Vec<Value> {
        items(&list(&self.stage.world)).clone()
    }
}

#[test]
fn a_host_with_only_tmux_and_a_shell_is_seen_by_its_screens() {
    let Some(net) = AgentlessHosts::new() else { return };
    let host = net.host("vm1");
    let target = net.wait_for_healthy("vm1");
    let hint = target["hint"].as_str().expect("how to see more");
    assert!(hint.contains("install agtmux") && hint.contains("agtmux target connect vm1"), "{target}");
    let agent = net.stage.agent_at("vm1", &host.tmux("default"), "work");
    for (scene, state) in [("running", "running"), ("dialog", "waiting_approval"), ("idle", "idle")] {
        let item = net.stage.show(&agent, scene, state);
        assert_eq!((&item["identity"]["target"], &item["identity"]["session_name"]), (&json!("vm1"), &json!("work")));
    }
    // Each is a pane like any other: its window, its end, and a shell that is none.
    let server = host.tmux("default");
    server.run(&["rename-session", "-t", "=work", "another name"]);
    wait_for("the new name", SOON, || {
        let item = net.stage.item(&agent).unwrap_or_default();
        if item["identity"]["session_name"] == "another name" { Ok(()) } else { Err(item.to_string()) }
    });
    server.run(&["kill-session", "-t", "=another name"]);
    wait_for("its end", SOON, || net.stage.item(&agent).map_or(Ok(()), |item| Err(item.to_string())));
}

/// Panes, sessions and servers of two hosts and of this one have the same names and numbers, and nothing in common.
#[test]
fn what_is_done_on_one_host_is_done_on_that_one_only() {
    let Some(net) = AgentlessHosts::new() else { return };
    let (one, two) = (net.host("vm1"), net.host("vm2"));
    let here = net.stage.agent("work");
    let first = net.stage.agent_at("vm1", &one.tmux("default"), "work");
    let second = net.stage.agent_at("vm2", &two.tmux("default"), "work");
    let twins: Vec<&Agent> = vec![&here, &first, &second];
    assert!(twins.iter().all(|agent| agent.pane == here.pane), "the same number on each");
    let ids: std::collections::BTreeSet<&String> = twins.iter().map(|agent| &agent.runtime).collect();
    assert_eq!(ids.len(), 3, "three agents");

    let text = "two lines\nwith $(touch x), `id` and 'quotes' \\ -x; 日本\n\nand an end";
    let sent = assert_done(&net.stage.send(&first.runtime, text));
    assert_eq!((&sent["verified"], &sent["target"]), (&json!("confirmed"), &json!("vm1")), "{sent}");
    assert_eq!(first.submitted(), [text]);
    second.assert_untouched();
    here.assert_untouched();
    let bare = assert_done(&net.stage.post("view-output", &json!({"ref": here.pane})));
    assert_eq!(bare["target"], "host", "a bare pane is one of this machine: {bare}");

    let shown = assert_done(&net.stage.post("view-output", &json!({"ref": second.runtime, "lines": 20})));
    assert!(shown["lines"].to_string().contains("for shortcuts"), "{shown}");

    net.stage.show(&second, "dialog", "waiting_approval");
    let refused = net.stage.send(&second.runtime, "not into a dialog");
    assert_refused(&refused, "E_PRECONDITION");
    let refused = refused.json();
    assert!(refused["hint"].as_str().is_some_and(|hint| hint.contains(&second.runtime)), "{refused}");
    assert_done(&net.stage.post("respond", &json!({"ref": second.runtime, "answer": "deny"})));
    assert!(!second.all_read().is_empty(), "the answer was typed");
    assert_eq!(first.submitted(), [text], "and nowhere else");
    here.assert_untouched();

    let killed = assert_done(&net.stage.post("kill", &json!({"ref": first.runtime, "signal": "TERM"})));
    assert_eq!(killed["ended"], true, "{killed}");
    wait_for("its end", SOON, || net.stage.item(&first).map_or(Ok(()), |item| Err(item.to_string())));
    net.stage.becomes(&here, "idle");
    assert!(net.stage.item(&second).is_some_and(|item| item["agent_type"] == "claude"));
    assert!(!was_command_executed(&net, &[&one, &two]), "something was run");
}

/// Whether a tmux is being asked this there.
fn runs_tmux_command(host: &TestHost, word: &[u8]) -> bool {
    let words = host.world().processes().into_iter().map(process::argv);
    words.into_iter().any(|argv| argv.iter().any(|argument| argument == word))
}

fn was_command_executed(net: &AgentlessHosts, hosts: &[&TestHost]) -> bool {
    let homes = hosts.iter().map(|host| host.world().home()).chain([net.stage.world.home()]);
    homes.into_iter().any(|home| home.join("x").exists())
}

#[test]
fn a_server_that_begins_anew_is_another_one() {
    let Some(net) = AgentlessHosts::new() else { return };
    let host = net.host("vm1");
    let server = host.tmux("default");
    let before = net.stage.agent_at("vm1", &server, "work");
    server.kill_server();
    wait_for("no pane", SOON, || {
        let panes = net.panes();
        if panes.is_empty() { Ok(()) } else { Err(json!(panes).to_string()) }
    });
    let after = net.stage.agent_at("vm1", &server, "work");
    assert_eq!(before.pane, after.pane, "the same number");
    assert_ne!(before.runtime, after.runtime, "another agent");
    assert_refused(&net.stage.send(&before.runtime, "for the one before"), "E_REF_NOT_FOUND");
    after.assert_untouched();
    // One that hangs is not gone, and costs the others nothing.
    let other = host.tmux("other");
    let quick = net.stage.agent_at("vm1", &other, "quick");
    let pid: u32 = server.run(&["display-message", "-p", "#{pid}"]).parse().expect("a pid");
    process::signal(pid, Signal::STOP);
    let item = net.stage.becomes(&after, "unknown");
    assert_eq!(item["reason_code"], "target_unreachable", "{item}");
    net.stage.show(&quick, "running", "running");
    process::signal(pid, Signal::CONT);
    net.stage.becomes(&after, "idle");
    net.wait_for_healthy("vm1");
}

#[test]
fn a_host_that_is_lost_keeps_its_panes_and_comes_back_without_twins() {
    let Some(net) = AgentlessHosts::new() else { return };
    let (one, two) = (net.host("vm1"), net.host("vm2"));
    let lost = net.stage.agent_at("vm1", &one.tmux("default"), "work");
    let well = net.stage.agent_at("vm2", &two.tmux("default"), "work");
    // The line breaks in the middle of a look, which is made once more; what was typed would not be.
    let server = one.tmux("default");
    let pid: u32 = server.run(&["display-message", "-p", "#{pid}"]).parse().expect("a pid");
    process::signal(pid, Signal::STOP);
    let shown = std::thread::scope(|scope| {
        let look = scope.spawn(|| net.stage.post("view-output", &json!({"ref": lost.runtime})));
        wait_until("the question to be there", SOON, || runs_tmux_command(&one, b"capture-pane"));
        one.kill_sshd();
        process::signal(pid, Signal::CONT);
        one.start_sshd();
        look.join().expect("it is answered")
    });
    assert!(assert_done(&shown)["lines"].to_string().contains("for shortcuts"), "{}", shown.json());
    net.wait_for_healthy("vm1");
    net.stage.becomes(&lost, "idle");
    one.kill_sshd();
    net.wait_for_health("vm1", "down");
    let item = net.stage.becomes(&lost, "unknown");
    assert_eq!((&item["reason_code"], &item["confidence"]), (&json!("target_unreachable"), &json!("low")), "{item}");
    let listing = list(&net.stage.world);
    assert_eq!((&listing["partial"], items(&listing).len()), (&json!(true), 2), "{listing}");
    let refused = net.stage.send(&lost.runtime, "nobody hears this");
    assert_eq!(refused.json()["hint"].as_str().map(str::is_empty), Some(false), "{}", refused.json());
    net.stage.show(&well, "running", "running");
    one.start_sshd();
    net.wait_for_healthy("vm1");
    let item = net.stage.becomes(&lost, "idle");
    assert_eq!(format!("runtime:{}", item["runtime_id"].as_str().expect("an agent has one")), lost.runtime);
    assert_eq!(net.panes().len(), 2, "no twins");
    lost.assert_untouched();
    // One that keeps its connections and does not answer is noticed as well.
    let silent = Instant::now();
    one.freeze();
    net.wait_for_health("vm1", "degraded");
    assert!(silent.elapsed() < MAX_OUTAGE_DELAY, "it was known after {:?}", silent.elapsed());
    net.stage.show(&well, "dialog", "waiting_approval");
    one.thaw();
    net.wait_for_healthy("vm1");
    net.stage.becomes(&lost, "idle");
    assert_eq!(net.panes().len(), 2, "no twins");
}

/// The line is fine and sshd answers; only the shell that is asked does not.
#[test]
fn a_shell_that_hangs_is_noticed_and_replaced() {
    let Some(net) = AgentlessHosts::new() else { return };
    let host = net.host("vm1");
    let agent = net.stage.agent_at("vm1", &host.tmux("default"), "work");
    let is_asked = |pid: &u32| process::argv(*pid) == [b"sh".to_vec()];
    let shell = host.world().processes().into_iter().find(is_asked).expect("a shell there");
    let silent = Instant::now();
    assert!(process::signal(shell, Signal::STOP));
    // No answer is no word about the agent.
    let health = net.stage.get(&format!("/v1/actions/health?ref={}", agent.runtime));
    assert_eq!(health["code"], "E_TARGET_UNREACHABLE", "{health}");
    net.wait_for_health("vm1", "degraded");
    assert!(silent.elapsed() < MAX_OUTAGE_DELAY, "it was known after {:?}", silent.elapsed());
    // Another one is asked as soon as that is known.
    net.wait_for_healthy("vm1");
    net.stage.becomes(&agent, "idle");
    net.stage.show(&agent, "running", "running");
    process::signal(shell, Signal::CONT);
    // What is meant for an agent there is refused then, and not because its tmux would not answer.
    host.freeze();
    assert_refused(&net.stage.send(&agent.runtime, "nobody hears this"), "E_TARGET_UNREACHABLE");
    host.thaw();
    net.stage.becomes(&agent, "running");
    agent.assert_untouched();
}

#[test]
fn names_that_could_be_anything_else_are_refused_and_sessions_of_any_name_are_not() {
    let Some(net) = AgentlessHosts::new() else { return };
    let hostile = ["-oProxyCommand=touch x", "a$(touch x)", "`touch x`", "a;b", "a\nb", "it's", "ünïcode", "a b", ""];
    for name in hostile {
        for body in [json!({"name": name}), json!({"name": "vm9", "ssh_target": name})] {
            assert_refused(&net.post("/v1/targets", &body), "E_BAD_REQUEST");
        }
    }
    assert_eq!(items(&net.stage.get("/v1/targets")).len(), 1, "only this machine");
    for shell in ["/bin/bash", "/usr/bin/fish"] {
        let alias = shell.rsplit('/').next().expect("a name");
        let host = net.hosts.start(alias, TestHostOptions { shell: Some(shell.into()), ..TestHostOptions::default() });
        net.add_target(&host);
        let session = format!("{alias} $(touch x) `touch x`; it's \"ü\"");
        let agent = net.stage.agent_at(alias, &host.tmux("default"), &session);
        let item = net.stage.item(&agent).expect("it is listed");
        assert_eq!(item["identity"]["session_name"], session.as_str());
        assert_done(&net.stage.send(&agent.runtime, &session));
        assert_eq!(agent.submitted(), [session]);
        assert!(!was_command_executed(&net, &[&host]), "something was run");
        wait_until("its panes to be gone", SOON, || {
            let removed =
                http::send(&net.stage.socket(), &http::request("DELETE", &format!("/v1/targets/{alias}"), ""));
            removed.is_some() && net.panes().is_empty()
        });
    }
}

/// A real `ssh -t`, through a login shell that quotes unlike the others.
#[test]
fn attach_leads_to_the_pane_that_is_meant_and_to_no_other() {
    let Some(net) = AgentlessHosts::new() else { return };
    let shell = ["/usr/bin/fish", "/bin/bash"].into_iter().find(|path| std::path::Path::new(path).exists());
    let host = net.hosts.start("vm1", TestHostOptions { shell: shell.map(Into::into), ..TestHostOptions::default() });
    net.add_target(&host);
    let (server, terminal) = (host.tmux("default"), net.stage.world.tmux("terminal"));
    server.new_session("work", "cat");
    let agent = net.stage.agent_at("vm1", &server, "work's $(touch x)");
    let go = format!("unset TMUX TMUX_PANE; {} attach {}; exec cat", env!("CARGO_BIN_EXE_agtmux"), agent.runtime);
    let here = terminal.new_session("here", &go);
    let looked_at = || server.run(&["list-clients", "-F", "#{pane_id}"]);
    wait_for("a client there", SOON, || {
        let seen = looked_at();
        let shown = || terminal.run(&["capture-pane", "-p", "-t", &here]);
        if seen == agent.pane { Ok(()) } else { Err(format!("{seen:?}: {}", shown())) }
    });
    server.run(&["detach-client", "-a"]);
    server.run(&["detach-client", "-s", "=work's $(touch x)"]);
    wait_until("nobody there", SOON, || looked_at().is_empty());
    let printed = agtmux::agtmux(&net.stage.world, &["attach", &agent.runtime, "--print"]);
    let command = printed.text();
    assert!(command.contains("'-t' '-o' 'RemoteCommand=none' '--' 'vm1'"), "{command}");
    // By the time it is run, something else was started there.
    server.run(&["respawn-pane", "-k", "-t", &agent.pane, "cat"]);
    let late =
        terminal.new_session("late", &format!("unset TMUX TMUX_PANE; {}; echo code=$?; exec cat", command.trim()));
    wait_for("a refusal", SOON, || {
        let shown = terminal.run(&["capture-pane", "-p", "-J", "-t", &late]);
        if shown.contains("another program was started") && shown.contains("code=") { Ok(()) } else { Err(shown) }
    });
    assert_eq!(looked_at(), "", "nobody was brought anywhere");
    assert!(!was_command_executed(&net, &[&host]), "something was run");
}

/// Servers that the agtmux of a host told of, before it was taken away: one has ended, the other listens where nobody looks.
#[test]
fn what_another_way_told_of_is_gone_only_when_its_process_is() {
    let Some(net) = AgentlessHosts::new() else { return };
    let host = net.hosts.agentless("vm1");
    let astray = net.stage.world.tmux("astray");
    astray.new_session("work", "cat");
    let pid: u32 = astray.run(&["display-message", "-p", "#{pid}"]).parse().expect("a pid");
    let outage = |server: &str, pid: u32| {
        json!({"kind": "server_outage", "server": server, "generation": {"pid": pid, "start_time": 1},
            "code": "server_not_responding", "message": "told by its agtmux"})
    };
    let hello =
        json!({"type": "hello", "collect": 1, "version": "9", "now": "2026-01-01T00:00:00Z", "tmux_versions": []});
    let batch = json!({"type": "batch", "full": true, "evidence": [outage("astray", pid), outage("ended", 4_194_303)]});
    let script = format!("#!/bin/sh\nprintf '%s\\n' '{hello}' '{batch}'\nread -r line\n");
    host.world().install_script("agtmux", &script);
    let added = assert_done(&net.post("/v1/targets", &json!({"name": "vm1", "ssh_target": "vm1"})));
    let errors = || -> Vec<(String, String)> {
        let listing = list(&net.stage.world);
        let of = listing["target_errors"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // The line itself breaks in between.
        let of = of.iter().filter(|error| !error["server"].is_null());
        of.map(|error| (text(&error["server"]), text(&error["message"]))).collect()
    };
    wait_for("what it told", SOON, || {
        let errors = errors();
        if errors.len() == 2 { Ok(()) } else { Err(format!("{errors:?} {added}")) }
    });
    host.world().install_script("agtmux", "#!/bin/sh\nexit 127\n");
    net.post("/v1/targets/vm1/connect", &json!({}));
    wait_for("only the one that lives", SOON, || match &errors()[..] {
        [(server, message)] if server == "astray" && message.contains("its process lives") => Ok(()),
        errors => Err(format!("{errors:?} {}", net.stage.get("/v1/targets"))),
    });
    astray.kill_server();
    wait_for("no server at all", SOON, || {
        let errors = errors();
        if errors.is_empty() { Ok(()) } else { Err(format!("{errors:?}")) }
    });
}
