//! Agentless hosts behind a real sshd: how their panes are watched and how actions reach them.

use std::time::{Duration, Instant};

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent, assert_done, assert_refused};
use agtmux_testkit::agtmux::{SOON, items, list};
use agtmux_testkit::http::{self, HttpResponse};
use agtmux_testkit::{TestHost, TestHostOptions, TestHosts, process, skip_without_hosts, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A host that stops answering must no longer be `ok` when this time has passed.
const MAX_OUTAGE_DELAY: Duration = Duration::from_secs(10);

/// A hub and its hosts. The fields are dropped in this order, so that the hub stops before the hosts.
struct AgentlessHosts {
    fixture: ActionFixture,
    hosts: TestHosts,
}

impl AgentlessHosts {
    /// Returns None if test hosts cannot run here.
    fn new() -> Option<Self> {
        if skip_without_hosts() {
            return None;
        }
        let mut hosts = None;
        let fixture = ActionFixture::with_world(|world| {
            hosts = Some(TestHosts::for_hub(world));
            String::new()
        });
        Some(Self { fixture, hosts: hosts.expect("made with the world") })
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> HttpResponse {
        http::post(&self.fixture.socket(), path, &body.to_string())
    }

    /// Starts a host and adds it as a target under its alias.
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
            let targets = self.fixture.get("/v1/targets");
            let found = items(&targets).iter().find(|item| item["name"] == name && item["health"] == health).cloned();
            found.ok_or(targets.to_string())
        })
    }

    fn panes(&self) -> Vec<Value> {
        items(&list(&self.fixture.world)).clone()
    }
}

#[test]
fn an_agentless_host_is_watched_by_its_screens() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let host = hub.host("vm1");
    let target = hub.wait_for_healthy("vm1");
    let hint = target["hint"].as_str().expect("how to see more");
    assert!(hint.contains("install agtmux") && hint.contains("agtmux target connect vm1"), "{target}");
    let agent = hub.fixture.agent_on_target("vm1", &host.tmux("default"), "work");
    for (scene, state) in [("running", "running"), ("dialog", "waiting_approval"), ("idle", "idle")] {
        let item = hub.fixture.show_scene(&agent, scene, state);
        assert_eq!((&item["identity"]["target"], &item["identity"]["session_name"]), (&json!("vm1"), &json!("work")));
    }
    // Renames and removals are followed as on the local host.
    let server = host.tmux("default");
    server.run(&["rename-session", "-t", "=work", "another name"]);
    wait_for("the new name", SOON, || {
        let item = hub.fixture.item(&agent).unwrap_or_default();
        if item["identity"]["session_name"] == "another name" { Ok(()) } else { Err(item.to_string()) }
    });
    server.run(&["kill-session", "-t", "=another name"]);
    wait_for("the pane to be removed", SOON, || hub.fixture.item(&agent).map_or(Ok(()), |item| Err(item.to_string())));
}

/// Two hosts and the local host have panes with the same ids, in sessions and servers with the same names.
#[test]
fn actions_reach_only_the_named_host() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let (one, two) = (hub.host("vm1"), hub.host("vm2"));
    let here = hub.fixture.agent("work");
    let first = hub.fixture.agent_on_target("vm1", &one.tmux("default"), "work");
    let second = hub.fixture.agent_on_target("vm2", &two.tmux("default"), "work");
    let agents: Vec<&RecordingAgent> = vec![&here, &first, &second];
    assert!(agents.iter().all(|agent| agent.pane == here.pane), "the same pane id on each host");
    let ids: std::collections::BTreeSet<&String> = agents.iter().map(|agent| &agent.runtime).collect();
    assert_eq!(ids.len(), 3, "three agents");

    let text = "two lines\nwith $(touch x), `id` and 'quotes' \\ -x; 日本\n\nand an end";
    let sent = assert_done(&hub.fixture.send(&first.runtime, text));
    assert_eq!((&sent["verified"], &sent["target"]), (&json!("confirmed"), &json!("vm1")), "{sent}");
    assert_eq!(first.submitted_texts(), [text]);
    second.assert_no_input();
    here.assert_no_input();
    let bare = assert_done(&hub.fixture.post("view-output", &json!({"ref": here.pane})));
    assert_eq!(bare["target"], "host", "a bare pane id is a local pane: {bare}");

    let shown = assert_done(&hub.fixture.post("view-output", &json!({"ref": second.runtime, "lines": 20})));
    assert!(shown["lines"].to_string().contains("for shortcuts"), "{shown}");

    hub.fixture.show_scene(&second, "dialog", "waiting_approval");
    let refused = hub.fixture.send(&second.runtime, "not into a dialog");
    assert_refused(&refused, "E_PRECONDITION");
    let refused = refused.json();
    assert!(refused["hint"].as_str().is_some_and(|hint| hint.contains("pane:vm2@default/work/@0/%0")), "{refused}");
    assert_done(&hub.fixture.post("respond", &json!({"ref": second.runtime, "answer": "deny"})));
    assert!(!second.complete_input().is_empty(), "the answer was typed");
    assert_eq!(first.submitted_texts(), [text], "the first host got no input");
    here.assert_no_input();

    let killed = assert_done(&hub.fixture.post("kill", &json!({"ref": first.runtime, "signal": "TERM"})));
    assert_eq!(killed["ended"], true, "{killed}");
    wait_for("the agent to be removed", SOON, || hub.fixture.item(&first).map_or(Ok(()), |item| Err(item.to_string())));
    hub.fixture.wait_for_state(&here, "idle");
    assert!(hub.fixture.item(&second).is_some_and(|item| item["agent_type"] == "claude"));
    assert!(!was_command_executed(&hub, &[&one, &two]), "a text was executed");
}

