//! Codes, outputs and the options of `mirror exec`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, run};
use agtmux_testkit::{process, wait_until};
use serde_json::{Value, json};

use super::{MirrorFixture, for_each_shell};

#[test]
fn commands_return_their_output_and_their_code() {
    for_each_shell(|fixture| {
        fixture.assert_exec("true", "", 0);
        fixture.assert_exec("false", "", 1);
        fixture.assert_exec("echo hello", "hello\n", 0);
        fixture.assert_exec("printf nonl", "nonl", 0);
        fixture.assert_exec("sh -c 'exit 3'", "", 3);
        // Each shell reports the signal in its own words.
        assert_eq!(fixture.exec("sh -c 'kill -9 $$'").code, Some(137), "{}", fixture.shell);
        fixture.assert_exec("echo \"hey!\" 'it is' '日本 é'", "hey! it is 日本 é\n", 0);
        fixture.assert_exec("echo to stderr >&2", "to stderr\n", 0);
        fixture.assert_exec("printf '\\n\\n'", "\n\n", 0);
        fixture.assert_exec("printf 'a\\tb\\n'", "a\tb\n", 0);
        fixture.assert_exec("# only a note\necho b", "b\n", 0);
        fixture.assert_exec("sh -c 'exit 2'; sh -c 'exit 7'", "", 7);
    });
}

#[test]
fn many_lines_are_one_command() {
    for_each_shell(|fixture| {
        fixture.assert_exec("echo a\necho b\necho c", "a\nb\nc\n", 0);
        let looped = match fixture.shell {
            "fish" => "for x in 1 2\necho $x\nend",
            _ => "for x in 1 2\ndo echo $x\ndone",
        };
        fixture.assert_exec(looped, "1\n2\n", 0);
        if fixture.shell != "fish" {
            fixture.assert_exec("(exit 3)", "", 3);
            fixture.assert_exec("cat <<E\nx\ty\n$((1+1))\nE\necho b", "x\ty\n2\nb\n", 0);
        }
        let items = fixture.activity(0);
        assert!(items.is_empty(), "commands of agtmux are no activity: {items:?}");
    });
}

#[test]
fn incomplete_commands_are_not_typed_and_the_terminal_stays_usable() {
    for_each_shell(|fixture| {
        for incomplete in ["echo \"open", "echo 'open", "(echo", "if true"] {
            let done = fixture.exec(incomplete);
            assert_eq!(done.code, Some(5), "{}: {incomplete}: {}", fixture.shell, done.stderr);
            assert!(done.stderr.contains("the command is not complete"), "{}", done.stderr);
        }
        assert!(!fixture.screen().contains("open"), "{}", fixture.screen());
        fixture.assert_exec("echo works", "works\n", 0);
    });
}

#[test]
fn the_shell_keeps_its_directory_and_its_variables() {
    for_each_shell(|fixture| {
        let dir = fixture.world.dir().join("tmp");
        let (dir, home) = (dir.to_str().expect("UTF-8"), fixture.world.home());
        let in_dir = fixture.mirror(&["exec", "--cwd", dir, "pwd"]);
        assert_eq!((in_dir.text().trim(), in_dir.code), (dir, Some(0)), "{}", in_dir.stderr);
        let result = fixture.json(&["exec", "--cwd", dir, "--json", "pwd"]);
        assert_eq!((&result["output"], &result["cwd"]), (&json!(format!("{dir}\n")), &json!(dir)));
        fixture.assert_exec("pwd", &format!("{}\n", home.display()), 0);
        let set = if fixture.shell == "fish" { "set -g agtx 5" } else { "agtx=5" };
        fixture.assert_exec(set, "", 0);
        fixture.assert_exec("echo $agtx", "5\n", 0);
        assert!(!fixture.screen().contains("agtmux"), "the screen shows only the commands: {}", fixture.screen());
    });
}

