//! `agtmux next`, `attach --client` and `back` move the tmux client of the caller, and no other client.

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::{AttachedClient, TestTmuxServer, wait_for, wait_until};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

/// The session and the pane that each client shows, by the pid of the client.
fn shown(server: &TestTmuxServer) -> Vec<(u32, String)> {
    let clients = server.run(&["list-clients", "-F", "#{client_pid} #{session_name} #{pane_id}"]);
    let row = |line: &str| line.split_once(' ').map(|(pid, place)| (pid.parse().expect("a pid"), place.to_owned()));
    clients.lines().filter_map(row).collect()
}

#[track_caller]
fn wait_for_place(server: &TestTmuxServer, client: &AttachedClient, place: &str) {
    wait_for(&format!("the client at {place}"), SOON, || {
        let shown = shown(server);
        if shown.contains(&(client.pid(), place.to_owned())) { Ok(()) } else { Err(shown) }
    });
}

/// Waits until the only client of the server shows this place.
#[track_caller]
fn wait_for_only_place(server: &TestTmuxServer, place: &str) {
    wait_for(&format!("one client at {place}"), SOON, || {
        let shown = server.try_run(&["list-clients", "-F", "#{session_name} #{pane_id}"]);
        if shown.as_deref() == Ok(place) { Ok(()) } else { Err(shown) }
    });
}

fn tty(server: &TestTmuxServer, client: &AttachedClient) -> String {
    let clients = server.run(&["list-clients", "-F", "#{client_pid} #{client_tty}"]);
    let line = clients.lines().find_map(|line| line.strip_prefix(&format!("{} ", client.pid())));
    line.expect("the client is attached").to_owned()
}

/// Binds the keys `g` and `G` as the plugin does.
fn bind_keys(server: &TestTmuxServer) {
    for (key, command) in [("g", "next"), ("G", "back")] {
        let run = format!("{AGTMUX} {command} --client '#{{client_tty}}' || true");
        server.run(&["bind-key", "-T", "prefix", key, "run-shell", "-b", &run]);
    }
}

fn press(client: &AttachedClient, key: u8) {
    client.type_keys(&[0x02, key]);
}

/// Presses the key until the status line of the client shows the text.
#[track_caller]
fn press_until_told(client: &AttachedClient, key: u8, text: &str) {
    wait_until(text, SOON, || {
        press(client, key);
        String::from_utf8_lossy(&client.output()).contains(text)
    });
}

/// Two waiting agents, the one in the session `first` for longer.
fn waiting_agents(fixture: &ActionFixture) -> [RecordingAgent; 2] {
    let agents = [fixture.agent("first"), fixture.agent("second")];
    for agent in &agents {
        fixture.show_scene(agent, "dialog", "waiting_approval");
    }
    agents
}

#[test]
fn keys_move_the_client_that_pressed_them_and_no_other() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    let [first, second] = waiting_agents(&fixture);
    let home = server.new_session("home", "cat");
    bind_keys(server);
    let (mine, other) = (server.attach("home"), server.attach("home"));
    let place = |session: &str, pane: &str| format!("{session} {pane}");
    let stays = place("home", &home);
    press(&mine, b'g');
    wait_for_place(server, &mine, &place("first", &first.pane));
    press(&mine, b'g');
    wait_for_place(server, &mine, &place("second", &second.pane));
    wait_for_place(server, &other, &stays);
    press(&mine, b'G');
    wait_for_place(server, &mine, &place("first", &first.pane));
    press(&mine, b'G');
    wait_for_place(server, &mine, &stays);
    wait_for_place(server, &other, &stays);
    // Nothing is left, and the key says so in the status line of the client.
    press_until_told(&mine, b'G', "has not moved this client");
    let tty = tty(server, &other);
    let attach = format!("{AGTMUX} attach {} --client {tty}", second.runtime);
    server.run(&["run-shell", &attach]);
    wait_for_place(server, &other, &place("second", &second.pane));
    wait_for_place(server, &mine, &stays);
}

#[test]
fn without_waiting_agents_the_client_stays_and_is_told() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let home = fixture.server.new_session("home", "cat");
    bind_keys(&fixture.server);
    let client = fixture.server.attach("home");
    press_until_told(&client, b'g', "no agent waits for you");
    fixture.show_scene(&agent, "dialog", "waiting_approval");
    press(&client, b'g');
    wait_for_place(&fixture.server, &client, &format!("work {}", agent.pane));
    press_until_told(&client, b'g', "no other agent waits");
    fixture.server.run(&["kill-session", "-t", "=home"]);
    press_until_told(&client, b'G', "has not moved this client");
    wait_for_place(&fixture.server, &client, &format!("work {}", agent.pane));
    assert!(!shown(&fixture.server).iter().any(|(_, place)| place.ends_with(&home)));
}