/// Whether a process on the host has this argument.
fn runs_tmux_command(host: &TestHost, word: &[u8]) -> bool {
    let words = host.world().processes().into_iter().map(process::argv);
    words.into_iter().any(|argv| argv.iter().any(|argument| argument == word))
}

fn was_command_executed(hub: &AgentlessHosts, hosts: &[&TestHost]) -> bool {
    let homes = hosts.iter().map(|host| host.world().home()).chain([hub.fixture.world.home()]);
    homes.into_iter().any(|home| home.join("x").exists())
}

#[test]
fn a_restarted_remote_server_has_new_runtimes() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let host = hub.host("vm1");
    let server = host.tmux("default");
    let before = hub.fixture.agent_on_target("vm1", &server, "work");
    server.kill_server();
    wait_for("no pane", SOON, || {
        let panes = hub.panes();
        if panes.is_empty() { Ok(()) } else { Err(json!(panes).to_string()) }
    });
    let after = hub.fixture.agent_on_target("vm1", &server, "work");
    assert_eq!(before.pane, after.pane, "the same pane id");
    assert_ne!(before.runtime, after.runtime, "a new runtime");
    assert_refused(&hub.fixture.send(&before.runtime, "for the previous agent"), "E_REF_NOT_FOUND");
    after.assert_no_input();
    // A hung server keeps its panes and does not delay other servers.
    let other = host.tmux("other");
    let quick = hub.fixture.agent_on_target("vm1", &other, "quick");
    let pid: u32 = server.run(&["display-message", "-p", "#{pid}"]).parse().expect("a pid");
    process::signal(pid, Signal::STOP);
    let item = hub.fixture.wait_for_state(&after, "unknown");
    assert_eq!(item["reason_code"], "target_unreachable", "{item}");
    hub.fixture.show_scene(&quick, "running", "running");
    process::signal(pid, Signal::CONT);
    hub.fixture.wait_for_state(&after, "idle");
    hub.wait_for_healthy("vm1");
}

#[test]
fn an_unreachable_host_keeps_its_panes_and_returns_without_duplicates() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let (one, two) = (hub.host("vm1"), hub.host("vm2"));
    let lost = hub.fixture.agent_on_target("vm1", &one.tmux("default"), "work");
    let well = hub.fixture.agent_on_target("vm2", &two.tmux("default"), "work");
    // The connection breaks during a capture. The capture is repeated; typed text would not be.
    let server = one.tmux("default");
    let pid: u32 = server.run(&["display-message", "-p", "#{pid}"]).parse().expect("a pid");
    process::signal(pid, Signal::STOP);
    let shown = std::thread::scope(|scope| {
        let view = scope.spawn(|| hub.fixture.post("view-output", &json!({"ref": lost.runtime})));
        wait_until("the capture to run on the host", SOON, || runs_tmux_command(&one, b"capture-pane"));
        one.kill_sshd();
        process::signal(pid, Signal::CONT);
        one.start_sshd();
        view.join().expect("the request is answered")
    });
    assert!(assert_done(&shown)["lines"].to_string().contains("for shortcuts"), "{}", shown.json());
    hub.wait_for_healthy("vm1");
    hub.fixture.wait_for_state(&lost, "idle");
    one.kill_sshd();
    hub.wait_for_health("vm1", "down");
    let item = hub.fixture.wait_for_state(&lost, "unknown");
    assert_eq!((&item["reason_code"], &item["confidence"]), (&json!("target_unreachable"), &json!("low")), "{item}");
    let listing = list(&hub.fixture.world);
    assert_eq!((&listing["partial"], items(&listing).len()), (&json!(true), 2), "{listing}");
    let refused = hub.fixture.send(&lost.runtime, "never typed");
    assert_eq!(refused.json()["hint"].as_str().map(str::is_empty), Some(false), "{}", refused.json());
    hub.fixture.show_scene(&well, "running", "running");
    one.start_sshd();
    hub.wait_for_healthy("vm1");
    let item = hub.fixture.wait_for_state(&lost, "idle");
    assert_eq!(format!("runtime:{}", item["runtime_id"].as_str().expect("an agent has a runtime id")), lost.runtime);
    assert_eq!(hub.panes().len(), 2, "no duplicate panes");
    lost.assert_no_input();
    // A host that keeps its connections but does not answer is detected as well.
    let silent = Instant::now();
    one.freeze();
    hub.wait_for_health("vm1", "degraded");
    assert!(silent.elapsed() < MAX_OUTAGE_DELAY, "detected after {:?}", silent.elapsed());
    hub.fixture.show_scene(&well, "dialog", "waiting_approval");
    one.thaw();
    hub.wait_for_healthy("vm1");
    hub.fixture.wait_for_state(&lost, "idle");
    assert_eq!(hub.panes().len(), 2, "no duplicate panes");
}

