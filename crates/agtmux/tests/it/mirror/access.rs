//! Which agents may use a shared terminal, and what counts as done by them.

use agtmux_testkit::agtmux::{SOON, agtmux, items, list, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_agtmux");

/// An agent that executes lines, and a shell of a person.
struct AgentBesideTerminal {
    server: TestTmuxServer,
    world: TestWorld,
    agent: String,
    victim: String,
    /// A shell of the person in the session of the agent, older than the agent.
    shell: String,
}

impl AgentBesideTerminal {
    fn start() -> Self {
        let world = world();
        let server = world.tmux("default");
        let victim = server.new_session("person", "PS1='$ ' exec sh -i");
        let agent = server.new_session("agent", "PS1='$ ' exec sh -i");
        server.run(&["set-option", "-g", "default-shell", "/bin/bash"]);
        server.run(&["resize-window", "-t", "=agent:", "-x", "200", "-y", "50"]);
        let split = ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=agent:", "PS1='$ ' exec bash --norc"];
        let shell = server.run(&split).trim().to_owned();
        start(&world);
        let fixture = Self { server, world, agent, victim, shell };
        let program = fixture.world.shell_copy("claude");
        fixture.type_line(
            &fixture.agent,
            &format!("{} -c 'while read -r line; do eval \"$line\"; done'", program.display()),
        );
        wait_for("the agent to be listed", SOON, || {
            let listing = list(&fixture.world);
            items(&listing).iter().any(|item| item["agent_type"] == "claude").then_some(())
        });
        fixture
    }

    fn type_line(&self, pane: &str, line: &str) {
        self.server.run(&["send-keys", "-t", pane, "-l", line]);
        self.server.run(&["send-keys", "-t", pane, "Enter"]);
    }

    /// Lets the agent run a line. Returns its output and its code.
    #[track_caller]
    fn agent_runs(&self, name: &str, line: &str) -> (String, String) {
        let path = |ending: &str| self.world.dir().join("tmp").join(format!("{name}.{ending}"));
        let (output, draft, code) = (path("output"), path("draft"), path("code"));
        let script = format!(
            "{line} >{} 2>&1; echo $? >{}; mv {} {}",
            output.display(),
            draft.display(),
            draft.display(),
            code.display()
        );
        std::fs::write(path("sh"), script).expect("the world is writable");
        self.type_line(&self.agent, &format!("sh {}", path("sh").display()));
        let code = wait_for(&format!("{name} to end"), SOON, || std::fs::read_to_string(&code).ok());
        (std::fs::read_to_string(output).unwrap_or_default(), code.trim().to_owned())
    }
}

#[test]
fn an_agent_runs_commands_in_its_own_terminal_and_cannot_act_through_it() {
    let fixture = AgentBesideTerminal::start();
    let (output, code) =
        fixture.agent_runs("own", &format!("{PROGRAM} mirror exec 'echo seen; exit_code=3; (exit 3)'"));
    assert_eq!((output.as_str(), code.as_str()), ("seen\n", "3"));
    let status = agtmux(&fixture.world, &["mirror", "status", "--json"]).json();
    let pane = status["items"][0]["pane_id"].as_str().expect("a terminal").to_owned();
    let client = fixture.server.attach("agent");
    fixture.server.run(&["select-pane", "-t", &pane]);
    agtmux_testkit::wait_for_next_second();
    let send = |file: &str| format!("{PROGRAM} send {} --profile shell --text \"touch {file}\"", fixture.victim);
    // The same command from the agent is refused: while it runs, detached, and as a job that it leaves behind.
    let refused = fixture.world.dir().join("tmp/refused").display().to_string();
    let (output, code) = fixture.agent_runs("acts", &format!("{PROGRAM} mirror exec '{}'", send(&refused)));
    assert!(output.contains("E_CALLER_IS_AGENT") || output.contains("agents may not"), "{output}");
    assert_ne!(code, "0");
    let log = fixture.world.dir().join("tmp/job.log");
    let job = format!("(sleep 1; {}) >{} 2>&1 &", send(&refused), log.display());
    let (_, code) = fixture.agent_runs("job", &format!("{PROGRAM} mirror exec '{job}'"));
    assert_eq!(code, "0");
    wait_until("the job to end", SOON, || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("agents may not"))
    });
    assert!(!std::path::Path::new(&refused).exists());
    // The agent may have changed the shell, so nothing that runs in it may act, also not what the person types.
    let typed = fixture.world.dir().join("tmp/person.log");
    let line = format!("{} >{} 2>&1", send(&refused), typed.display());
    client.type_keys(format!("{line}\r").as_bytes());
    wait_until("the person to be refused", SOON, || {
        std::fs::read_to_string(&typed).is_ok_and(|text| text.contains("agents may not"))
    });
    assert!(!std::path::Path::new(&refused).exists());
}

