//! The `agtmux task` commands.

use std::fs;
use std::os::unix::fs::symlink;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, kill, list, pid, run, script, world};
use agtmux_testkit::task_commands::{SESSION, command, event_types, events, launch, project, task, wait_for_event};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

#[test]
fn task_run_prints_four_lines_and_sets_the_documented_options() {
    let world = world();
    let done = task(
        &world,
        &["run", "api.server_1", "--", "echo $PI_TMUX_SESSION $AGTMUX_SESSION [$PI_SESSION_ID]; pwd; exec sleep 100"],
    );
    let cwd = project(&world).display().to_string();
    assert_eq!(done.text(), format!("session={SESSION}\nwindow_id=@0\ntask=api.server_1\ncwd={cwd}\n"));
    let server = world.tmux("default");
    let format =
        "#{window_name}|#{remain-on-exit}|#{@pi_task_command}|#{@pi_task_cwd}|#{pane_pipe}|#{automatic-rename}";
    let shown = server.run(&["display-message", "-p", "-t", "@0", format]);
    let shell = "echo $PI_TMUX_SESSION $AGTMUX_SESSION [$PI_SESSION_ID]; pwd; exec sleep 100";
    assert_eq!(shown, format!("api.server_1|on|{shell}|{cwd}|1|0"));
    assert!(server.run(&["show-hooks", "-t", "=pi-proj-1:"]).contains("alert-bell"));
    wait_for("the log", SOON, || {
        let log = task(&world, &["logs", "api.server_1"]).text();
        (log == format!("{SESSION} {SESSION} []\n{cwd}\n")).then_some(()).ok_or(log)
    });
    let listed = list(&world);
    let pane = items(&listed).iter().find(|item| item["name"] == "api.server_1").expect("the task is listed");
    assert_eq!((&pane["agent_type"], &pane["state"]), (&json!("task"), &json!("running")));
}

#[test]
fn one_argument_is_a_shell_line_and_several_keep_their_quoting() {
    let world = world();
    launch(&world, "one", "echo a   b; echo $((1+1))");
    let several =
        task(&world, &["run", "--json", "several", "--", "printf", "<%s>", "a   b", "it's", "$HOME", ""]).json();
    wait_for_event(&world, &several, "exited");
    assert_eq!(task(&world, &["logs", "several"]).text(), "<a   b><it's><$HOME><>\n");
    wait_until("both lines", SOON, || task(&world, &["logs", "one"]).text() == "a b\n2\n");
}

#[test]
fn invalid_task_names_and_sessions_are_refused_with_a_hint() {
    let world = world();
    for (args, why) in [
        (vec!["run", "a b", "--", "true"], "1 to 40"),
        (vec!["run", "x", "--session", "a.b", "--", "true"], "is not a valid task session name"),
        (vec!["run", "x", "--", "  "], "the command is empty"),
    ] {
        let done = run(&mut command(&world, &args));
        assert!(
            done.code == Some(2) && done.stderr.contains(why) && done.stderr.contains("try:"),
            "{args:?}: {done:?}"
        );
    }
    let done = run(world.agtmux().args(["task", "startup"]));
    assert!(done.code == Some(2) && done.stderr.contains("AGTMUX_SESSION"), "{done:?}");
    assert!(!world.tmux("default").is_running(), "nothing was started");
}

