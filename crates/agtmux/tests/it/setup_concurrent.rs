//! `agtmux setup` with concurrent setups, closed pipes, kills, and other program names.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use agtmux_testkit::agtmux::{CommandResult, SOON, run, world};
use agtmux_testkit::{TestWorld, wait_for};
use serde_json::Value;

use crate::settings::{CLAUDE, CODEX_CONFIG, GEMINI, backups, file, put, read, setup_ok};

const AGENTS: [&str; 8] = ["claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"];

/// The settings files in the setup record, without the files of packages.
fn recorded_files(world: &TestWorld) -> Vec<String> {
    let record: Value = serde_json::from_str(&read(&world.state_dir().join("setup.json"))).expect("JSON");
    let files = record["files"].as_object().expect("files").keys();
    files.filter(|path| !path.contains("/pi-agtmux/")).cloned().collect()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Runs one setup per agent, all at the same time.
fn run_concurrently(world: &TestWorld, agents: &[&str], args: &[&str]) -> Vec<CommandResult> {
    let command = |agent: &&str| {
        let mut command = world.agtmux();
        command.args(["setup", "--yes", "--agent", agent]).args(args);
        command
    };
    let commands: Vec<Command> = agents.iter().map(command).collect();
    thread::scope(|scope| {
        let all: Vec<_> = commands.into_iter().map(|mut command| scope.spawn(move || run(&mut command))).collect();
        all.into_iter().map(|one| one.join().expect("the setup exits")).collect()
    })
}

#[test]
fn concurrent_setups_record_every_file() {
    for _ in 0..3 {
        let world = world();
        // Two setups run for each agent. One of them may find that the other has already made the changes.
        for done in run_concurrently(&world, &[AGENTS, AGENTS].concat(), &[]) {
            assert_eq!(done.code, Some(0), "{}", done.stderr);
        }
        assert_eq!(recorded_files(&world).len(), 9, "{:?}", recorded_files(&world));
        for done in run_concurrently(&world, &AGENTS, &["--uninstall"]) {
            assert_eq!(done.code, Some(0), "{}", done.stderr);
        }
        assert_eq!(files_below(&world.home()), Vec::<PathBuf>::new(), "no files are left");
        assert_eq!(files_below(&world.dir().join("data")), Vec::<PathBuf>::new(), "no package is left");
        assert!(!world.state_dir().join("setup.json").exists());
    }
}

/// A setup on a terminal that has shown its changes and waits for confirmation.
struct InteractiveSetup {
    child: Child,
}

impl InteractiveSetup {
    fn start(world: &TestWorld, args: &str) -> Self {
        // script(1) provides a terminal for the prompt.
        let mut command: Command = world.command("script");
        command.args(["-qec", &format!("{} setup {args}", env!("CARGO_BIN_EXE_agtmux")), "/dev/null"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts");
        let mut stdout = child.stdout.take().expect("piped");
        let output = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&output);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                collected.lock().expect("not poisoned").extend_from_slice(&buffer[..count]);
            }
        });
        wait_for("the question", SOON, || {
            let output = String::from_utf8_lossy(&output.lock().expect("not poisoned")).into_owned();
            if output.contains("[y/N]") { Ok(()) } else { Err(output) }
        });
        Self { child }
    }

    fn answer_yes(mut self) -> Option<i32> {
        self.child.stdin.take().expect("piped").write_all(b"y\n").expect("the setup reads its input");
        wait_for("the setup to exit", SOON, || self.child.try_wait().expect("a child")).code()
    }
}

#[test]
fn setup_keeps_changes_made_while_it_waits_for_confirmation() {
    let world = world();
    let claude = put(&world, CLAUDE, "{}");
    let interactive = InteractiveSetup::start(&world, "--agent claude");
    let gemini = setup_ok(&world, &["--agent", "gemini", "--yes"]);
    assert!(gemini.text().contains("wrote "), "{}", gemini.text());
    assert_eq!(interactive.answer_yes(), Some(0));
    assert!(read(&claude).contains("hook claude Stop"));
    assert_eq!(recorded_files(&world).len(), 2, "{:?}", recorded_files(&world));
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, GEMINI).exists() && read(&claude) == "{}");
}

#[test]
fn setup_writes_only_the_changes_it_showed() {
    let world = world();
    let claude = put(&world, CLAUDE, "{}");
    let interactive = InteractiveSetup::start(&world, "--agent claude");
    fs::write(&claude, "{\"model\": \"opus\"}").expect("written");
    assert_eq!(interactive.answer_yes(), Some(1));
    assert_eq!(read(&claude), "{\"model\": \"opus\"}");
    assert!(backups(&claude).is_empty() && !world.state_dir().join("setup.json").exists());
    // Another setup makes the same change meanwhile.
    let interactive = InteractiveSetup::start(&world, "--agent claude");
    setup_ok(&world, &["--agent", "claude", "--yes"]);
    assert_eq!(interactive.answer_yes(), Some(0));
    assert_eq!(backups(&claude).len(), 1, "only one setup wrote the file");
}

