//! A user's tmux server with its own hooks and options, and a dump of all its visible state.

use std::fs;
use std::path::{Path, PathBuf};

use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};

use agtmux_testkit::agtmux::SOON;

/// Rings the bell for each line of input.
const BELL_PROGRAM: &str = r#"while read -r line; do printf "\a"; done"#;

/// Text that only the hooks of agtmux contain.
pub(crate) const HINT_FILE_MARK: &str = ".agtmux-hint";

/// `own` has its own `alert-bell` hook, the other two have none.
pub(crate) const SESSIONS: [&str; 3] = ["own", "plain", "shared"];

/// Flags that only a format shows.
const FLAGS: &str = "#{pane_id} #{pane_pipe} #{pane_in_mode} #{window_flags} #{window_bell_flag} \
                     #{window_width}x#{window_height} #{session_attached} #{session_many_attached}";

/// The tmux commands that show state, each with its output.
pub(crate) type TmuxStateDump = Vec<(String, Vec<u8>)>;

pub(crate) struct UserServer {
    pub(crate) server: TestTmuxServer,
    log: PathBuf,
}

impl UserServer {
    /// Sets hooks at index 0 and at the index that agtmux prefers, globally and in a session.
    pub(crate) fn new(world: &TestWorld) -> Self {
        let server = world.tmux("default");
        // Automatic renaming would change the state between two dumps.
        let begin = ["start-server", ";", "set-option", "-g", "automatic-rename", "off", ";", "new-session", "-d"];
        let size = ["-x", "80", "-y", "24"];
        server.run(&[&begin[..], &size, &["-s", SESSIONS[0], BELL_PROGRAM]].concat());
        for name in &SESSIONS[1..] {
            server.new_session(name, BELL_PROGRAM);
        }
        let user = Self { server, log: world.dir().join("bells") };
        for index in ["0", "4242"] {
            user.hook(&["-g"], "alert-bell", index, &format!("global-{index}"));
            user.hook(&["-t", "=own:"], "alert-bell", index, &format!("session-{index}"));
        }
        user.hook(&["-g"], "session-created", "4242", "created");
        user.hook(&["-gw"], "window-renamed", "4243", "renamed");
        user.server.run(&["set-buffer", "-b", "theirs", "a buffer of theirs"]);
        user.server.run(&["set-buffer", "another one"]);
        user.server.run(&["set-option", "-g", "@theirs", "kept"]);
        // agtmux must not replace the user's pipe: a pane can have only one.
        user.server.run(&["pipe-pane", "-t", "=plain:", "exec cat >/dev/null"]);
        // Wait for the reader of the pipe. The world cannot identify a process during exec, when its environment is not
        // visible.
        let is_reader = |pid: &u32| agtmux_testkit::process::describe(*pid).ends_with("(cat)");
        wait_until("the reader of the user's pipe", SOON, || world.processes().iter().any(is_reader));
        user
    }

    fn hook(&self, place: &[&str], name: &str, index: &str, tag: &str) {
        let command = format!("run-shell \"echo {tag} #{{hook_session_name}} >> {}\"", self.log.display());
        self.server.run(&[&["set-hook"], place, &[&format!("{name}[{index}]"), &command]].concat());
    }

    /// Rings the bell in a session and returns when the user's last hook for it has run.
    #[track_caller]
    pub(crate) fn ring(&self, session: &str) {
        let place = if session == "own" { "session" } else { "global" };
        let line = format!("{place}-4242 {session}");
        let count = || self.log().lines().filter(|logged| *logged == line).count();
        let before = count();
        self.server.run(&["send-keys", "-t", &format!("={session}:"), "x", "Enter"]);
        wait_until(&format!("the hook for a bell in {session}"), SOON, || count() > before);
    }

