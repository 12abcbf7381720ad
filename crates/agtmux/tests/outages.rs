//! A tmux that is missing, hung, broken or gone is called so, and what was known of it is kept.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_elsewhere.rs"]
mod elsewhere;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agtmux::{
    SOON, agtmux, configure, errors, items, list, pane_ids, run, script, start, stop, true_pane_ids, wait_for_hooks,
    wait_for_panes, world,
};
use agtmux_testkit::{TmuxServer, World, process, wait_for, wait_until};
use elsewhere::Elsewhere;
use rustix::process::Signal;
use serde_json::Value;

/// How soon an outage has to be known. The goal is two seconds; here a machine may be busy with much else.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// A server with an agent, a second pane and a second window.
fn server_with_agent(world: &World, name: &str) -> TmuxServer {
    let server = world.tmux(name);
    server.new_session("work", &world.stand_in("claude"));
    server.run(&["split-window", "-t", "=work:", "cat"]);
    server.run(&["new-window", "-t", "=work:", "-n", "more", "cat"]);
    server
}

fn agent(listing: &Value, server: &str) -> Option<Value> {
    items(listing).iter().find(|i| i["identity"]["server"] == server && i["agent_type"] == "claude").cloned()
}

#[track_caller]
fn wait_for_agent(world: &World, server: &str, reason: &str) -> Value {
    wait_for(&format!("the agent on {server} as unknown/{reason}"), SOON, || {
        let listing = list(world);
        let fits = agent(&listing, server).filter(|a| a["state"] == "unknown" && a["reason_code"] == reason);
        fits.ok_or(listing.to_string())
    })
}

#[track_caller]
fn wait_for_error(world: &World, code: &str, server: Option<&str>) -> Value {
    let wanted = (code.to_owned(), server.map(str::to_owned));
    wait_for(&format!("{code} for {server:?}"), SOON, || {
        let listing = list(world);
        if errors(&listing).contains(&wanted) { Ok(listing) } else { Err(listing.to_string()) }
    })
}

#[track_caller]
fn wait_for_health(world: &World) -> Value {
    wait_for("a listing without errors", SOON, || {
        let listing = list(world);
        if listing["partial"] == false { Ok(listing) } else { Err(listing.to_string()) }
    })
}

fn error_of(listing: &Value, code: &str) -> Value {
    let errors = listing["target_errors"].as_array().cloned().unwrap_or_default();
    errors.into_iter().find(|error| error["code"] == code).unwrap_or_else(|| panic!("no {code} in {listing}"))
}

#[test]
fn a_stopped_server_is_named_and_its_panes_are_kept() {
    let world = world();
    let (first, second) = (server_with_agent(&world, "first"), world.tmux("second"));
    second.new_session("other", "cat");
    let panes = true_pane_ids(&first);
    let before = wait_for_agent(&world, "first", "unsupported_signal");
    wait_for_panes(&world, "first", &panes);

    let stopped = first.stop();
    let stopped_at = jiff::Timestamp::now();
    let listing = wait_for_error(&world, "server_not_responding", Some("first"));
    let error = error_of(&listing, "server_not_responding");
    let since: jiff::Timestamp = error["since"].as_str().and_then(|t| t.parse().ok()).expect("a time");
    let took = since.duration_since(stopped_at).unsigned_abs();
    println!("a stopped server was named after {took:?}");
    assert!(took < KNOWN_WITHIN, "{took:?}");
    assert_eq!(listing["partial"], true);
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains(&format!("kill -CONT {stopped}"))), "{error}");
    assert_eq!(pane_ids(&listing, "first"), panes);
    let lost = wait_for_agent(&world, "first", "target_unreachable");
    assert_eq!(lost["runtime_id"], before["runtime_id"]);

    second.run(&["new-window", "-t", "=other:", "cat"]);
    let begun = Instant::now();
    wait_for_panes(&world, "second", &true_pane_ids(&second));
    println!("a new pane on the other server was listed after {:?}", begun.elapsed());
    let told = agtmux(&world, &["list", "panes", "--all"]);
    assert!(told.code == Some(0) && told.stderr.contains("host@first") && told.stderr.contains("try:"), "{told:?}");

    first.cont(stopped);
    let healed = wait_for_agent(&world, "first", "unsupported_signal");
    assert_eq!(healed["runtime_id"], before["runtime_id"]);
    assert_eq!(errors(&list(&world)), []);
    first.run(&["kill-window", "-t", "=work:more"]);
    wait_for_panes(&world, "first", &true_pane_ids(&first));
}

