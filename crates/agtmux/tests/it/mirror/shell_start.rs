//! The shell starts as tmux would start it, and leaves no trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use agtmux_testkit::{TestWorld, process};

use super::{MirrorFixture, for_each_shell};

/// The files below a directory and their contents.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

fn write_start_files(world: &TestWorld) {
    let home = world.home();
    fs::write(home.join(".bash_profile"), "alias hi='echo from the profile'\nPS1='$ '\n").expect("written");
    fs::write(home.join(".bash_history"), "old entry\n").expect("written");
    fs::write(home.join(".zshrc"), "alias hi='echo from the profile'\nPS1='$ '\nHISTFILE=~/.zsh_history\n")
        .expect("written");
    fs::write(home.join(".zsh_history"), "old entry\n").expect("written");
    let fish = world.dir().join("config/fish");
    fs::create_dir_all(&fish).expect("created");
    fs::write(fish.join("config.fish"), "alias hi='echo from the profile'\n").expect("written");
}

#[test]
fn the_start_leaves_home_and_history_unchanged_and_reads_the_start_files() {
    for shell in ["bash", "zsh", "fish"] {
        let before = std::cell::RefCell::new(BTreeMap::new());
        let prepare = |world: &TestWorld| {
            write_start_files(world);
            *before.borrow_mut() = contents(&world.home());
        };
        let Some(fixture) = MirrorFixture::prepared(shell, prepare) else { continue };
        assert_eq!(contents(&fixture.world.home()), *before.borrow(), "{shell}");
        fixture.assert_exec("hi", "from the profile\n", 0);
        assert_eq!(fixture.mirror(&["stop"]).code, Some(0));
        let history = if shell == "zsh" { ".zsh_history" } else { ".bash_history" };
        let kept = fs::read_to_string(fixture.world.home().join(history)).expect("text");
        assert!(kept.starts_with("old entry\n"), "{shell}: {kept}");
    }
}

/// What a shell says about itself, and the file that it reads at its start.
const FACTS: [(&str, &str, &str); 3] = [
    (
        "bash",
        "echo $0 $SHLVL; shopt -q login_shell && echo login; shopt -qo posix || echo 'no posix'; echo ${ENV-none}; complete -p; \
         alias; bind -p | grep -c complete",
        "complete -W 'one two' tool\nalias hi='echo hi'\n",
    ),
    (
        "zsh",
        "echo $0 $SHLVL; [[ -o login ]] && echo login; echo ${ZDOTDIR-none}; echo $#_comps ${_comps[tool]}; alias",
        "autoload -Uz compinit; compinit -D\ncompdef _files tool\nalias hi='echo hi'\nPS1='%# '\n",
    ),
    (
        "fish",
        "echo $SHLVL; status is-login; and echo login; complete -C 'tool '; functions hi | grep -v '^#'",
        "complete -c tool -f -a 'one two'\nalias hi 'echo hi'\n",
    ),
];

#[test]
fn the_shell_is_the_one_that_tmux_starts() {
    for (shell, facts, start_file) in FACTS {
        let prepare = |world: &TestWorld| {
            let fish = world.dir().join("config/fish");
            fs::create_dir_all(&fish).expect("created");
            for file in [world.home().join(".bash_profile"), world.home().join(".zshrc"), fish.join("config.fish")] {
                let is_own = file.to_string_lossy().contains(shell) || shell == "zsh" && file.ends_with(".zshrc");
                fs::write(file, if is_own { start_file } else { "" }).expect("written");
            }
        };
        let Some(fixture) = MirrorFixture::prepared(shell, prepare) else { continue };
        let path = fixture.exec(&format!("command -v {shell}")).text().trim().to_owned();
        fixture.server.run(&["set-option", "-g", "default-shell", &path]);
        let plain = fixture.server.new_session("plain", "");
        let file = fixture.world.dir().join("tmp/facts");
        let (open, close) = if shell == "fish" { ("begin;", "; end") } else { ("{", "; }") };
        let line = format!("{open} {facts}; echo over{close} >{}", file.display());
        fixture.server.run(&["send-keys", "-t", &plain, "-l", &line]);
        fixture.server.run(&["send-keys", "-t", &plain, "Enter"]);
        let wanted = agtmux_testkit::wait_for("the facts", agtmux_testkit::agtmux::SOON, || {
            fs::read_to_string(&file).ok().filter(|text| text.ends_with("over\n"))
        });
        assert!(wanted.contains("hi") && wanted.lines().count() > 4, "{shell}: {wanted}");
        fixture.assert_exec(&format!("{facts}; echo over"), &wanted, 0);
    }
}