#[test]
fn without_a_session_tasks_use_the_session_of_the_project() {
    let world = world();
    let run_in_project = |args: &[&str]| run(world.agtmux().current_dir(project(&world)).arg("task").args(args));
    let started = run_in_project(&["run", "build", "--", "exec sleep 100"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.text().starts_with("session=agtmux-proj\n"), "{started:?}");
    assert!(started.stderr.contains("the task runs in session 'agtmux-proj'"), "{started:?}");
    let list = run_in_project(&["list"]);
    assert!(list.text().contains("build") && list.stderr.is_empty(), "{list:?}");
    assert!(task(&world, &["run", "named", "--", "true"]).stderr.is_empty(), "the session was given");
}

#[test]
fn a_live_task_is_replaced_only_on_request() {
    let world = world();
    let first = launch(&world, "build", "exec sleep 100");
    let refused = run(&mut command(&world, &["run", "build", "--", "true"]));
    assert_eq!(refused.code, Some(5), "{refused:?}");
    for words in ["task 'build' still runs in session 'pi-proj-1'", "--replace build"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
    assert_eq!(event_types(&events(&world), &first), ["started"]);
    let second = task(&world, &["run", "--json", "--replace", "build", "--", "exit 3"]).json();
    let exited = wait_for_event(&world, &first, "exited");
    assert_eq!(exited["signal"], "SIGHUP", "{exited}");
    wait_for_event(&world, &second, "exited");
    let all = events(&world);
    let at = |run: &Value, kind: &str| all.iter().position(|e| e["run_id"] == run["run_id"] && e["type"] == kind);
    assert!(at(&first, "exited") < at(&second, "started"), "{all:?}");
    // A task that has ended is replaced without a request.
    launch(&world, "build", "true");
}

#[test]
fn the_pi_helper_names_run_task_commands() {
    let world = world();
    let (binary, dir) = (env!("CARGO_BIN_EXE_agtmux"), world.home());
    for name in ["pi-tmux-task-run", "pi-tmux-session-name"] {
        symlink(binary, dir.join(name)).expect("linked");
    }
    let name = run(world.command(dir.join("pi-tmux-session-name")).args(["/w/My.App", "id-1"]));
    assert_eq!(name.text(), "pi-my-app-id-1\n");
    let by_env =
        run(world.command(dir.join("pi-tmux-session-name")).current_dir(project(&world)).env("PI_SESSION_ID", "7"));
    assert_eq!(by_env.text(), "pi-proj-7\n");
    assert_eq!(run(world.command(dir.join("pi-tmux-session-name")).args(["rel", "1"])).code, Some(2));
    let mut start = world.command(dir.join("pi-tmux-task-run"));
    let done = run(start.current_dir(project(&world)).env("PI_TMUX_SESSION", "pi-proj-7").args(["t", "--", "exit 5"]));
    assert!(done.text().starts_with("session=pi-proj-7\nwindow_id=@0\ntask=t\n"), "{done:?}");
}

#[test]
fn task_commands_report_a_missing_session() {
    let world = world();
    let shown = task(&world, &["list", "--json"]).json();
    assert_eq!(
        (&shown["session_name"], &shown["exists"], &shown["tasks"]),
        (&json!(SESSION), &json!(false), &json!([]))
    );
    for command in [vec!["prune-dead", "--json"], vec!["kill-all", "--yes", "--json"]] {
        assert_eq!(task(&world, &command).json()["exists"], false, "{command:?}");
    }
    assert_eq!(events(&world), Vec::<Value>::new());
}

#[test]
fn task_list_shows_running_and_ended_tasks() {
    let world = world();
    let ended = launch(&world, "ended", "printf '\\a\\a\\ahello\\n'; exit 7");
    let killed = launch(&world, "killed", "kill -TERM $$");
    let runs = launch(&world, "runs", "echo up; exec sleep 100");
    wait_for_event(&world, &ended, "exited");
    wait_for_event(&world, &killed, "exited");
    let shown = wait_for("the output of all, and both ends", SOON, || {
        let shown = task(&world, &["list", "--json"]).json();
        let each = |task: &Value| (task["output_preview"].clone(), task["dead"].clone());
        let all = shown["tasks"].as_array().map(|tasks| tasks.iter().map(each).collect::<Vec<_>>());
        let expected = [("hello", true), ("", true), ("up", false)].map(|(text, dead)| (json!(text), json!(dead)));
        (all == Some(expected.to_vec())).then_some(shown.clone()).ok_or(shown)
    });
    let row = |at: usize| {
        let task = &shown["tasks"][at];
        let fields =
            ["window_id", "window_name", "pane_id", "pane_state_known", "dead", "exit_code", "signal", "bell_count"];
        fields.map(|name| task[name].clone())
    };
    assert_eq!(
        row(0),
        [json!("@0"), json!("ended"), json!("%0"), json!(true), json!(true), json!(7), Value::Null, json!(3)]
    );
    assert_eq!(row(1)[4..7], [json!(true), Value::Null, json!("SIGTERM")]);
    assert_eq!(row(2)[4..7], [json!(false), Value::Null, Value::Null]);
    assert_eq!(shown["tasks"][2]["current_command"], "echo up; exec sleep 100");
    assert_eq!(shown["tasks"][2]["task_cwd"], project(&world).display().to_string());
    wait_for("the states of all", SOON, || {
        let states: Vec<Value> = items(&list(&world)).iter().map(|item| item["state"].clone()).collect();
        (states == [json!("error"), json!("error"), json!("running")]).then_some(()).ok_or(states)
    });
    assert_eq!(event_types(&events(&world), &runs), ["started"]);
}

#[test]
fn a_task_prompt_is_reported_once_and_can_be_answered() {
    let world = world();
    let ask = launch(&world, "ask", "printf 'Proceed? [y/N] '; read a; echo got $a; exec sleep 100");
    let event = wait_for_event(&world, &ask, "input");
    assert_eq!((&event["prompt"], &event["level"]), (&json!("Proceed? [y/N]"), &json!("warning")));
    assert_eq!(event["message"], "tmux task @0 (ask) is waiting for input: Proceed? [y/N]");
    assert_eq!(event["delivery"], json!({"status": true, "notice": false, "message": true, "agent_turn": "followUp"}));
    let state = || items(&list(&world)).first().map(|item| item["state"].clone());
    wait_until("the state waiting_input", SOON, || state() == Some(json!("waiting_input")));
    let typed = task(&world, &["input", "ask", "--text", "y", "--json"]).json();
    assert_eq!(typed["pane_id"], "%0");
    wait_until("the answer", SOON, || task(&world, &["logs", "ask"]).text().ends_with("got y\n"));
    wait_until("the state running", SOON, || state() == Some(json!("running")));
    assert_eq!(event_types(&events(&world), &ask), ["started", "input"]);
    let audited = agtmux(&world, &["audit", "--json"]).json();
    let done: Vec<String> = items(&audited).iter().map(|item| format!("{} {}", item["kind"], item["status"])).collect();
    assert_eq!(done, ["\"task\" \"done\"", "\"send\" \"done\""]);
}

#[test]
fn task_events_name_who_ended_the_task() {
    let world = world();
    let stopped = launch(&world, "stopped", "trap '' HUP; sleep 100; true");
    let window = launch(&world, "window", "exec sleep 100");
    let killed = launch(&world, "killed", "exec sleep 100");
    let reused = launch(&world, "reused", "exec sleep 100");
    let done = launch(&world, "done", "true");
    wait_for_event(&world, &done, "exited");
    let end = task(&world, &["stop", "stopped", "--json"]).json();
    assert_eq!((&end["tasks"][0]["task"], &end["tasks"][0]["signal"]), (&json!("stopped"), &json!("SIGTERM")));
    assert_eq!(wait_for_event(&world, &stopped, "exited")["signal"], "SIGTERM");
    task(&world, &["stop", "window", "--window"]);
    let gone = wait_for_event(&world, &window, "disappeared");
    let message = "tmux task @1 (window) disappeared from session after the user manually killed it";
    assert_eq!(gone["message"], message);
    let again = task(&world, &["restart", "reused", "--json"]).json();
    assert_eq!((&again["window_id"], again["run_id"] == reused["run_id"]), (&json!("@3"), false));
    world.tmux("default").run(&["kill-window", "-t", "@2"]);
    assert_eq!(
        wait_for_event(&world, &killed, "disappeared")["message"],
        "tmux task @2 (killed) disappeared from session"
    );
    let pruned = task(&world, &["prune-dead", "--json"]).json();
    let names: Vec<&Value> = pruned["tasks"].as_array().expect("a list").iter().map(|task| &task["task"]).collect();
    assert_eq!(names, [&json!("stopped"), &json!("done")]);
    task(&world, &["kill-all", "--yes"]);
    wait_until("the session to be gone", SOON, || task(&world, &["list", "--json"]).json()["exists"] == false);
    // Late events of the killed tasks would be stored before the events of this task.
    launch(&world, "last", "true");
    let events = events(&world);
    assert_eq!(event_types(&events, &reused), ["started", "exited"], "a task replaced by restart has its exit event");
    assert_eq!(event_types(&events, &again), ["started"], "a task ended by kill-all has no exit event");
    assert_eq!(event_types(&events, &done), ["started", "exited"], "a pruned task has one exit event");
    assert_eq!(event_types(&events, &stopped), ["started", "exited"]);
}

#[test]
fn sessions_of_the_user_are_not_changed() {
    let world = world();
    let server = world.tmux("default");
    server.new_session(SESSION, "exec sleep 100");
    for args in [vec!["run", "x", "--", "true"], vec!["kill-all", "--yes"], vec!["prune-dead"], vec!["stop", "0"]] {
        let done = run(&mut command(&world, &args));
        assert!(done.code == Some(5) && done.stderr.contains("was not created by this agtmux"), "{args:?}: {done:?}");
    }
    assert_eq!(server.panes().len(), 1);
    assert_eq!(server.run(&["show-options", "-w", "-t", "=pi-proj-1:"]), "");
    // `pi-foo` is a prefix of `pi-foo-bar`.
    run(command(&world, &["run", "a", "--", "exec sleep 100"]).env("AGTMUX_SESSION", "pi-foo-bar"));
    let done = run(command(&world, &["kill-all", "--yes", "--json"]).env("AGTMUX_SESSION", "pi-foo"));
    assert_eq!(done.json()["exists"], false);
    assert!(server.try_run(&["has-session", "-t", "=pi-foo-bar"]).is_ok());
}

#[test]
fn task_run_wait_returns_output_and_code_or_leaves_the_task_running() {
    let world = world();
    let done = run(&mut command(&world, &["run", "--wait", "20s", "quick", "--", "echo out; exit 4"]));
    assert_eq!(done.code, Some(4));
    assert!(done.text().starts_with("session=pi-proj-1\n") && done.text().ends_with("out\nexit_code=4\n"), "{done:?}");
    let done = run(&mut command(&world, &["run", "--wait", "20s", "--json", "hit", "--", "kill -9 $$"]));
    assert_eq!(done.code, Some(137));
    let result: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((&result["finished"], &result["signal"]), (&json!(true), &json!("SIGKILL")));
    let done = run(&mut command(&world, &["run", "--wait", "300ms", "slow", "--", "echo up; exec sleep 100"]));
    assert!(done.code == Some(0) && done.stderr.contains("agtmux task logs slow -f"), "{done:?}");
    assert_eq!(run(&mut command(&world, &["wait", "slow", "--timeout", "100ms"])).code, Some(1));
    assert_eq!(run(&mut command(&world, &["wait", "quick"])).code, Some(1));
}

#[test]
fn agents_may_start_read_and_end_their_tasks_but_not_type() {
    let world = world();
    let server = world.tmux("default");
    let out = world.home().join("out");
    let tries: [&[&str]; 6] = [
        &["run", "x", "--", "exec sleep 100"],
        &["list"],
        &["logs", "x"],
        &["input", "x", "--text", "y"],
        &["stop", "x"],
        &["kill-all", "--yes"],
    ];
    let line = |words: &&[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let (agtmux, out) = (env!("CARGO_BIN_EXE_agtmux"), out.display());
        format!("{agtmux} task {} >/dev/null 2>&1; echo $? >>{out}\n", words.join(" "))
    };
    let body: String = tries.iter().map(line).collect();
    let tool = script(&world, "tool", &format!("{body}echo end >>{}", out.display()));
    let agent = world.shell_copy("claude");
    let line = format!(
        "AGTMUX_SESSION={SESSION} exec {} -c '{}; while read -r line; do :; done'",
        agent.display(),
        tool.display()
    );
    agtmux(&world, &["daemon", "start"]);
    server.new_session("work", &line);
    let codes = wait_for("the exit codes of the agent's commands", SOON, || {
        fs::read_to_string(&out).ok().filter(|text| text.ends_with("end\n")).ok_or("not yet")
    });
    assert_eq!(codes.lines().collect::<Vec<_>>(), ["0", "0", "0", "5", "0", "0", "end"]);
}

#[test]
fn the_on_event_program_receives_each_event() {
    let world = world();
    let seen = world.home().join("seen");
    let hook = script(&world, "hook", &format!("cat >>{}", seen.display()));
    configure(
        &world,
        &format!("[tasks]\non_event = \"{} $(touch {}/no) ;\"\n", hook.display(), world.home().display()),
    );
    let run = launch(&world, "x", "exit 3");
    let lines = wait_for("both events", SOON, || {
        let text = fs::read_to_string(&seen).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (lines.len() == 2).then_some(lines).ok_or(text)
    });
    assert_eq!(event_types(&lines, &run), ["started", "exited"]);
    assert!(!world.home().join("no").exists(), "on_event is not run by a shell");
}

#[test]
fn tasks_survive_a_daemon_kill_and_events_are_not_repeated() {
    let world = world();
    let ended = launch(&world, "ended", "read a; printf '\\a\\a'; echo bye; exit 9");
    let lives = launch(&world, "lives", "exec sleep 100");
    let vanishes = launch(&world, "vanishes", "exec sleep 100");
    let before = events(&world).len();
    kill(pid(&world));
    let server = world.tmux("default");
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    server.run(&["kill-window", "-t", "@2"]);
    wait_until("the task to end", SOON, || server.run(&["display-message", "-p", "-t", "%0", "#{pane_dead}"]) == "1");
    let exited = wait_for_event(&world, &ended, "exited");
    assert_eq!((&exited["exit_code"], &exited["recent_output"]), (&json!(9), &json!(["bye"])));
    assert_eq!(exited["message"], "tmux task @0 (ended) sent a terminal notification, then exited with code 9");
    wait_for_event(&world, &vanishes, "disappeared");
    for _ in 0..3 {
        kill(pid(&world));
        agtmux(&world, &["daemon", "start"]);
    }
    let events = events(&world);
    assert_eq!(events.len(), before + 3, "{events:?}");
    assert_eq!(event_types(&events, &ended), ["started", "notify", "exited"]);
    assert_eq!(event_types(&events, &lives), ["started"]);
    assert!(server.run(&["display-message", "-p", "-t", "%1", "#{pane_dead}"]) == "0");
    let again = launch(&world, "ended", "exit 1");
    assert_eq!(again["window_id"], "@0", "the task reuses its window");
    wait_for_event(&world, &again, "exited");
}

#[test]
fn events_pending_for_on_event_survive_a_daemon_kill() {
    let world = world();
    let (received, go) = (world.home().join("received"), world.home().join("go"));
    let body = format!(
        "read -r line; echo \"$line\" >>{0}; until [ -e {1} ]; do sleep 0.05; done",
        received.display(),
        go.display()
    );
    let hook = script(&world, "hook", &body);
    configure(&world, &format!("[tasks]\non_event = \"{}\"\n", hook.display()));
    let run = launch(&world, "t", "exit 3");
    wait_for_event(&world, &run, "exited");
    let received_count = || fs::read_to_string(&received).unwrap_or_default().lines().count();
    wait_until("the first event to be received", SOON, || received_count() == 1);
    kill(pid(&world));
    fs::write(&go, "").expect("written");
    let later = launch(&world, "u", "exit 4");
    wait_for_event(&world, &later, "exited");
    wait_until("all four events", SOON, || received_count() >= 4);
    let kinds: Vec<(Value, Value)> = fs::read_to_string(&received)
        .expect("readable")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event"))
        .map(|event| (event["task"].clone(), event["type"].clone()))
        .collect();
    let expected = [("t", "started"), ("t", "exited"), ("u", "started"), ("u", "exited")];
    assert_eq!(kinds, expected.map(|(task, kind)| (json!(task), json!(kind))));
}

#[test]
fn the_session_comes_from_option_then_pi_then_agtmux_variable() {
    let world = world();
    let session = |options: &[&str], pi: Option<&str>| {
        let mut list = command(&world, &[&["list", "--json"], options].concat());
        list.env_remove("PI_TMUX_SESSION");
        if let Some(pi) = pi {
            list.env("PI_TMUX_SESSION", pi);
        }
        run(&mut list).json()["session_name"].clone()
    };
    assert_eq!(session(&[], None), SESSION);
    assert_eq!(session(&[], Some("")), SESSION, "an empty variable is ignored");
    assert_eq!(session(&[], Some("pi-x-2")), "pi-x-2");
    assert_eq!(session(&["--session", "pi-y-3"], Some("pi-x-2")), "pi-y-3");
}

#[test]
fn task_run_accepts_a_command_without_dashes() {
    let world = world();
    let done = task(&world, &["run", "--json", "t", "echo one; exit 5"]).json();
    assert_eq!(wait_for_event(&world, &done, "exited")["exit_code"], 5);
    let words = task(&world, &["run", "--json", "u", "echo", "a  b"]).json();
    assert_eq!(wait_for_event(&world, &words, "exited")["recent_output"], json!(["a  b"]));
}

#[test]
fn a_task_does_not_inherit_the_session_that_started_it() {
    let world = world();
    let shell = "echo [$PI_SESSION_ID] [$PI_SESSION_FILE] $PI_TMUX_SESSION $PI_OTHER";
    let mut start = command(&world, &["run", "--json", "t", "--", shell]);
    // The first task starts the tmux server, which inherits these variables.
    let stale =
        [("PI_SESSION_ID", "old"), ("PI_SESSION_FILE", "/old"), ("PI_TMUX_SESSION", SESSION), ("PI_OTHER", "kept")];
    let done = run(start.envs(stale)).json();
    assert_eq!(wait_for_event(&world, &done, "exited")["recent_output"], json!([format!("[] [] {SESSION} kept")]));
}

#[test]
fn task_events_are_limited_to_the_session_by_default() {
    let world = world();
    let mine = launch(&world, "mine", "exit 0");
    let other =
        run(command(&world, &["run", "--json", "other", "--", "exit 0"]).env("AGTMUX_SESSION", "pi-proj-2")).json();
    wait_for_event(&world, &mine, "exited");
    wait_for_event(&world, &other, "exited");
    let of = |args: &[&str]| {
        let answer = task(&world, &[&["events", "--json", "--after", "0"], args].concat()).json();
        let mut tasks: Vec<Value> = items(&answer).iter().map(|event| event["task"].clone()).collect();
        tasks.sort_by_key(Value::to_string);
        tasks.dedup();
        tasks
    };
    assert_eq!(of(&[]), ["mine"]);
    assert_eq!(of(&["--session", "pi-proj-2"]), ["other"]);
    assert_eq!(of(&["--all"]), ["mine", "other"]);
    let newest = task(&world, &["events", "--limit", "1"]).text();
    assert!(newest.trim_end().ends_with("tmux task @0 (mine) exited with code 0"), "{newest}");
}