#[test]
fn a_killed_server_is_gone_and_a_new_one_has_new_panes() {
    let world = world();
    let (first, second, claude) = (world.tmux("first"), world.tmux("second"), world.stand_in("claude"));
    first.new_session("work", &claude);
    second.new_session("other", "cat");
    let before = wait_for_agent(&world, "first", "unsupported_signal");
    first.kill_server();
    let listing = wait_for_panes(&world, "first", &[]);
    assert_eq!((listing["partial"].clone(), pane_ids(&listing, "second")), (Value::Bool(false), vec!["%0".into()]));

    first.new_session("work", &claude);
    let after = wait_for_agent(&world, "first", "unsupported_signal");
    assert_eq!((&after["identity"], &after["agent_type"]), (&before["identity"], &before["agent_type"]));
    assert_ne!(after["runtime_id"], before["runtime_id"], "%0 of another server is another pane");
    wait_for_panes(&world, "first", &true_pane_ids(&first));
}

#[test]
fn a_server_that_was_replaced_at_once_is_another_one() {
    let world = world();
    let (server, claude) = (world.tmux("default"), world.stand_in("claude"));
    server.new_session("work", &claude);
    let before = wait_for_agent(&world, "default", "unsupported_signal");
    // Both in one go: whoever looks only now and then sees the same socket and the same %0.
    // The old server may still be ending when the new one is wanted.
    let swap = "tmux -S \"$1\" kill-server
                for attempt in 1 2 3 4 5 6 7 8 9 10; do
                    tmux -S \"$1\" -f /dev/null new-session -d -s work \"$2\" && exit
                done; exit 1";
    let done = run(world.command("sh").args(["-c", swap, "sh"]).arg(server.socket()).arg(&claude));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    wait_for("the new agent alone", SOON, || {
        let listing = list(&world);
        let new = agent(&listing, "default").filter(|agent| agent["runtime_id"] != before["runtime_id"]);
        if new.is_some() && items(&listing).len() == 1 { Ok(()) } else { Err(listing.to_string()) }
    });
}

#[test]
fn a_server_that_was_killed_hard_leaves_only_its_socket() {
    let world = world();
    let server = server_with_agent(&world, "default");
    wait_for_panes(&world, "default", &true_pane_ids(&server));
    agtmux::kill(server.pid());
    assert_eq!(errors(&wait_for_panes(&world, "default", &[])), []);
    assert!(server.socket().exists(), "nobody was left to remove it");
    stop(&world);
    let fresh = list(&world);
    assert_eq!((items(&fresh).len(), errors(&fresh)), (0, vec![]), "a dead socket is no outage");
    let told = agtmux(&world, &["list", "panes"]);
    assert!(told.code == Some(0) && told.stderr.contains("no tmux server is running"), "{told:?}");
    server.new_session("again", "cat");
    wait_for_panes(&world, "default", &true_pane_ids(&server));
}

#[test]
fn a_missing_tmux_is_named_with_what_to_do() {
    let world = world();
    configure(&world, "[tmux]\nprogram = '/nonexistent/tmux'\n");
    world.tmux("default").new_session("work", "cat");
    let listing = list(&world);
    assert_eq!(
        (&listing["partial"], errors(&listing)),
        (&Value::Bool(true), vec![("tmux_not_installed".into(), None)])
    );
    let error = error_of(&listing, "tmux_not_installed");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("/nonexistent/tmux")), "{error}");
    assert!(error["hint"].as_str().is_some_and(|text| text.contains("tmux.program")), "{error}");
    let told = agtmux(&world, &["list", "panes"]);
    assert!(told.stderr.contains("is not installed") && told.stderr.contains("try: install tmux"), "{told:?}");

    configure(&world, "");
    assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
    assert_eq!(errors(&wait_for_panes(&world, "default", &["%0".into()])), []);
}