/// The connection and sshd work; only the remote shell hangs.
#[test]
fn a_hung_remote_shell_is_detected_and_replaced() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let host = hub.host("vm1");
    let agent = hub.fixture.agent_on_target("vm1", &host.tmux("default"), "work");
    let is_remote_shell = |pid: &u32| process::argv(*pid) == [b"sh".to_vec()];
    let shell = host.world().processes().into_iter().find(is_remote_shell).expect("a shell on the host");
    let silent = Instant::now();
    assert!(process::signal(shell, Signal::STOP));
    // Without an answer the health of the agent is unknown.
    let health = hub.fixture.get(&format!("/v1/actions/health?ref={}", agent.runtime));
    assert_eq!(health["code"], "E_TARGET_UNREACHABLE", "{health}");
    hub.wait_for_health("vm1", "degraded");
    assert!(silent.elapsed() < MAX_OUTAGE_DELAY, "detected after {:?}", silent.elapsed());
    // The hub then starts another shell.
    hub.wait_for_healthy("vm1");
    hub.fixture.wait_for_state(&agent, "idle");
    hub.fixture.show_scene(&agent, "running", "running");
    process::signal(shell, Signal::CONT);
    // Actions on a frozen host are refused because the host is unreachable, not because of its tmux.
    host.freeze();
    assert_refused(&hub.fixture.send(&agent.runtime, "never typed"), "E_TARGET_UNREACHABLE");
    host.thaw();
    hub.fixture.wait_for_state(&agent, "running");
    agent.assert_no_input();
}

#[test]
fn hostile_target_names_are_refused_and_hostile_session_names_work() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let hostile = ["-oProxyCommand=touch x", "a$(touch x)", "`touch x`", "a;b", "a\nb", "it's", "ünïcode", "a b", ""];
    for name in hostile {
        for body in [json!({"name": name}), json!({"name": "vm9", "ssh_target": name})] {
            assert_refused(&hub.post("/v1/targets", &body), "E_BAD_REQUEST");
        }
    }
    assert_eq!(items(&hub.fixture.get("/v1/targets")).len(), 1, "only the local host");
    for shell in ["/bin/bash", "/usr/bin/fish"] {
        let alias = shell.rsplit('/').next().expect("a name");
        let host = hub.hosts.start(alias, TestHostOptions { shell: Some(shell.into()), ..TestHostOptions::default() });
        hub.add_target(&host);
        let session = format!("{alias} $(touch x) `touch x`; it's \"ü\"");
        let agent = hub.fixture.agent_on_target(alias, &host.tmux("default"), &session);
        let item = hub.fixture.item(&agent).expect("the agent is listed");
        assert_eq!(item["identity"]["session_name"], session.as_str());
        assert_done(&hub.fixture.send(&agent.runtime, &session));
        assert_eq!(agent.submitted_texts(), [session]);
        assert!(!was_command_executed(&hub, &[&host]), "a text was executed");
        wait_until("the panes of the host to be removed", SOON, || {
            let removed =
                http::send(&hub.fixture.socket(), &http::request("DELETE", &format!("/v1/targets/{alias}"), ""));
            removed.is_some() && hub.panes().is_empty()
        });
    }
}

