//! A program that agtmux recognises as an agent and that runs the commands of a test.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};

use agtmux_testkit::agtmux::{CommandResult, SOON};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{ChildGuard, wait_until};

pub(crate) struct ScriptedAgent {
    child: ChildGuard,
    input: ChildStdin,
    dir: PathBuf,
    calls: Cell<u32>,
}

/// Runs each script and writes its exit code to a file.
const SCRIPT_LOOP: &str = r#"
while read -r n; do
    sh "$DIR/$n.sh" >"$DIR/$n.out" 2>"$DIR/$n.err" </dev/null
    echo $? >"$DIR/$n.draft"
    mv "$DIR/$n.draft" "$DIR/$n.code"
done
"#;

impl ScriptedAgent {
    /// Starts an agent for this session.
    pub(crate) fn start(fixture: &TaskFixture, session: &str) -> Self {
        let dir = fixture.world.dir().join(format!("agent-{session}"));
        fs::create_dir_all(&dir).expect("the world is writable");
        let mut command: Command = fixture.world.command(fixture.world.shell_copy("claude"));
        command.args(["-c", SCRIPT_LOOP]).env("DIR", &dir).env("AGTMUX_SESSION", session).current_dir(&fixture.project);
        let mut child = ChildGuard::start(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
        let input = child.stdin.take().expect("a pipe");
        Self { child, input, dir, calls: Cell::new(0) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs `agtmux task …` as a child of the agent.
    #[track_caller]
    pub(crate) fn task(&self, args: &[&str]) -> CommandResult {
        let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
        let n = self.calls.get();
        self.calls.set(n + 1);
        let file = |ending: &str| self.dir.join(format!("{n}.{ending}"));
        let script = format!("exec {} task {}\n", env!("CARGO_BIN_EXE_agtmux"), quoted.join(" "));
        fs::write(file("sh"), script).expect("written");
        writeln!(&self.input, "{n}").expect("the agent reads its input");
        wait_until(&format!("the agent to finish task {args:?}"), SOON, || file("code").exists());
        let text = |ending: &str| fs::read_to_string(file(ending)).expect("there");
        CommandResult { code: text("code").trim().parse().ok(), stdout: text("out").into_bytes(), stderr: text("err") }
    }

    #[track_caller]
    pub(crate) fn task_ok(&self, args: &[&str]) -> CommandResult {
        let done = self.task(args);
        assert_eq!(done.code, Some(0), "task {args:?}: {}", done.stderr);
        done
    }
}