/// A field of `/proc/PID/stat`, counted as in proc(5).
fn stat_field(pid: u32, field: usize) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let after_name = stat.rsplit_once(')').expect("a name").1;
    after_name.split_whitespace().nth(field - 3).and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn a_prompt_starts_no_process_and_a_terminal_at_rest_uses_no_time() {
    /// Page faults of ended children, and time in user and kernel mode.
    const CHILD_FAULTS: usize = 11;
    const TIMES: [usize; 2] = [14, 15];
    for_each_shell(|fixture| {
        let pane = fixture.server.run(&["display-message", "-p", "-t", &fixture.pane(), "#{pane_pid}"]);
        let shell: u32 = pane.trim().parse().expect("a pid");
        if fixture.shell == "fish" {
            // fish's own prompt runs git.
            fixture.assert_exec("function fish_prompt; echo -n '> '; end", "", 0);
        }
        fixture.assert_exec("true", "", 0);
        fixture.wait_for_status("ready");
        let before = stat_field(shell, CHILD_FAULTS);
        for _ in 0..10 {
            fixture.assert_exec("true", "", 0);
        }
        fixture.wait_for_status("ready");
        assert_eq!(stat_field(shell, CHILD_FAULTS), before, "{}: every child has page faults", fixture.shell);
        fixture.assert_exec("sh -c true", "", 0);
        fixture.wait_for_status("ready");
        assert!(stat_field(shell, CHILD_FAULTS) > before, "{}: a child is seen", fixture.shell);
        let is_reader = |pid: &u32| process::argv(*pid).iter().any(|word| word == b"mirror-log");
        let reader = fixture.world.processes().into_iter().find(is_reader).expect("a reader");
        let used = || TIMES.iter().map(|field| stat_field(shell, *field) + stat_field(reader, *field)).sum::<u64>();
        let at_rest = used();
        for _ in 0..2 {
            agtmux_testkit::wait_for_next_second();
        }
        assert_eq!(used(), at_rest, "{}: ticks of the shell and the reader", fixture.shell);
    });
}

#[test]
fn the_nonce_is_not_visible_and_no_process_stays() {
    for_each_shell(|fixture| {
        let specs = fixture.world.state_dir().join("mirrors");
        let dir = fs::read_dir(specs).expect("a directory").flatten().next().expect("a terminal").path();
        let spec: serde_json::Value =
            serde_json::from_slice(&fs::read(dir.join("spec")).expect("a file")).expect("JSON");
        let nonce = spec["nonce"].as_str().expect("a nonce");
        let environment = fixture.exec("env");
        assert!(
            !environment.text().contains(nonce) && !environment.text().contains("__agtmux"),
            "{}",
            environment.text()
        );
        for pid in fixture.world.processes() {
            let argv = process::argv(pid);
            assert!(!argv.iter().any(|word| String::from_utf8_lossy(word).contains(nonce)), "{argv:?}");
        }
        let argv = |wanted: &[u8]| {
            let has_word = |pid: &u32| process::argv(*pid).iter().any(|word| word == wanted);
            fixture.world.processes().iter().filter(|pid| has_word(pid)).count()
        };
        assert_eq!((argv(b"mirror-log"), argv(b"mirror-shell")), (1, 0), "one reader, and nothing else");
    });
}

#[test]
fn prompts_and_hooks_of_the_person_keep_working() {
    let zsh = "setopt prompt_subst\nprecmd() { last=$?; n=$((n+1)) }\nPS1=$'two lines $n\\n%? > '\nRPROMPT='%*'\n";
    let bash = "PROMPT_COMMAND='last=$?; n=$((n+1))'\nPS1='two lines $n\\n$? > '\ntrap 'd=1' DEBUG\nset -o vi\n";
    let fish = "function fish_prompt; set -g last $status; echo two lines; echo \"$last > \"; end\n";
    for shell in ["bash", "zsh", "fish"] {
        let prepare = |world: &TestWorld| {
            fs::write(world.home().join(".bash_profile"), bash).expect("written");
            fs::write(world.home().join(".zshrc"), zsh).expect("written");
            let dir = world.dir().join("config/fish");
            fs::create_dir_all(&dir).expect("created");
            fs::write(dir.join("config.fish"), fish).expect("written");
        };
        let Some(fixture) = MirrorFixture::prepared(shell, prepare) else { continue };
        fixture.assert_exec("sh -c 'exit 5'", "", 5);
        fixture.wait_for_screen("the code in the prompt", |screen| {
            screen.trim_end().lines().last().is_some_and(|line| line.starts_with("5 >"))
        });
        fixture.assert_exec("echo $last", "5\n", 0);
        fixture.press("Escape");
        fixture.assert_exec("echo vi", "vi\n", 0);
    }
}
