//! `agtmux setup` beside other setups, with readers that leave, after a kill, and under another name.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/settings.rs"]
mod settings;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use agtmux::{Done, SOON, run, world};
use agtmux_testkit::{TestWorld, wait_for};
use serde_json::Value;
use settings::{CLAUDE, CODEX_CONFIG, GEMINI, backups, done, file, put, read};

const AGENTS: [&str; 8] = ["claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"];

/// What the record says, file by file.
fn recorded_files(world: &TestWorld) -> Vec<String> {
    let record: Value = serde_json::from_str(&read(&world.state_dir().join("setup.json"))).expect("JSON");
    record["files"].as_object().expect("files").keys().cloned().collect()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Starts all of these at once, one per agent.
fn run_concurrently(world: &TestWorld, agents: &[&str], args: &[&str]) -> Vec<Done> {
    let command = |agent: &&str| {
        let mut command = world.agtmux();
        command.args(["setup", "--yes", "--agent", agent]).args(args);
        command
    };
    let commands: Vec<Command> = agents.iter().map(command).collect();
    thread::scope(|scope| {
        let all: Vec<_> = commands.into_iter().map(|mut command| scope.spawn(move || run(&mut command))).collect();
        all.into_iter().map(|one| one.join().expect("it ends")).collect()
    })
}

#[test]
fn setups_at_the_same_time_know_of_each_other() {
    for _ in 0..3 {
        let world = world();
        // Each agent twice: the second finds the work done, or still to do.
        for done in run_concurrently(&world, &[AGENTS, AGENTS].concat(), &[]) {
            assert_eq!(done.code, Some(0), "{}", done.stderr);
        }
        assert_eq!(recorded_files(&world).len(), 9, "{:?}", recorded_files(&world));
        for done in run_concurrently(&world, &AGENTS, &["--uninstall"]) {
            assert_eq!(done.code, Some(0), "{}", done.stderr);
        }
        assert_eq!(files_below(&world.home()), Vec::<PathBuf>::new(), "as it was");
        assert!(!world.state_dir().join("setup.json").exists());
    }
}

/// A setup on a terminal that has shown its changes and waits for an answer.
struct InteractiveSetup {
    child: Child,
}

impl InteractiveSetup {
    fn start(world: &TestWorld, args: &str) -> Self {
        // script(1) gives it a terminal to ask on.
        let mut command: Command = world.command("script");
        command.args(["-qec", &format!("{} setup {args}", env!("CARGO_BIN_EXE_agtmux")), "/dev/null"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut stdout = child.stdout.take().expect("piped");
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                heard.lock().expect("nobody panics with it").extend_from_slice(&buffer[..count]);
            }
        });
        wait_for("the question", SOON, || {
            let said = String::from_utf8_lossy(&said.lock().expect("nobody panics with it")).into_owned();
            if said.contains("[y/N]") { Ok(()) } else { Err(said) }
        });
        Self { child }
    }

    fn answer_yes(mut self) -> Option<i32> {
        self.child.stdin.take().expect("piped").write_all(b"y\n").expect("it reads");
        wait_for("its end", SOON, || self.child.try_wait().expect("it is ours")).code()
    }
}

#[test]
fn what_others_did_while_one_was_asked_is_kept() {
    let world = world();
    let claude = put(&world, CLAUDE, "{}");
    let asked = InteractiveSetup::start(&world, "--agent claude");
    let gemini = done(&world, &["--agent", "gemini", "--yes"]);
    assert!(gemini.text().contains("wrote "), "{}", gemini.text());
    assert_eq!(asked.answer_yes(), Some(0));
    assert!(read(&claude).contains("hook claude Stop"));
    assert_eq!(recorded_files(&world).len(), 2, "{:?}", recorded_files(&world));
    done(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, GEMINI).exists() && read(&claude) == "{}");
}

#[test]
fn what_was_not_shown_is_not_done() {
    let world = world();
    let claude = put(&world, CLAUDE, "{}");
    let asked = InteractiveSetup::start(&world, "--agent claude");
    fs::write(&claude, "{\"model\": \"opus\"}").expect("written");
    assert_eq!(asked.answer_yes(), Some(1));
    assert_eq!(read(&claude), "{\"model\": \"opus\"}");
    assert!(backups(&claude).is_empty() && !world.state_dir().join("setup.json").exists());
    // Somebody else did just the same.
    let asked = InteractiveSetup::start(&world, "--agent claude");
    done(&world, &["--agent", "claude", "--yes"]);
    assert_eq!(asked.answer_yes(), Some(0));
    assert_eq!(backups(&claude).len(), 1, "only one of them wrote");
}

