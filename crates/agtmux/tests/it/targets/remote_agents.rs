//! Agents on remote hosts are listed and controlled like local ones, and hosts are never mixed up.

use std::fs;
use std::thread;

use agtmux_testkit::action_fixture::SETTINGS;
use agtmux_testkit::agtmux::{self, SOON, agtmux, configure, items, pid, start, stop, world};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, run_on_host, runtime_ref};
use agtmux_testkit::{TestHostOptions, TestHosts, process, skip_without_hosts, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_remote_agent_has_the_same_states_and_history_as_a_local_one() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let idle = hub.wait_for_state("vm1", &agent, "idle");
    agent.draw_scene("dialog");
    let asks = hub.wait_for_state("vm1", &agent, "waiting_approval");
    assert_eq!(asks["dialog"]["options"][0]["label"], "Yes", "{asks}");
    assert_eq!(asks["runtime_id"], idle["runtime_id"]);

    let explained = hub.agtmux(&["explain", &runtime_ref(&asks), "--json"]).json();
    assert!(explained.to_string().contains("screen"), "{explained}");
    let history = hub.agtmux(&["history", &runtime_ref(&asks), "--json"]).json();
    let states: Vec<&Value> = items(&history).iter().map(|item| &item["state"]).collect();
    assert!(states.contains(&&json!("idle")) && states.contains(&&json!("waiting_approval")), "{history}");

    // A hook event reaches the daemon of its own host, which forwards it to the hub.
    agent.draw_scene("garbage");
    let key = ["emit", "--pane", &agent.pane, "--source", "hook", "--event-type", "waiting_input", "--dedupe-key", "1"];
    assert_eq!(run_on_host(&host, &key).code, Some(0));
    hub.wait_for_state("vm1", &agent, "waiting_input");
    assert!(!hub.agtmux(&["list", "panes", "--target", "host", "--json"]).text().contains("\"vm1\""));
    let unknown = hub.agtmux(&["list", "panes", "--target", "vm9"]);
    assert_eq!(unknown.code, Some(5), "{}", unknown.stderr);
}

#[test]
fn an_action_reaches_only_the_named_host() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let hosts = [hub.host("vm1"), hub.host("vm2")];
    let here = FakeAgent::start(&hub.world, "work");
    let there: Vec<FakeAgent> = hosts.iter().map(|host| FakeAgent::start(host.world(), "work")).collect();
    let first = hub.wait_for_state("vm1", &there[0], "idle");
    let second = hub.wait_for_state("vm2", &there[1], "idle");
    hub.wait_for_state("host", &here, "idle");

    // Three hosts have the same session and agent, so these references are ambiguous.
    for ambiguous in ["work", "claude"] {
        assert_eq!(hub.send(ambiguous, "hello").json()["code"], "E_REF_AMBIGUOUS");
    }
    let sent = hub.send(&runtime_ref(&first), "for the first").json();
    assert_eq!((&sent["target"], &sent["verified"]), (&json!("vm1"), &json!("confirmed")), "{sent}");
    let reference =
        format!("pane:vm2/work/{}/{}", second["identity"]["window_id"].as_str().expect("one"), there[1].pane);
    let output = hub.post("view-output", &json!({"ref": reference})).json();
    assert!(output["lines"].to_string().contains("earlier") && output["tty"].is_null(), "{output}");

    there[1].draw_scene("dialog");
    let asks = hub.wait_for_state("vm2", &there[1], "waiting_approval");
    let answered = hub.post("respond", &json!({"ref": runtime_ref(&asks), "answer": {"option": 1}})).json();
    assert_eq!((&answered["target"], &answered["answered"]), (&json!("vm2"), &json!("1. Yes")), "{answered}");
    let killed = hub.post("kill", &json!({"ref": runtime_ref(&asks), "signal": "KILL"})).json();
    assert_eq!(killed["ended"], true, "{killed}");

    assert!(there[0].typed_text().contains("for the first"));
    assert_eq!(here.typed_text(), "", "the local agent received nothing");
    let audit = hub.audit();
    let done: Vec<(&Value, &Value)> =
        audit.iter().filter(|row| row["status"] == "done").map(|row| (&row["kind"], &row["target"])).collect();
    let kinds = [("send", "vm1"), ("view-output", "vm2"), ("respond", "vm2"), ("kill", "vm2")];
    for (kind, target) in kinds {
        assert!(done.contains(&(&json!(kind), &json!(target))), "{kind} on {target} in {audit:?}");
    }
    // The audit log of the remote host has the send too.
    assert!(run_on_host(&hosts[0], &["audit", "--json"]).text().contains("for the first"));
}