#[test]
fn setup_continues_when_its_output_pipe_is_closed() {
    let world = world();
    put(&world, CLAUDE, "{}");
    let run_with_closed_stdout = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = world.agtmux();
        let output = command.arg("setup").args(args).stdin(Stdio::null()).stdout(writer).output().expect("setup runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run_with_closed_stdout(&["--yes"]), (Some(0), String::new()));
    assert!(read(&file(&world, CLAUDE)).contains("hook claude Stop"));
    let (code, stderr) = run_with_closed_stdout(&["--uninstall"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("could not be printed") && stderr.contains("agtmux setup --uninstall --yes"), "{stderr}");
    put(&world, GEMINI, "{ broken");
    let (code, stderr) = run_with_closed_stdout(&["--uninstall", "--yes"]);
    assert_eq!(code, Some(1), "one file was refused");
    assert!(stderr.contains("gemini/settings.json' was not changed"), "{stderr}");
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
}

#[test]
fn setup_removes_temporary_files_of_a_killed_setup() {
    let world = world();
    put(&world, CLAUDE, "{}");
    setup_ok(&world, &["--yes"]);
    let drafts = [
        file(&world, ".claude/.settings.json.agtmux-aB3xY9.tmp"),
        world.state_dir().join(".setup.json.agtmux-aB3xY9.tmp"),
    ];
    let others = [".claude/.tmpAbCdEf", ".claude/.settings.json.agtmux-my notes.tmp", ".claude/.settings.json.swp"]
        .map(|name| file(&world, name));
    drafts.iter().chain(&others).for_each(|path| fs::write(path, "half").expect("written"));
    setup_ok(&world, &["--dry-run"]);
    assert!(drafts.iter().all(|path| path.exists()), "a dry run removes nothing");
    let nothing = setup_ok(&world, &["--yes"]);
    assert!(nothing.text().contains("up to date"), "{}", nothing.text());
    assert!(drafts.iter().all(|path| !path.exists()) && others.iter().all(|path| path.exists()));
}

#[test]
fn uninstall_removes_directories_of_an_interrupted_setup() {
    let world = world();
    let settings = file(&world, ".pi/agent/settings.json");
    let install = || setup_ok(&world, &["--agent", "pi", "--yes"]);
    let kill_before_the_file = || fs::remove_file(&settings).expect("removed");
    install();
    kill_before_the_file();
    install();
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, ".pi").exists(), "the second setup knows the directories of the first");
    install();
    kill_before_the_file();
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, ".pi").exists(), "uninstall removes the directories without the file");
    // Simulate a setup that was killed between its two files.
    setup_ok(&world, &["--agent", "codex", "--yes"]);
    let record = world.state_dir().join("setup.json");
    let mut noted: Value = serde_json::from_str(&read(&record)).expect("JSON");
    noted["files"].as_object_mut().expect("files").retain(|path, _| !path.ends_with("config.toml"));
    fs::write(&record, noted.to_string()).expect("written");
    fs::remove_file(file(&world, CODEX_CONFIG)).expect("removed");
    setup_ok(&world, &["--agent", "codex", "--yes"]);
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, ".codex").exists(), "the shared directory of both files is removed");
    assert!(!world.state_dir().join("setup.json").exists());
}

/// Links the agtmux executable to another path.
fn link_to_agtmux(world: &TestWorld, path: &Path) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    // `cp` is for paths on another file system. A child process makes the copy. If this process wrote it, a process
    // forked by another thread could keep it open for writing, and the kernel would refuse to execute it.
    let line = "ln \"$0\" \"$1\" || cp \"$0\" \"$1\"";
    let linked = run(world.command("sh").args(["-c", line, env!("CARGO_BIN_EXE_agtmux")]).arg(path));
    assert_eq!(linked.code, Some(0), "{}", linked.stderr);
}

#[test]
fn setup_is_refused_under_another_program_name() {
    let world = world();
    put(&world, CLAUDE, "{}");
    fs::create_dir_all(file(&world, ".pi/agent")).expect("made");
    let other = world.dir().join("dev/agtmux-dev");
    link_to_agtmux(&world, &other);
    let result = run(world.command(&other).args(["setup", "--yes"]));
    assert_eq!(result.code, Some(1));
    assert!(result.stderr.contains("agtmux-dev', but its file name must be 'agtmux'"), "{}", result.stderr);
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
    assert!(!file(&world, ".pi/agent/settings.json").exists());
    // Uninstall works under any name.
    setup_ok(&world, &["--yes"]);
    assert_eq!(run(world.command(&other).args(["setup", "--uninstall", "--yes"])).code, Some(0));
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
}

/// Only Linux can execute a deleted file through /proc.
#[cfg(target_os = "linux")]
#[test]
fn setup_writes_the_path_of_a_replaced_executable() {
    let world = world();
    put(&world, CLAUDE, "{}");
    let program = world.dir().join("dev/agtmux");
    let deleted_then = |then: &str| {
        link_to_agtmux(&world, &program);
        link_to_agtmux(&world, &world.dir().join("dev/new"));
        let line = format!(
            "cd '{}' && exec 9<agtmux && rm agtmux && {then} && exec /proc/$$/fd/9 setup --yes",
            program.parent().expect("a directory").display()
        );
        run(world.command("sh").args(["-c", &line]))
    };
    let gone = deleted_then("rm new");
    assert_eq!(gone.code, Some(1), "{}", gone.text());
    assert!(gone.stderr.contains("was removed or replaced on disk"), "{}", gone.stderr);
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
    let replaced = deleted_then("mv new agtmux");
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
    assert!(read(&file(&world, CLAUDE)).contains(&format!("'{}' hook claude Stop", program.display())));
}