#[test]
fn a_command_that_cannot_know_its_client_moves_none() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    let _agents = waiting_agents(&fixture);
    let home = server.new_session("home", "cat");
    let (_one, _other) = (server.attach("home"), server.attach("home"));
    let out = fixture.world.home().join("out");
    let before = shown(server);
    let attempt = |command: &str| {
        // A job of the tmux server has no pane. TMUX_PANE is a leftover of the environment of the server.
        let line = format!("TMUX_PANE={home} {AGTMUX} {command} >{} 2>&1; true", out.display());
        server.run(&["run-shell", &line]);
        std::fs::read_to_string(&out).expect("the output")
    };
    for command in ["next", "attach claude", "back"] {
        let said = attempt(command);
        assert!(said.contains("cannot tell which tmux client to move"), "{command}: {said}");
        assert!(said.contains("--client '#{client_tty}'"), "{command}: {said}");
    }
    let said = attempt("next --client /dev/pts/99999");
    assert!(said.contains("no tmux client is attached at '/dev/pts/99999'"), "{said}");
    let said = attempt("next --client '#{x};kill-server'");
    assert!(said.contains("no tmux client is attached"), "{said}");
    assert_eq!(shown(server), before);
    let outside = agtmux(&fixture.world, &["next", "--client", "/dev/pts/1"]);
    assert!(outside.code == Some(2) && outside.stderr.contains("only inside tmux"), "{outside:?}");
}

#[test]
fn a_popup_moves_the_client_that_shows_it() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    let [first, second] = waiting_agents(&fixture);
    let home = server.new_session("home", "cat");
    // The only client: the popup needs no option.
    server.run(&["bind-key", "-T", "prefix", "g", "display-popup", "-E", &format!("{AGTMUX} next")]);
    let popup = format!("display-popup -E \"exec env AGTMUX_TMUX_CLIENT=#{{client_tty}} {AGTMUX} inbox\"");
    server.run(&["bind-key", "-T", "prefix", "a", "run-shell", "-C", &popup]);
    let mine = server.attach("home");
    press(&mine, b'g');
    wait_for_place(server, &mine, &format!("first {}", first.pane));
    // Keys go to the pane when the popup is closed.
    wait_until("the end of the popup", SOON, || {
        mine.type_keys(b"z");
        first.input_so_far().contains(&b'z')
    });
    let other = server.attach("home");
    // The interface attaches to the selected agent and closes the popup.
    press(&mine, b'a');
    let output = || String::from_utf8_lossy(&mine.output()).into_owned();
    wait_until("the interface", SOON, || output().contains("waiting only"));
    mine.type_keys(b"j\r");
    wait_for_place(server, &mine, &format!("second {}", second.pane));
    wait_for_place(server, &other, &format!("home {home}"));
    // Keys go to the pane again, so the popup is closed.
    wait_until("a key in the pane", SOON, || {
        mine.type_keys(b"z");
        second.input_so_far().contains(&b'z')
    });
}

#[test]
fn a_client_travels_to_another_server_and_comes_back() {
    let fixture = ActionFixture::new("");
    let (agents, here) = (&fixture.server, fixture.world.tmux("here"));
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "dialog", "waiting_approval");
    let home = here.new_session("home", "cat");
    let (at_home, at_agent) = (format!("home {home}"), format!("work {}", agent.pane));
    for server in [agents, &here] {
        bind_keys(server);
    }
    let client = here.attach("home");
    let other = here.attach("home");
    press(&client, b'g');
    wait_for_only_place(agents, &at_agent);
    wait_for_place(&here, &other, &at_home);
    assert_eq!(here.client_pids(), [other.pid()]);
    // Back returns to the server from which the client came.
    press(&client, b'G');
    wait_until("the return", SOON, || here.client_pids().len() == 2);
    wait_until("the departure", SOON, || agents.client_pids().is_empty());
    press(&client, b'g');
    wait_for_only_place(agents, &at_agent);
    // Detaching returns as well.
    press(&client, b'd');
    wait_until("the return", SOON, || here.client_pids().len() == 2);
    // An agent on the first server, while the client is on the other one.
    let second = fixture.agent_on_server(&here, "second");
    fixture.show_scene(&second, "dialog", "waiting_approval");
    press(&client, b'g');
    wait_for_only_place(agents, &at_agent);
    press(&client, b'g');
    wait_for("the client at the second agent", SOON, || {
        let shown = shown(&here);
        let there = shown.iter().any(|(pid, place)| *pid != other.pid() && place.ends_with(&second.pane));
        if there { Ok(()) } else { Err(shown) }
    });
    assert!(agents.client_pids().is_empty());
    drop(other);
    // The processes of the client end when the client detaches.
    press(&client, b'd');
    wait_until("the end of the client", SOON, || here.client_pids().is_empty());
}