#[test]
fn failed_guards_are_refused_on_remote_hosts() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let idle = hub.wait_for_state("vm1", &agent, "idle");
    let refused = |more: Value| {
        let mut body = json!({"ref": runtime_ref(&idle), "text": "no"});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        hub.post("send", &body).json()["code"].clone()
    };
    assert_eq!(refused(json!({"if_state": "running"})), "E_STATE_CHANGED");
    assert_eq!(refused(json!({"if_runtime": "0"})), "E_RUNTIME_STALE");
    let other = json!({"if_pane": {"server_pid": 1, "server_start": 1, "pane_pid": 1}, "force_stale": true});
    assert_eq!(refused(other), "E_RUNTIME_STALE", "force_stale does not override the pane guard");
    assert_eq!(agent.typed_text(), "");
    // The hub still has the old runtime; the host must refuse it.
    let daemon = pid(host.world());
    assert!(process::signal(daemon, Signal::STOP));
    agent.server.run(&["respawn-pane", "-k", "-t", &agent.pane, "cat >read"]);
    assert!(process::signal(daemon, Signal::CONT));
    let code = hub.send(&runtime_ref(&idle), "too late").json()["code"].clone();
    assert!(["E_RUNTIME_STALE", "E_REF_NOT_FOUND", "E_RUNTIME_NOT_FOUND"].map(Value::from).contains(&code), "{code}");
    wait_until("the agent's end to be known", SOON, || hub.item("vm1", &agent).is_some_and(|i| i["state"].is_null()));
    assert!(!agent.server.run(&["capture-pane", "-p", "-t", &agent.pane]).contains("too late"));
}

/// The dialog changes while the answer is on its way to the host.
#[test]
fn an_answer_is_refused_when_the_remote_dialog_changed() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    agent.draw_scene("dialog");
    let asks = hub.wait_for_state("vm1", &agent, "waiting_approval");
    let known_there = |subject: &str| {
        wait_until("the host to list the dialog", SOON, || {
            run_on_host(&host, &["list", "panes", "--json"]).text().contains(subject)
        });
    };
    let is_ssh = |pid: &u32| process::argv(*pid).first().is_some_and(|word| word.ends_with(b"/ssh"));
    let ssh = process::children(pid(&hub.world)).into_iter().find(is_ssh).expect("an ssh of ours");
    assert!(process::signal(ssh, Signal::STOP));
    agent.draw_scene("other");
    known_there("everything");
    thread::scope(|scope| {
        let answer =
            scope.spawn(|| hub.post("respond", &json!({"ref": runtime_ref(&asks), "answer": "approve"})).json());
        wait_until("the hub to send the answer", SOON, || hub.audit().iter().any(|row| row["status"] == "begun"));
        assert!(process::signal(ssh, Signal::CONT));
        let answer = answer.join().expect("an answer");
        assert_eq!(answer["code"], "E_STATE_CHANGED", "{answer}");
    });
    assert_eq!(agent.typed_text(), "", "the new dialog received no answer");
}

#[test]
fn sessions_with_the_same_name_are_merged_only_on_request() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let (here, there) = (FakeAgent::start(&hub.world, "work"), FakeAgent::start(host.world(), "work"));
    hub.wait_for_state("host", &here, "idle");
    hub.wait_for_state("vm1", &there, "idle");
    let apart = hub.agtmux(&["list", "sessions", "--json"]).json();
    assert_eq!(items(&apart).len(), 2, "{apart}");
    let merged = hub.agtmux(&["list", "sessions", "--group-by", "session-name", "--json"]).json();
    let [session] = &items(&merged)[..] else { panic!("one session: {merged}") };
    assert_eq!(session["panes"], 2, "{merged}");
    for target in ["host", "vm1"] {
        assert_eq!(session["by_target"][target]["panes"], 1, "{merged}");
        assert_eq!(merged["summary"]["by_target"][target], 1, "{merged}");
    }
    let table = hub.agtmux(&["list", "sessions", "--group-by", "session-name"]).text();
    assert!(table.contains("host 1 · vm1 1"), "{table}");
}

/// When the adapter is enabled again, the hub uses the evidence that it stored earlier. The host need not send anything
/// new.
#[test]
fn an_adapter_enabled_again_restores_remote_states_at_once() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    agent.draw_scene("dialog");
    let asks = hub.wait_for_state("vm1", &agent, "waiting_approval");
    assert_eq!(hub.agtmux(&["adapters", "disable", "claude"]).code, Some(0));
    hub.wait_for_state("vm1", &agent, "unknown");
    assert_eq!(hub.agtmux(&["adapters", "enable", "claude"]).code, Some(0));
    let again = hub.wait_for_state("vm1", &agent, "waiting_approval");
    assert_eq!(again["dialog"]["fingerprint"], asks["dialog"]["fingerprint"], "{again}");
}