#[test]
fn a_tmux_that_is_too_old_is_named_with_what_to_do() {
    let world = world();
    let old = script(
        &world,
        "old-tmux",
        "if [ \"$1\" = -V ]; then echo 'tmux 2.9a'; exit; fi; echo 'unknown option -N' >&2; exit 1",
    );
    configure(&world, &format!("[tmux]\nprogram = '{}'\n", old.display()));
    world.tmux("default").new_session("work", "cat");
    let listing = wait_for_error(&world, "tmux_too_old", None);
    assert_eq!(listing["partial"], true);
    let error = error_of(&listing, "tmux_too_old");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("2.9") && text.contains("3.2")), "{error}");
    assert!(error["hint"].as_str().is_some_and(|text| text.contains("install tmux")), "{error}");
}

#[test]
fn a_tmux_program_that_hangs_does_not_hang_the_daemon() {
    let world = world();
    let hung = script(&world, "hung-tmux", "exec sleep 1000");
    configure(&world, &format!("[tmux]\nprogram = '{}'\n", hung.display()));
    world.tmux("default").new_session("work", "cat");
    wait_for_error(&world, "server_not_responding", Some("default"));
}

/// A tmux program that does what a file tells it to.
struct Faulty {
    order: PathBuf,
    program: PathBuf,
}

impl Faulty {
    fn new(world: &World) -> Self {
        let order = world.home().join("fault");
        let body = format!(
            r#"order={order}
all=$*
fault=$(cat $order 2>/dev/null)
case $fault in
    *once) mv $order $order.$$ 2>/dev/null || fault= ;;
    hooks*) case $all in *show-hooks*) ;; *) fault= ;; esac ;;
esac
answer() {{
    tmux "$@" > $order.out.$$
    head -c $(($(wc -c < $order.out.$$) / 2)) $order.out.$$
    rm -f $order.out.$$
}}
case $fault in
    half* | hooks*) answer "$@" ;;
    dies*) answer "$@"; kill -9 $$ ;;
    garbage*) head -c 3000 /dev/urandom ;;
    nothing*) ;;
    fails*) echo 'something broke' >&2; exit 1 ;;
    *) exec tmux "$@" ;;
esac"#,
            order = order.display()
        );
        let program = script(world, "faulty-tmux", &body);
        configure(world, &format!("[tmux]\nprogram = '{}'\n", program.display()));
        Self { order, program }
    }

    fn order(&self, fault: &str) {
        let draft = self.order.with_extension("draft");
        fs::write(&draft, fault).expect("the world is writable");
        fs::rename(draft, &self.order).expect("the world is writable");
    }

    fn heal(&self) {
        // It may have been carried out already.
        let _ = fs::remove_file(&self.order);
    }
}

const FAULTS: [&str; 5] = ["half", "dies", "garbage", "nothing", "fails"];

#[test]
fn one_bad_answer_is_no_outage_and_loses_no_pane() {
    let world = world();
    let faulty = Faulty::new(&world);
    let server = server_with_agent(&world, "default");
    let panes = true_pane_ids(&server);
    wait_for_panes(&world, "default", &panes);
    for fault in FAULTS {
        faulty.order(&format!("{fault} once"));
        let name = format!("after-{fault}");
        server.run(&["rename-window", "-t", "=work:1", &name]);
        wait_for(&format!("the name {name}"), SOON, || {
            let listing = list(&world);
            assert_eq!(pane_ids(&listing, "default"), panes, "after {fault}");
            let windows = agtmux(&world, &["list", "windows", "--json"]).json();
            if windows.to_string().contains(&name) { Ok(()) } else { Err(windows.to_string()) }
        });
        wait_until("the fault to be used up", SOON, || !faulty.order.exists());
    }
    assert!(faulty.program.exists());
}

