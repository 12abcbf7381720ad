//! A program that is taken for an agent, and does what it is told.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};

use agtmux_testkit::{ChildGuard, wait_until};

use crate::agtmux::{Done, SOON};
use crate::stage::Stage;

pub(crate) struct ScriptedAgent {
    child: ChildGuard,
    input: ChildStdin,
    dir: PathBuf,
    calls: Cell<u32>,
}

/// Runs each script that it is given, and then puts down how that ended.
const SCRIPT_LOOP: &str = r#"
while read -r n; do
    sh "$DIR/$n.sh" >"$DIR/$n.out" 2>"$DIR/$n.err" </dev/null
    echo $? >"$DIR/$n.draft"
    mv "$DIR/$n.draft" "$DIR/$n.code"
done
"#;

impl ScriptedAgent {
    /// One that works in this session.
    pub(crate) fn start(stage: &Stage, session: &str) -> Self {
        let dir = stage.world.dir().join(format!("agent-{session}"));
        fs::create_dir_all(&dir).expect("the world is writable");
        let mut command: Command = stage.world.command(stage.world.shell_copy("claude"));
        command.args(["-c", SCRIPT_LOOP]).env("DIR", &dir).env("AGTMUX_SESSION", session).current_dir(&stage.project);
        let mut child = ChildGuard::start(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
        let input = child.stdin.take().expect("a pipe");
        Self { child, input, dir, calls: Cell::new(0) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `agtmux task …`, called by it.
    #[track_caller]
    pub(crate) fn task(&self, args: &[&str]) -> Done {
        let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
        let n = self.calls.get();
        self.calls.set(n + 1);
        let file = |ending: &str| self.dir.join(format!("{n}.{ending}"));
        let script = format!("exec {} task {}\n", env!("CARGO_BIN_EXE_agtmux"), quoted.join(" "));
        fs::write(file("sh"), script).expect("written");
        writeln!(&self.input, "{n}").expect("it listens");
        wait_until(&format!("the agent has come to the end of task {args:?}"), SOON, || file("code").exists());
        let text = |ending: &str| fs::read_to_string(file(ending)).expect("there");
        Done { code: text("code").trim().parse().ok(), stdout: text("out").into_bytes(), stderr: text("err") }
    }

    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> Done {
        let done = self.task(args);
        assert_eq!(done.code, Some(0), "task {args:?}: {}", done.stderr);
        done
    }
}
