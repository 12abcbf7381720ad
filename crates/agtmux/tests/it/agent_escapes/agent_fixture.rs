//! An agent that executes lines, a person's shell beside it, and scripts that try to act.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, list, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use serde_json::Value;

/// The result of one attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) name: String,
    pub(crate) code: i32,
    pub(crate) output: String,
    /// The file that the typed text creates.
    pub(crate) typed: PathBuf,
}

impl Attempt {
    #[track_caller]
    pub(crate) fn assert_refused(&self) {
        let refused = self.output.contains("agents may not") || self.output.contains("E_CALLER_IS_AGENT");
        assert!(refused && !self.typed.exists() && self.code != 0, "{}: {self:?}", self.name);
    }

    #[track_caller]
    pub(crate) fn assert_allowed(&self) {
        assert_eq!(self.code, 0, "{self:?}");
        wait_for("the text to be typed", SOON, || self.typed.exists().then_some(()));
    }
}

/// Fields are dropped in order: the server before the world.
pub(crate) struct AgentFixture {
    pub(crate) server: TestTmuxServer,
    pub(crate) world: TestWorld,
    /// The pane of the agent.
    pub(crate) agent: String,
    /// A shell that a person opened before the agent started.
    pub(crate) shell: String,
    /// The shell into which each attempt types.
    victim: String,
    attempts: Cell<u32>,
}

impl AgentFixture {
    pub(crate) fn start(settings: &str) -> Self {
        let world = world();
        configure(&world, settings);
        let server = world.tmux("default");
        let shell = || "PS1='$ ' exec sh -i".to_owned();
        let person = server.new_session("person", &shell());
        let victim = server.new_session("victim", &shell());
        let agent = server.new_session("agent", &shell());
        start(&world);
        let fixture = Self { server, world, agent, shell: person, victim, attempts: Cell::new(0) };
        fixture.wait_for_pane_count(3);
        fixture.start_agent();
        fixture
    }

    /// Starts an agent that executes typed lines.
    fn start_agent(&self) {
        let program = self.world.shell_copy("claude");
        self.type_line(&self.agent, &format!("{} -c 'while read -r line; do eval \"$line\"; done'", program.display()));
        wait_for("the agent to be listed", SOON, || {
            let item = self.item(&self.agent);
            if item["agent_type"] == "claude" { Ok(()) } else { Err(item.to_string()) }
        });
    }

    pub(crate) fn item(&self, pane: &str) -> Value {
        let listing = list(&self.world);
        items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane).cloned().unwrap_or_default()
    }

    pub(crate) fn wait_for_pane_count(&self, count: usize) {
        wait_for("all panes to be listed", SOON, || (items(&list(&self.world)).len() == count).then_some(()));
    }

    pub(crate) fn type_line(&self, pane: &str, line: &str) {
        self.server.run(&["send-keys", "-t", pane, "-l", line]);
        self.server.run(&["send-keys", "-t", pane, "Enter"]);
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.world.dir().join("tmp").join(name)
    }

    /// Writes a script that acts once. The script sets all variables that it needs, so that it works with an empty
    /// environment. Returns the name of the attempt.
    pub(crate) fn write_script(&self, label: &str) -> String {
        self.write_script_with(label, |fixture, name| {
            let program = env!("CARGO_BIN_EXE_agtmux");
            let typed = fixture.file(&format!("{name}.typed"));
            format!("{program} send {} --profile shell --text 'touch {}'", fixture.victim, typed.display())
        })
    }

    /// Like [`Self::write_script`], with another command line.
    pub(crate) fn write_script_with(&self, label: &str, command: impl Fn(&Self, &str) -> String) -> String {
        let n = self.attempts.get();
        self.attempts.set(n + 1);
        let name = format!("{label}-{n}");
        let path = |ending: &str| self.file(&format!("{name}.{ending}")).display().to_string();
        let script = format!(
            "{}{} >{} 2>&1\necho $? >{}\nmv {} {}\n",
            self.exports(),
            command(self, &name),
            path("output"),
            path("code"),
            path("code"),
            path("ended")
        );
        fs::write(self.file(&format!("{name}.sh")), script).expect("the world is writable");
        name
    }

    /// Shell lines that set the variables with which agtmux and tmux find this world.
    pub(crate) fn exports(&self) -> String {
        let dir = self.world.dir().display();
        format!(
            "export PATH='{}' HOME={dir}/home XDG_CONFIG_HOME={dir}/config AGTMUX_STATE_DIR={dir}/state \
             AGTMUX_SOCKET={dir}/run/agtmuxd.sock TMUX_TMPDIR={dir} AGTMUX_NO_AUTOSTART=1\n",
            std::env::var("PATH").expect("tests run with a PATH"),
        )
    }

    pub(crate) fn script(&self, name: &str) -> String {
        self.file(&format!("{name}.sh")).display().to_string()
    }

    /// Waits until the script has ended.
    #[track_caller]
    pub(crate) fn result(&self, name: &str) -> Attempt {
        let read = |ending: &str| fs::read_to_string(self.file(&format!("{name}.{ending}"))).ok();
        let code = wait_for(&format!("{name} to end"), SOON, || read("ended"));
        Attempt {
            name: name.to_owned(),
            code: code.trim().parse().expect("a code"),
            output: read("output").unwrap_or_default(),
            typed: self.file(&format!("{name}.typed")),
        }
    }

    /// Lets the agent run agtmux with these arguments.
    #[track_caller]
    pub(crate) fn agent_runs(&self, label: &str, args: &str) -> Attempt {
        let name = self.write_script_with(label, |_, _| format!("{} {args}", env!("CARGO_BIN_EXE_agtmux")));
        self.type_line(&self.agent, &format!("sh {}", self.script(&name)));
        self.result(&name)
    }

    /// Lets the agent execute this line, in which `SCRIPT` stands for the script that acts.
    #[track_caller]
    pub(crate) fn agent_tries(&self, label: &str, line: &str) -> Attempt {
        let name = self.write_script(label);
        self.type_line(&self.agent, &self.fill_in(&name, line));
        self.result(&name)
    }

    pub(crate) fn fill_in(&self, name: &str, line: &str) -> String {
        let agtmux = env!("CARGO_BIN_EXE_agtmux");
        line.replace("SCRIPT", &self.script(name)).replace("NAME", name).replace("PROGRAM", agtmux)
    }

    /// The audit log.
    #[track_caller]
    pub(crate) fn audit(&self) -> Vec<Value> {
        items(&agtmux(&self.world, &["audit", "--json"]).json()).clone()
    }
}