#[test]
fn a_reader_that_leaves_does_not_stop_the_work() {
    let world = world();
    put(&world, CLAUDE, "{}");
    let unread = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = world.agtmux();
        let output = command.arg("setup").args(args).stdin(Stdio::null()).stdout(writer).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(unread(&["--yes"]), (Some(0), String::new()));
    assert!(read(&file(&world, CLAUDE)).contains("hook claude Stop"));
    let (code, told) = unread(&["--uninstall"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("could not be shown") && told.contains("agtmux setup --uninstall --yes"), "{told}");
    put(&world, GEMINI, "{ broken");
    let (code, told) = unread(&["--uninstall", "--yes"]);
    assert_eq!(code, Some(1), "one was refused");
    assert!(told.contains("gemini/settings.json' was left as it is"), "{told}");
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
}

#[test]
fn what_a_killed_setup_left_is_cleared() {
    let world = world();
    put(&world, CLAUDE, "{}");
    done(&world, &["--yes"]);
    let drafts = [
        file(&world, ".claude/.settings.json.agtmux-aB3xY9.tmp"),
        world.state_dir().join(".setup.json.agtmux-aB3xY9.tmp"),
    ];
    let others = [".claude/.tmpAbCdEf", ".claude/.settings.json.agtmux-my notes.tmp", ".claude/.settings.json.swp"]
        .map(|name| file(&world, name));
    drafts.iter().chain(&others).for_each(|path| fs::write(path, "half").expect("written"));
    done(&world, &["--dry-run"]);
    assert!(drafts.iter().all(|path| path.exists()), "only shown");
    let nothing = done(&world, &["--yes"]);
    assert!(nothing.text().contains("nothing to do"), "{}", nothing.text());
    assert!(drafts.iter().all(|path| !path.exists()) && others.iter().all(|path| path.exists()));
}

#[test]
fn directories_are_removed_although_a_setup_was_killed_between_them_and_their_file() {
    let world = world();
    let extension = file(&world, ".pi/agent/extensions/agtmux.ts");
    let install = || done(&world, &["--agent", "pi", "--yes"]);
    let kill_before_the_file = || fs::remove_file(&extension).expect("removed");
    install();
    kill_before_the_file();
    install();
    done(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, ".pi").exists(), "the second setup knows what the first has made");
    install();
    kill_before_the_file();
    done(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, ".pi").exists(), "what an uninstall has left is finished by the next");
    // Of two files, the second was not reached.
    done(&world, &["--agent", "codex", "--yes"]);
    let record = world.state_dir().join("setup.json");
    let mut noted: Value = serde_json::from_str(&read(&record)).expect("JSON");
    noted["files"].as_object_mut().expect("files").retain(|path, _| !path.ends_with("config.toml"));
    fs::write(&record, noted.to_string()).expect("written");
    fs::remove_file(file(&world, CODEX_CONFIG)).expect("removed");
    done(&world, &["--agent", "codex", "--yes"]);
    done(&world, &["--uninstall", "--yes"]);
    assert!(!file(&world, ".codex").exists(), "both files are in one directory");
    assert!(!world.state_dir().join("setup.json").exists());
}

/// The program under another path.
fn link_to_agtmux(world: &TestWorld, path: &Path) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    // On another file system there is no such link. Not copied by this process: another thread's new process could
    // still hold the copy open for writing, and then it cannot be executed.
    let line = "ln \"$0\" \"$1\" || cp \"$0\" \"$1\"";
    let linked = run(world.command("sh").args(["-c", line, env!("CARGO_BIN_EXE_agtmux")]).arg(path));
    assert_eq!(linked.code, Some(0), "{}", linked.stderr);
}

#[test]
fn an_agtmux_of_another_name_says_so_and_writes_nothing() {
    let world = world();
    put(&world, CLAUDE, "{}");
    fs::create_dir_all(file(&world, ".pi/agent")).expect("made");
    let other = world.dir().join("dev/agtmux-dev");
    link_to_agtmux(&world, &other);
    let told = run(world.command(&other).args(["setup", "--yes"]));
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("agtmux-dev', and setup knows its own hooks by the name 'agtmux'"), "{}", told.stderr);
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
    assert!(!file(&world, ".pi/agent/extensions").exists());
    // What others have put in it can take out.
    done(&world, &["--yes"]);
    assert_eq!(run(world.command(&other).args(["setup", "--uninstall", "--yes"])).code, Some(0));
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
}

/// Only there a program can be started by a file that has lost its name.
#[cfg(target_os = "linux")]
#[test]
fn an_agtmux_that_was_replaced_while_it_runs_names_its_place() {
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
    assert!(gone.stderr.contains("removed or replaced while it runs"), "{}", gone.stderr);
    assert_eq!(read(&file(&world, CLAUDE)), "{}");
    let replaced = deleted_then("mv new agtmux");
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
    assert!(read(&file(&world, CLAUDE)).contains(&format!("'{}' hook claude Stop", program.display())));
}