/// Running and ended tasks are listed, also by a hub that connects later.
#[test]
fn remote_tasks_are_listed_as_tasks() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let gate = host.world().home().join("gate");
    let command = format!("until [ -e {} ]; do sleep 0.05; done; exit 3", gate.display());
    let project = host.world().home().display().to_string();
    let task = |args: &[&str]| {
        let session = run_on_host(&host, &["task", "session-name", &project, "1"]).text().trim().to_owned();
        let done = run_on_host(&host, &[&["task", args[0], "--session", &session], &args[1..]].concat());
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        done
    };
    let started = task(&["run", "--project", &project, "--json", "build", "--", &command]);
    let pane = started.json()["pane_id"].clone();
    let becomes = |state: &str| {
        wait_for(&format!("the task to be {state}"), SOON, || {
            let items = hub.items("vm1");
            let task = items.iter().find(|item| item["identity"]["pane_id"] == pane).cloned().unwrap_or_default();
            let is_it = task["agent_type"] == "task" && task["name"] == "build" && task["state"] == state;
            if is_it { Ok(task) } else { Err(json!(items).to_string()) }
        })
    };
    let running = becomes("running");
    fs::write(&gate, "").expect("written");
    let ended = becomes("error");
    assert_eq!(ended["runtime_id"], running["runtime_id"], "the task keeps its runtime id");
    assert_eq!(hub.agtmux(&["target", "remove", "vm1", "--yes"]).code, Some(0));
    assert_eq!(hub.items("vm1"), Vec::<Value>::new());
    hub.add_target("vm1");
    assert_eq!(becomes("error")["dead"]["exit_code"], 3);
    // A task removed on the host is removed on the hub too.
    task(&["prune-dead"]);
    wait_until("the task to be gone", SOON, || hub.items("vm1").iter().all(|item| item["agent_type"] != "task"));
}

#[test]
fn two_hubs_share_the_daemon_of_one_host() {
    if skip_without_hosts() {
        return;
    }
    let (first, second) = (HubFixture::new(), world());
    let host = first.host("vm1");
    configure(&second, SETTINGS);
    let others = TestHosts::for_hub(&second);
    others.grant_access(&first.hosts, &host, "box");
    let added = agtmux(&second, &["target", "add", "vm", "--ssh-target", "box", "--json"]).json();
    assert_eq!(added["health"], "ok", "{added}");
    let agent = FakeAgent::start(host.world(), "work");
    let item_of_first = first.wait_for_state("vm1", &agent, "idle");
    let item_of_second = wait_for("the other hub to list the agent", SOON, || {
        let listing = agtmux::list(&second);
        items(&listing).iter().find(|item| item["state"] == "idle").cloned().ok_or(listing.to_string())
    });
    assert_eq!(item_of_second["identity"]["target"], "vm");
    assert_ne!(item_of_second["runtime_id"], item_of_first["runtime_id"], "each hub has its own runtime id");
    assert_eq!(host.world().daemons().len(), 1);
    assert_eq!(first.send(&runtime_ref(&item_of_first), "from the first").json()["verified"], "confirmed");
    assert_eq!(agtmux(&second, &["send", &runtime_ref(&item_of_second), "--text", "from the second"]).code, Some(0));
    let typed = agent.typed_text();
    assert!(typed.contains("from the first") && typed.contains("from the second"), "{typed:?}");
}

#[test]
fn targets_survive_restarts_until_they_are_removed() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    stop(&hub.world);
    start(&hub.world);
    let after = hub.wait_for_state("vm1", &agent, "idle");
    assert_eq!(after["runtime_id"], before["runtime_id"]);
    // The store must not contain the ssh key.
    let database = fs::read(hub.world.state_dir().join("state.db")).expect("a database");
    let key = fs::read(hub.world.dir().join("ssh/key")).expect("a key");
    let line = key.split(|byte| *byte == b'\n').nth(1).expect("a key has lines");
    assert!(!database.windows(line.len()).any(|part| part == line));

    assert_eq!(hub.agtmux(&["target", "remove", "vm1"]).code, Some(2), "removal needs a confirmation");
    assert_eq!(hub.agtmux(&["target", "remove", "vm1", "--yes"]).code, Some(0));
    assert_eq!(hub.items("vm1"), Vec::<Value>::new());
    assert_eq!(hub.list()["partial"], false);
    wait_until("the host to be left alone", SOON, || host.sshd_pids().len() == 1);
    stop(&hub.world);
    start(&hub.world);
    assert_eq!(hub.target("vm1"), Value::Null);
    // The target can be added again, now with another agent in the same pane.
    agent.server.run(&["respawn-pane", "-k", "-t", &agent.pane, &host.world().fake_agent_command("codex")]);
    hub.add_target("vm1");
    wait_until("the other agent", SOON, || hub.items("vm1").iter().any(|item| item["agent_type"] == "codex"));
}