    /// The log that the user's hooks write.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn dump_state(&self) -> TmuxStateDump {
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["show-hooks", "-g"],
            vec!["show-hooks", "-gw"],
            vec!["show-options", "-g"],
            vec!["show-options", "-s"],
            vec!["show-options", "-gw"],
            vec!["show-environment", "-g"],
            vec!["list-buffers"],
            vec!["list-sessions"],
            vec!["list-clients"],
            vec!["list-windows", "-a"],
            vec!["list-panes", "-a"],
            vec!["list-panes", "-a", "-F", FLAGS],
        ];
        for session in ["=own:", "=plain:", "=shared:"] {
            for show in ["show-hooks", "show-options"] {
                commands.extend([vec![show, "-t", session], vec![show, "-w", "-t", session]]);
                commands.push(vec![show, "-p", "-t", session]);
            }
            // Attaching a client copies variables such as SSH_AUTH_SOCK into the session.
            commands.push(vec!["show-environment", "-t", session]);
        }
        commands.into_iter().map(|command| (command.join(" "), self.tmux_output(&command))).collect()
    }

    #[track_caller]
    fn tmux_output(&self, command: &[&str]) -> Vec<u8> {
        self.server.try_run_bytes(command).unwrap_or_else(|error| panic!("tmux {command:?}: {error}"))
    }

    /// The hooks of agtmux, each with the `show-hooks` command that lists it. A hook that is set twice is returned
    /// twice.
    #[track_caller]
    pub(crate) fn agtmux_hooks(&self) -> Vec<String> {
        let mut ours = Vec::new();
        for (command, answer) in self.dump_state().iter().filter(|(command, _)| command.starts_with("show-hooks")) {
            for line in String::from_utf8_lossy(answer).lines().filter(|line| line.contains(HINT_FILE_MARK)) {
                ours.push(format!("{command}: {}", line.split('[').next().unwrap_or_default()));
            }
        }
        ours
    }
}

/// The dump without the hooks of agtmux. If a hook array has no entry left, tmux shows only its name.
pub(crate) fn without_agtmux_hooks(imprint: &TmuxStateDump) -> TmuxStateDump {
    let theirs = |answer: &[u8]| -> Vec<u8> {
        let text = String::from_utf8_lossy(answer);
        let lines = text.lines().map(|line| match line.split_once('[') {
            Some((name, rest)) if rest.contains(HINT_FILE_MARK) => name,
            _ => line,
        });
        // Ignore the bare name of an array in which the user has an entry.
        let lines: Vec<&str> = lines.collect();
        let has_entry = |name: &str| lines.iter().any(|line| line.starts_with(&format!("{name}[")));
        let kept = lines.iter().filter(|line| line.contains(['[', ' ']) || !has_entry(line));
        kept.flat_map(|line| format!("{line}\n").into_bytes()).collect()
    };
    imprint.iter().map(|(command, answer)| (command.clone(), theirs(answer))).collect()
}

/// Panics with the first command whose output differs.
#[track_caller]
pub(crate) fn assert_same_state(before: &TmuxStateDump, after: &TmuxStateDump) {
    for ((command, old), (_, new)) in before.iter().zip(after) {
        let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
        let only_in = |one: &str, other: &str| -> Vec<String> {
            one.lines().filter(|line| !other.lines().any(|known| known == *line)).map(str::to_owned).collect()
        };
        let (lost, new_lines) = (only_in(&old, &new), only_in(&new, &old));
        assert!(old == new, "tmux {command} lost {lost:#?} and has {new_lines:#?} instead");
    }
}

/// The names of the remaining hint files.
pub(crate) fn remaining_hint_files(state_dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(state_dir.join("hooks")) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until these are the only processes of the world.
#[track_caller]
pub(crate) fn wait_for_only_processes(world: &TestWorld, wanted: &[u32]) {
    wait_for("only the user's processes", SOON, || {
        let mut living = world.processes();
        living.sort_unstable();
        let describe = |pid: &u32| agtmux_testkit::process::describe(*pid);
        if living == wanted { Ok(()) } else { Err(living.iter().map(describe).collect::<Vec<_>>()) }
    });
}