#[test]
fn bad_answers_that_go_on_are_an_outage_and_lose_no_pane() {
    let world = world();
    let faulty = Faulty::new(&world);
    let server = server_with_agent(&world, "default");
    let panes = true_pane_ids(&server);
    wait_for_panes(&world, "default", &panes);
    for fault in FAULTS {
        faulty.order(fault);
        server.run(&["rename-window", "-t", "=work:1", &format!("during-{fault}")]);
        let listing = wait_for_error(&world, "listing_failed", Some("default"));
        assert_eq!((pane_ids(&listing, "default"), &listing["partial"]), (panes.clone(), &Value::Bool(true)));
        faulty.heal();
        assert_eq!(pane_ids(&wait_for_health(&world), "default"), panes);
    }
}

#[test]
fn half_an_answer_about_hooks_does_not_cost_the_user_a_hook() {
    let world = world();
    let faulty = Faulty::new(&world);
    let server = world.tmux("default");
    server.new_session("work", "cat");
    for place in [&["-g"][..], &["-t", "=work:"]] {
        server.run(&[&["set-hook"], place, &["alert-bell[4242]", "display-message theirs"]].concat());
    }
    let theirs = |place: &[&str]| server.run(&[&["show-hooks"], place].concat());
    let before = (theirs(&["-g"]), theirs(&["-t", "=work:"]));
    faulty.order("hooks");
    start(&world);
    wait_for_panes(&world, "default", &["%0".into()]);
    server.run(&["new-session", "-d", "-s", "more", "cat"]);
    wait_for_panes(&world, "default", &["%0".into(), "%1".into()]);
    assert_eq!((theirs(&["-g"]), theirs(&["-t", "=work:"])), before, "nothing is changed on half the knowledge");
    faulty.heal();
    server.run(&["new-session", "-d", "-s", "third", "cat"]);
    wait_for_hooks(&world, "default");
    assert!(theirs(&["-t", "=work:"]).starts_with("alert-bell[4242] display-message theirs\nalert-bell[4243] "));
    stop(&world);
    assert_eq!((theirs(&["-g"]), theirs(&["-t", "=work:"])), before);
}

#[test]
fn a_server_without_its_socket_is_not_gone() {
    let world = world();
    let server = server_with_agent(&world, "default");
    let (pid, panes) = (server.pid(), true_pane_ids(&server));
    wait_for_panes(&world, "default", &panes);
    fs::remove_file(server.socket()).expect("the socket is there");
    // Its panes live on, and something happens in one of them.
    let listing = wait_for_error(&world, "server_not_responding", Some("default"));
    assert_eq!(pane_ids(&listing, "default"), panes);
    // tmux makes its socket anew when it is asked to like this.
    assert!(process::signal(pid, Signal::USR1));
    wait_for_health(&world);
    wait_for_agent(&world, "default", "unsupported_signal");

    fs::remove_file(server.socket()).expect("the socket is there again");
    wait_for_error(&world, "server_not_responding", Some("default"));
    agtmux::kill(pid);
    assert_eq!(errors(&wait_for_panes(&world, "default", &[])), [], "now it is gone");
}