#[test]
fn an_agent_may_not_use_the_terminal_of_another_session() {
    let fixture = AgentBesideTerminal::start();
    let mut start = fixture.world.agtmux();
    let tmux = format!("{},{},0", fixture.server.socket().display(), fixture.server.pid());
    start.args(["mirror", "start"]).env("TMUX", tmux).env("TMUX_PANE", &fixture.victim);
    let started = agtmux_testkit::agtmux::run(&mut start);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let status = agtmux(&fixture.world, &["mirror", "status", "--json"]).json();
    let pane = status["items"][0]["pane_id"].as_str().expect("a terminal").to_owned();
    for (name, line) in [
        ("exec", format!("{PROGRAM} mirror exec --pane {pane} 'echo no'")),
        ("stop", format!("{PROGRAM} mirror stop --pane {pane}")),
        ("start", format!("{PROGRAM} mirror start --pane {}", fixture.victim)),
    ] {
        let (output, code) = fixture.agent_runs(name, &line);
        let is_refused = output.contains("agents may not") && code == "5";
        assert!(is_refused, "{name}: {code} {output}");
    }
    let audit = agtmux(&fixture.world, &["audit", "--json"]).json();
    let mirror_rows: Vec<_> = items(&audit).iter().filter(|row| row["kind"] == "mirror").collect();
    let refused = mirror_rows.iter().filter(|row| row["code"] == "E_CALLER_IS_AGENT").count();
    assert!(refused == 3 && mirror_rows.len() >= 4, "{mirror_rows:?}");
    assert!(!fixture.server.run(&["capture-pane", "-p", "-t", &pane]).contains("echo no"));
}

#[test]
fn a_shell_that_an_agent_has_used_stays_a_shell_of_the_agent_until_it_ends() {
    let fixture = AgentBesideTerminal::start();
    let mut adopt = fixture.world.agtmux();
    let tmux = format!("{},{},0", fixture.server.socket().display(), fixture.server.pid());
    adopt.args(["mirror", "start", "--pane", &fixture.shell]).env("TMUX", tmux).env("TMUX_PANE", &fixture.victim);
    wait_until("the prompt", SOON, || {
        fixture.server.run(&["capture-pane", "-p", "-t", &fixture.shell]).trim_end().ends_with('$')
    });
    let adopted = agtmux_testkit::agtmux::run(&mut adopt);
    assert_eq!(adopted.code, Some(0), "{}", adopted.stderr);
    let (output, code) =
        fixture.agent_runs("exec", &format!("{PROGRAM} mirror exec --pane {} 'echo a'", fixture.shell));
    assert_eq!((output.as_str(), code.as_str()), ("a\n", "0"));
    // The agent may release the terminal. The shell, which the agent may have changed, lives on.
    let (output, code) = fixture.agent_runs("stop", &format!("{PROGRAM} mirror stop --pane {}", fixture.shell));
    assert_eq!(code, "0", "{output}");
    agtmux_testkit::agtmux::stop(&fixture.world);
    start(&fixture.world);
    let (refused, log) = (fixture.world.dir().join("tmp/refused"), fixture.world.dir().join("tmp/refused.log"));
    let act = format!("{PROGRAM} send {} --profile shell --text \"touch {}\"", fixture.victim, refused.display());
    let script = fixture.world.dir().join("tmp/act.sh");
    std::fs::write(&script, act).expect("the world is writable");
    fixture.type_line(&fixture.shell, &format!("sh {} >{} 2>&1", script.display(), log.display()));
    wait_until("the shell to be refused", SOON, || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("agents may not"))
    });
    assert!(!refused.exists());
    let kept = || std::fs::read_dir(fixture.world.state_dir().join("mirrors")).expect("a directory").count();
    assert_eq!(kept(), 1, "the record of the shell");
    // Once the shell has ended, the record goes.
    fixture.type_line(&fixture.shell, "exit");
    wait_until("the pane to close", SOON, || {
        !fixture.server.run(&["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|pane| pane == fixture.shell)
    });
    agtmux_testkit::agtmux::stop(&fixture.world);
    start(&fixture.world);
    assert_eq!(kept(), 0);
}