/// Uses a real `ssh -t`, through fish if it is installed, because fish quotes differently.
#[test]
fn remote_attach_opens_only_the_named_pane() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let shell = ["/usr/bin/fish", "/bin/bash"].into_iter().find(|path| std::path::Path::new(path).exists());
    let host = hub.hosts.start("vm1", TestHostOptions { shell: shell.map(Into::into), ..TestHostOptions::default() });
    hub.add_target(&host);
    let (server, terminal) = (host.tmux("default"), hub.fixture.world.tmux("terminal"));
    server.new_session("work", "cat");
    let agent = hub.fixture.agent_on_target("vm1", &server, "work's $(touch x)");
    let go = format!("unset TMUX TMUX_PANE; {} attach {}; exec cat", env!("CARGO_BIN_EXE_agtmux"), agent.runtime);
    let here = terminal.new_session("here", &go);
    let client_pane = || server.run(&["list-clients", "-F", "#{pane_id}"]);
    wait_for("an attached client", SOON, || {
        let seen = client_pane();
        let shown = || terminal.run(&["capture-pane", "-p", "-t", &here]);
        if seen == agent.pane { Ok(()) } else { Err(format!("{seen:?}: {}", shown())) }
    });
    server.run(&["detach-client", "-a"]);
    server.run(&["detach-client", "-s", "=work's $(touch x)"]);
    wait_until("no client", SOON, || client_pane().is_empty());
    let printed = agtmux_testkit::agtmux::agtmux(&hub.fixture.world, &["attach", &agent.runtime, "--print"]);
    let command = printed.text();
    assert!(command.contains("'-t' '-o' 'RemoteCommand=none' '--' 'vm1'"), "{command}");
    // The pane is respawned before the printed command runs.
    server.run(&["respawn-pane", "-k", "-t", &agent.pane, "cat"]);
    let late =
        terminal.new_session("late", &format!("unset TMUX TMUX_PANE; {}; echo code=$?; exec cat", command.trim()));
    wait_for("a refusal", SOON, || {
        let shown = terminal.run(&["capture-pane", "-p", "-J", "-t", &late]);
        if shown.contains("another program was started") && shown.contains("code=") { Ok(()) } else { Err(shown) }
    });
    assert_eq!(client_pane(), "", "no client is attached");
    assert!(!was_command_executed(&hub, &[&host]), "a text was executed");
}

/// The agtmux on the host first reports two servers. Then it is replaced by a program that fails, so that the host
/// becomes agentless. One of the reported servers has ended. The other one runs, but with a socket that the hub does
/// not list.
#[test]
fn an_agentless_host_keeps_unlisted_servers_while_their_process_lives() {
    let Some(hub) = AgentlessHosts::new() else { return };
    let host = hub.hosts.agentless("vm1");
    let astray = hub.fixture.world.tmux("astray");
    astray.new_session("work", "cat");
    let pid: u32 = astray.run(&["display-message", "-p", "#{pid}"]).parse().expect("a pid");
    let outage = |server: &str, pid: u32| {
        json!({"kind": "server_outage", "server": {"name": server, "pid": pid, "start_time": 1},
            "outage": {"code": "server_not_responding", "message": "reported by its agtmux"}})
    };
    let hello =
        json!({"type": "hello", "collect": 2, "version": "9", "now": "2026-01-01T00:00:00Z", "tmux_versions": []});
    let batch = json!({"type": "batch", "full": true, "evidence": [outage("astray", pid), outage("ended", 4_194_303)]});
    let script = format!("#!/bin/sh\nprintf '%s\\n' '{hello}' '{batch}'\nread -r line\n");
    host.world().install_script("agtmux", &script);
    let added = assert_done(&hub.post("/v1/targets", &json!({"name": "vm1", "ssh_target": "vm1"})));
    let errors = || -> Vec<(String, String)> {
        let listing = list(&hub.fixture.world);
        let of = listing["target_errors"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // Skip the error of the broken connection.
        let of = of.iter().filter(|error| !error["server"].is_null());
        of.map(|error| (text(&error["server"]), text(&error["message"]))).collect()
    };
    wait_for("both reported servers", SOON, || {
        let errors = errors();
        if errors.len() == 2 { Ok(()) } else { Err(format!("{errors:?} {added}")) }
    });
    host.world().install_script("agtmux", "#!/bin/sh\nexit 127\n");
    hub.post("/v1/targets/vm1/connect", &json!({}));
    wait_for("only the live server", SOON, || match &errors()[..] {
        [(server, message)] if server == "astray" && message.contains("the server's process runs") => Ok(()),
        errors => Err(format!("{errors:?} {}", hub.fixture.get("/v1/targets"))),
    });
    astray.kill_server();
    wait_for("no server", SOON, || {
        let errors = errors();
        if errors.is_empty() { Ok(()) } else { Err(format!("{errors:?}")) }
    });
}