#[test]
fn a_daemon_started_beside_a_stopped_server_says_so() {
    let world = world();
    let (hung, other) = (server_with_agent(&world, "hung"), world.tmux("other"));
    other.new_session("work", "cat");
    let panes = true_pane_ids(&hung);
    let stopped = hung.stop();
    let begun = Instant::now();
    start(&world);
    println!("the daemon started beside a stopped server after {:?}", begun.elapsed());
    let listing = wait_for_error(&world, "server_not_responding", Some("hung"));
    assert_eq!(pane_ids(&listing, "other"), ["%0"]);
    hung.cont(stopped);
    wait_for_health(&world);
    wait_for_panes(&world, "hung", &panes);
    let before = wait_for_agent(&world, "hung", "unsupported_signal");

    // The next daemon remembers what the last one knew.
    let stopped = hung.stop();
    agtmux::kill(agtmux::pid(&world));
    start(&world);
    let listing = wait_for_error(&world, "server_not_responding", Some("hung"));
    assert_eq!(pane_ids(&listing, "hung"), panes);
    let lost = wait_for_agent(&world, "hung", "target_unreachable");
    assert_eq!(lost["runtime_id"], before["runtime_id"]);
    hung.cont(stopped);
    wait_for_agent(&world, "hung", "unsupported_signal");
}

/// Connects until the server's queue is full: whoever connects then waits, as long as it is stopped.
fn fill_queue(socket: &Path) -> Vec<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let address = SocketAddrUnix::new(socket).expect("a short path");
    let mut held = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let one = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
        match connect(&one, &address) {
            Ok(()) => held.push(UnixStream::from(one)),
            Err(rustix::io::Errno::AGAIN) => return held,
            Err(error) => panic!("cannot connect to {socket:?}: {error}"),
        }
    }
}

#[test]
fn a_stopped_server_with_a_full_queue_does_not_hang_the_daemon() {
    let world = world();
    let (hung, other) = (server_with_agent(&world, "hung"), world.tmux("other"));
    other.new_session("work", "cat");
    let panes = true_pane_ids(&hung);
    let stopped = hung.stop();
    let held = fill_queue(hung.socket());
    start(&world);
    let listing = wait_for_error(&world, "server_not_responding", Some("hung"));
    assert_eq!(pane_ids(&listing, "other"), ["%0"]);
    other.run(&["new-window", "-t", "=work:", "cat"]);
    wait_for_panes(&world, "other", &true_pane_ids(&other));
    drop(held);
    hung.cont(stopped);
    wait_for_panes(&world, "hung", &panes);
}

#[test]
fn servers_that_come_later_are_found() {
    let world = world();
    // Not even the directory is there yet.
    fs::remove_dir(world.tmux_sockets()).expect("nothing is in it");
    assert_eq!(items(&list(&world)).len(), 0);
    for name in ["default", "second"] {
        // By its name: then tmux makes the directory.
        let begin = ["-L", name, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "cat"];
        assert_eq!(run(world.command("tmux").args(begin)).code, Some(0));
        wait_for_panes(&world, name, &["%0".into()]);
    }
    assert_eq!(errors(&list(&world)), []);
}

#[test]
fn a_caller_brings_its_own_server_along() {
    let world = world();
    let elsewhere = Elsewhere::at(&world, "brought");
    elsewhere.new_session("away");
    assert_eq!(items(&list(&world)).len(), 0, "nobody has told of it yet");
    let inside = run(world.agtmux().args(["list", "panes", "--all", "--json"]).env("TMUX", elsewhere.tmux_variable()));
    assert_eq!(pane_ids(&inside.json(), &elsewhere.name()), ["%0"], "the first answer has it already");
    elsewhere.ask(&["new-window", "-t", "=away:", "cat"]);
    wait_for_panes(&world, &elsewhere.name(), &["%0".into(), "%1".into()]);
    elsewhere.ask(&["kill-server"]);
    assert_eq!(errors(&wait_for_panes(&world, &elsewhere.name(), &[])), []);
}

#[test]
fn sockets_in_the_configuration_are_watched() {
    let world = world();
    let (there, later) = (Elsewhere::at(&world, "there"), Elsewhere::at(&world, "later"));
    there.new_session("one");
    let paths = [there.socket(), later.socket()].map(|path| format!("'{}'", path.display()));
    configure(&world, &format!("[tmux]\nsockets = [{}]\n", paths.join(", ")));
    let listing = list(&world);
    assert_eq!((pane_ids(&listing, &there.name()), errors(&listing)), (vec!["%0".into()], vec![]));
    later.new_session("two");
    wait_for_panes(&world, &later.name(), &["%0".into()]);
    later.ask(&["kill-server"]);
    wait_for_panes(&world, &later.name(), &[]);
    later.new_session("three");
    wait_for_panes(&world, &later.name(), &["%0".into()]);
}