/// A login shell may print text and a title without a newline.
#[test]
fn output_of_the_login_shell_is_ignored() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let shell = hub.world.dir().join("greets");
    hub.world.install_script(
        "greets",
        "#!/bin/sh\nprintf 'Welcome!\\nYou have mail.\\n\\033]0;me@vm1\\007'\nexec /bin/sh \"$@\"\n",
    );
    fs::rename(hub.world.bin().join("greets"), &shell).expect("moved");
    let agtmux = Some(env!("CARGO_BIN_EXE_agtmux").into());
    let host = hub.hosts.start("vm1", TestHostOptions { agtmux, shell: Some(shell), ..TestHostOptions::default() });
    configure(host.world(), SETTINGS);
    hub.add_target("vm1");
    assert_eq!(hub.target("vm1")["evidence"], "native");
}

#[test]
fn connect_upgrades_to_native_evidence_and_falls_back_to_screens() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.hosts.agentless("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let connect = || hub.agtmux(&["target", "connect", "vm1", "--json"]).json();
    hub.agtmux(&["target", "add", "vm1"]);
    assert_eq!(hub.target("vm1")["evidence"], "screen");
    hub.wait_for_state("vm1", &agent, "idle");
    // This agtmux speaks the protocol for a while and then prints garbage.
    let babbles = "printf '{\"type\":\"hello\",\"collect\":2,\"version\":\"9\",\"now\":\"2026-01-01T00:00:00Z\",\
                   \"tmux_versions\":[]}\\n{\"type\":\"batch\",\"full\":true,\"evidence\":[]}\\n'; \
                   while ! [ -e \"$HOME/babble\" ]; do printf '{\"type\":\"heartbeat\",\"now\":\"2026-01-01T00:00:00Z\"}\\n'; \
                   sleep 0.1; done; echo babble; exec cat >/dev/null";
    host.world().install_script("agtmux", &format!("#!/bin/sh\n{babbles}\n"));
    let better = connect();
    assert_eq!(better["evidence"], "native", "connect must return the result of the attempt: {better}");
    fs::write(host.world().home().join("babble"), "").expect("written");
    wait_until("the fallback to screens", SOON, || hub.target("vm1")["evidence"] == "screen");
    hub.wait_for_state("vm1", &agent, "idle");
}

/// agtmux may be in a directory that only a login shell has on its PATH.
#[test]
fn agtmux_is_found_on_the_path_of_the_login_shell() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.hosts.agentless("vm1");
    configure(host.world(), SETTINGS);
    let odd = host.world().home().join("odd");
    fs::create_dir(&odd).expect("made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_agtmux"), odd.join("agtmux")).expect("linked");
    for profile in [".profile", ".bash_profile", ".zprofile"] {
        let text = format!("echo Welcome\nPATH=\"$PATH:{}\"\n", odd.display());
        fs::write(host.world().home().join(profile), text).expect("written");
    }
    hub.agtmux(&["target", "add", "vm1"]);
    assert_eq!(hub.target("vm1")["evidence"], "native");
    let text = hub.agtmux(&["target", "doctor", "vm1"]).text();
    assert!(text.contains("ok  agtmux"), "{text}");
}

#[test]
fn target_doctor_reports_what_a_host_has() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let _host = hub.host("vm1");
    let checkup = hub.agtmux(&["target", "doctor", "vm1", "--json"]);
    let found: Value = serde_json::from_slice(&checkup.stdout).expect("JSON");
    let check = |name: &str| found["checks"].as_array().into_iter().flatten().find(|c| c["name"] == name).cloned();
    for name in ["ssh", "tmux", "agtmux"] {
        assert_eq!(check(name).map(|check| check["ok"].clone()), Some(json!(true)), "{name} in {found}");
    }
    let bare = hub.hosts.agentless("vm2");
    hub.agtmux(&["target", "add", "vm2"]);
    let text = hub.agtmux(&["target", "doctor", "vm2"]);
    assert_eq!(text.code, Some(1));
    assert!(text.text().contains("NO  agtmux") && text.text().contains("run: "), "{}", text.text());
    bare.kill_sshd();
    let text = hub.agtmux(&["target", "doctor", "vm2"]).text();
    assert!(text.contains("NO  ssh") && text.contains("ssh vm2 true"), "{text}");
}