#[test]
fn a_background_job_does_not_delay_the_end() {
    for_each_shell(|fixture| {
        let pid_file = fixture.world.dir().join("tmp/pid");
        let started = fixture.exec(&format!("sh -c 'echo $$ >{}; exec sleep 1000' &", pid_file.display()));
        assert_eq!(started.code, Some(0), "{}", started.stderr);
        wait_until("the job", SOON, || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')));
        fixture.assert_exec("echo next", "next\n", 0);
        let pid: u32 = std::fs::read_to_string(&pid_file).expect("text").trim().parse().expect("a pid");
        assert!(process::is_alive(pid), "the job runs");
        assert_eq!(fixture.exec(&format!("kill {pid}")).code, Some(0));
        wait_until("the end of the job", SOON, || !process::is_alive(pid));
    });
}

#[test]
fn a_command_is_interrupted_when_its_time_is_up() {
    for_each_shell(|fixture| {
        let done = fixture.mirror(&["exec", "--timeout", "500ms", "echo before; sleep 1000"]);
        assert_eq!(done.code, Some(124), "{}: {}", fixture.shell, done.stderr);
        assert!(done.text().starts_with("before\n"), "{}", done.text());
        assert!(done.stderr.contains("the command timed out"), "{}", done.stderr);
        fixture.assert_exec("echo next", "next\n", 0);
    });
}

#[test]
fn an_interrupted_client_interrupts_its_command() {
    let fixture = MirrorFixture::bash();
    let mut command = fixture.command(&["exec", "sleep 1000"]);
    let child = command.spawn().expect("agtmux starts");
    fixture.wait_for_status("running");
    assert!(process::signal(child.id(), rustix::process::Signal::INT));
    let output = child.wait_with_output().expect("agtmux ends");
    assert_eq!(output.status.code(), Some(130));
    fixture.wait_for_status("ready");
    fixture.assert_exec("echo next", "next\n", 0);
}

#[test]
fn the_result_has_all_fields_as_json() {
    let fixture = MirrorFixture::bash();
    let result = fixture.json(&["exec", "--json", "echo a; sh -c 'kill -15 $$'"]);
    assert_eq!(result["exit_code"], 143);
    assert_eq!((&result["signal"], &result["status"]), (&json!(15), &json!("ended")));
    assert!(result["output"].as_str().is_some_and(|output| output.starts_with("a\n")), "{result}");
    assert_eq!((&result["truncated"], &result["timed_out"]), (&json!(false), &json!(false)));
    assert!(result["duration_ms"].is_u64() && result["output_file"].is_string(), "{result}");
    let long = fixture.json(&["exec", "--json", "--max-bytes", "100", "seq 1000"]);
    assert_eq!(long["truncated"], true);
    let output = long["output"].as_str().expect("text");
    assert!(output.ends_with("\n999\n1000\n") && output.len() <= 100, "{output}");
    assert_eq!(long["omitted_bytes"].as_u64(), Some(3893 - output.len() as u64));
}

#[test]
fn variables_are_exported_and_the_pane_shows_only_the_command() {
    for shell in ["bash", "zsh", "fish", "dash"] {
        let Some(fixture) = MirrorFixture::with_shell(shell) else { continue };
        let value = r#"a b'"\\ $(touch x) \"#;
        let with = |variable: &str, command: &str| {
            let done = fixture.mirror(&["exec", "--env", variable, "--env", "second=2", "--", command]);
            (done.text(), done.code)
        };
        let set = with(&format!("AGTX={value}"), "sh -c 'printf \"%s|\" \"$AGTX\" \"$second\"'");
        assert_eq!(set, (format!("{value}|2|"), Some(0)), "{shell}");
        fixture.assert_exec("sh -c 'echo $second'", "2\n", 0);
        assert_eq!(with("AGTX=new", "echo $AGTX"), ("new\n".to_owned(), Some(0)), "{shell}");
        if shell != "dash" {
            assert!(!fixture.screen().contains("export") && !fixture.screen().contains("second=2"));
        }
        let refused = fixture.mirror(&["exec", "--env", "a;id=1", "true"]);
        assert!(refused.stderr.contains("is not the name of a variable"), "{shell}: {}", refused.stderr);
    }
}

#[test]
fn a_directory_with_a_backslash_and_a_quote_is_entered() {
    for_each_shell(|fixture| {
        let dir = fixture.world.dir().join(r"tmp/it's \n\");
        std::fs::create_dir(&dir).expect("the world is writable");
        let dir = dir.to_str().expect("UTF-8");
        let done = fixture.mirror(&["exec", "--cwd", dir, "pwd"]);
        assert_eq!((done.text(), done.code), (format!("{dir}\n"), Some(0)), "{}: {}", fixture.shell, done.stderr);
    });
}

#[test]
fn a_followed_command_prints_its_output_in_parts_and_then_its_result() {
    let fixture = MirrorFixture::bash();
    let go = fixture.world.dir().join("tmp/go");
    let command = format!("printf 'a\\377\\n'; until [ -e {} ]; do sleep 0.05; done; echo b; (exit 3)", go.display());
    let mut child = fixture.command(&["exec", "--follow", "--json", &command]).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().expect("agtmux starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    // The command has not ended yet.
    assert_eq!(next(), json!({"output": "a\u{10ffff}\n"}));
    std::fs::write(&go, "").expect("written");
    let mut output = String::new();
    let ended = loop {
        match next() {
            part if part["output"].is_string() => output += part["output"].as_str().expect("text"),
            item => break item["ended"].clone(),
        }
    };
    assert_eq!((output.as_str(), &ended["exit_code"], &ended["output"]), ("b\n", &json!(3), &json!("")));
    assert_eq!(child.wait().expect("ended").code(), Some(3));
    let quick = fixture.mirror(&["exec", "--follow", "--json", "echo c"]).text();
    let items: Vec<Value> = quick.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((items.len(), &items[0], &items[1]["ended"]["status"]), (2, &json!({"output": "c\n"}), &json!("ended")));
}

#[test]
fn a_command_opens_a_terminal_with_the_named_shell() {
    let Some(fixture) = MirrorFixture::without_terminal("zsh", |_| {}) else { return };
    let done = fixture.mirror(&["exec", "--shell", "zsh", "echo $ZSH_VERSION"]);
    assert!(done.code == Some(0) && !done.text().trim().is_empty(), "{} {}", done.text(), done.stderr);
    assert_eq!(fixture.wait_for_status("ready")["shell"], "zsh");
}

#[test]
fn scripts_find_the_pane_and_the_last_code_in_the_session() {
    let fixture = MirrorFixture::bash();
    let variable = |name: &str| fixture.server.try_run(&["show-environment", "-t", "=work", name]).unwrap_or_default();
    assert_eq!(variable("PI_MIRROR_PANE"), format!("PI_MIRROR_PANE={}", fixture.pane()));
    fixture.assert_exec("sh -c 'exit 4'", "", 4);
    wait_until("the code", SOON, || variable("PI_LAST_RC") == "PI_LAST_RC=1 4");
    fixture.assert_exec("true", "", 0);
    wait_until("the next code", SOON, || variable("PI_LAST_RC") == "PI_LAST_RC=2 0");
    let again = fixture.mirror(&["start", "--json"]);
    assert_eq!(again.json()["pane_id"], json!(fixture.pane()), "the same terminal");
    let read = fixture.mirror(&["read", "--lines", "50"]);
    assert!(read.text().contains("exit 4"), "{}", read.text());
}

#[test]
fn outside_tmux_the_command_to_run_is_printed() {
    let fixture = MirrorFixture::bash();
    let mut outside = fixture.world.agtmux();
    let done = run(outside.args(["mirror", "exec", "true"]).env_remove("TMUX").env_remove("TMUX_PANE"));
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("tmux new-session -A -s main"), "{}", done.stderr);
}

#[test]
fn stop_closes_the_pane_and_removes_the_files() {
    let fixture = MirrorFixture::bash();
    let pane = fixture.pane();
    let done = fixture.mirror(&["stop"]);
    assert_eq!(done.text(), format!("closed {pane}\n"), "{}", done.stderr);
    assert!(!fixture.server.run(&["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
    let left: Vec<_> = std::fs::read_dir(fixture.world.state_dir().join("mirrors")).expect("a directory").collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(fixture.json(&["status", "--json"])["items"].as_array().is_some_and(Vec::is_empty));
}