#[test]
fn what_no_event_tells_of_is_seen_all_the_same() {
    for config in ["", "[tmux]\nhooks = false\npty_events = false\n"] {
        let world = world();
        configure(&world, config);
        let server = world.tmux("default");
        // A write to /dev/tty is invisible to whoever watches the terminal itself.
        server.new_session("work", r"while read -r line; do printf '\033]2;%s\033\\' $line > /dev/tty; done");
        wait_for_panes(&world, "default", &["%0".into()]);
        server.run(&["send-keys", "-t", "%0", "new-title", "Enter"]);
        wait_for("the title", SOON, || {
            let listing = list(&world);
            if items(&listing)[0]["title"] == "new-title" { Ok(()) } else { Err(listing.to_string()) }
        });
        server.run(&["split-window", "-t", "%0", "cat"]);
        wait_for_panes(&world, "default", &["%0".into(), "%1".into()]);
        server.run(&["kill-pane", "-t", "%1"]);
        wait_for_panes(&world, "default", &["%0".into()]);
    }
}

#[test]
fn a_pane_that_is_kept_after_its_death_tells_how_it_died() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let exits = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "read line; exit 7"]);
    let killed = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "exec cat"]);
    wait_for_panes(&world, "default", &true_pane_ids(&server));
    server.run(&["send-keys", "-t", &exits, "Enter"]);
    let victim = server.panes().into_iter().find(|pane| pane.pane_id == killed).expect("it lives").pid;
    agtmux::kill(victim);
    // Under load this tmux forgets the signal now and then; nobody can know more than it says. It may also say so late.
    let truth = || -> Vec<String> {
        let how = "#{pane_id} #{pane_dead} #{pane_dead_status} #{pane_dead_signal}";
        server.run(&["list-panes", "-a", "-F", how]).lines().map(str::to_owned).collect()
    };
    let told = wait_for("agtmux to tell both deaths as tmux does", SOON, || {
        let (truth, said) = (truth(), items(&list(&world)).iter().map(death).collect::<Vec<_>>());
        let both = truth.iter().filter(|line| line.contains(" 1 ")).count() == 2;
        if both && said == truth { Ok(said) } else { Err((said, truth)) }
    });
    assert!(told.contains(&format!("{exits} 1 7 ")) && told.contains(&"%0 0  ".to_owned()), "{told:?}");
}

/// As the test asks tmux for it.
fn death(item: &Value) -> String {
    let (dead, number) = (&item["dead"], |value: &Value| value.as_i64().map(|n| n.to_string()).unwrap_or_default());
    let pane = item["identity"]["pane_id"].as_str().unwrap_or_default();
    format!("{pane} {} {} {}", u8::from(!dead.is_null()), number(&dead["exit_code"]), number(&dead["signal"]))
}

#[test]
fn a_pane_that_several_sessions_show_is_counted_once() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", &world.stand_in("claude"));
    server.new_session("other", "cat");
    server.run(&["link-window", "-s", "=work:0", "-t", "=other:"]);
    server.run(&["new-session", "-d", "-t", "=work", "-s", "group"]);
    wait_for("the agent in three places", SOON, || {
        let listing = agtmux(&world, &["list", "panes", "--json"]).json();
        if items(&listing).len() == 3 { Ok(()) } else { Err(listing.to_string()) }
    });
    let listing = agtmux(&world, &["list", "panes", "--json"]).json();
    let summary = &listing["summary"];
    assert_eq!((&summary["by_agent"]["claude"], &summary["by_state"]["unknown"]), (&1.into(), &1.into()), "{summary}");
}
