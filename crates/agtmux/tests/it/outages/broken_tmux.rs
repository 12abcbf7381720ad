//! A tmux program that is missing, too old, hangs or prints bad output.

use std::fs;
use std::path::PathBuf;

use agtmux_testkit::agtmux::{
    SOON, agtmux, configure, errors, list, pane_ids, script, start, stop, tmux_pane_ids, wait_for_hooks,
    wait_for_panes, world,
};
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use serde_json::Value;

use super::{error_of, server_with_agent, wait_for_error, wait_for_health};

#[test]
fn a_missing_tmux_is_reported_with_a_hint() {
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
    let output = agtmux(&world, &["list", "panes"]);
    assert!(output.stderr.contains("is not installed") && output.stderr.contains("try: install tmux"), "{output:?}");

    configure(&world, "");
    assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
    assert_eq!(errors(&wait_for_panes(&world, "default", &["%0".into()])), []);
}

#[test]
fn a_too_old_tmux_is_reported_with_a_hint() {
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

/// A tmux program whose failures a file controls.
struct FaultyTmux {
    fault_file: PathBuf,
    program: PathBuf,
}

impl FaultyTmux {
    fn new(world: &TestWorld) -> Self {
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
        Self { fault_file: order, program }
    }

    fn set_fault(&self, fault: &str) {
        let draft = self.fault_file.with_extension("draft");
        fs::write(&draft, fault).expect("the world is writable");
        fs::rename(draft, &self.fault_file).expect("the world is writable");
    }

    fn clear_fault(&self) {
        // A fault for one call may already be used up.
        let _ = fs::remove_file(&self.fault_file);
    }
}

const FAULTS: [&str; 5] = ["half", "dies", "garbage", "nothing", "fails"];

#[test]
fn one_bad_answer_is_not_an_outage_and_keeps_all_panes() {
    let world = world();
    let tmux = FaultyTmux::new(&world);
    let server = server_with_agent(&world, "default");
    let panes = tmux_pane_ids(&server);
    wait_for_panes(&world, "default", &panes);
    for fault in FAULTS {
        tmux.set_fault(&format!("{fault} once"));
        let name = format!("after-{fault}");
        server.run(&["rename-window", "-t", "=work:1", &name]);
        wait_for(&format!("the name {name}"), SOON, || {
            let listing = list(&world);
            assert_eq!(pane_ids(&listing, "default"), panes, "after {fault}");
            let windows = agtmux(&world, &["list", "windows", "--json"]).json();
            if windows.to_string().contains(&name) { Ok(()) } else { Err(windows.to_string()) }
        });
        wait_until("the fault to be used up", SOON, || !tmux.fault_file.exists());
    }
    assert!(tmux.program.exists());
}

#[test]
fn repeated_bad_answers_are_an_outage_and_keep_all_panes() {
    let world = world();
    let tmux = FaultyTmux::new(&world);
    let server = server_with_agent(&world, "default");
    let panes = tmux_pane_ids(&server);
    wait_for_panes(&world, "default", &panes);
    for fault in FAULTS {
        tmux.set_fault(fault);
        server.run(&["rename-window", "-t", "=work:1", &format!("during-{fault}")]);
        let listing = wait_for_error(&world, "listing_failed", Some("default"));
        assert_eq!((pane_ids(&listing, "default"), &listing["partial"]), (panes.clone(), &Value::Bool(true)));
        tmux.clear_fault();
        assert_eq!(pane_ids(&wait_for_health(&world), "default"), panes);
    }
}

#[test]
fn a_truncated_hook_listing_leaves_the_users_hooks_unchanged() {
    let world = world();
    let tmux = FaultyTmux::new(&world);
    let server = world.tmux("default");
    server.new_session("work", "cat");
    for scope in [&["-g"][..], &["-t", "=work:"]] {
        server.run(&[&["set-hook"], scope, &["alert-bell[4242]", "display-message theirs"]].concat());
    }
    let hooks_of = |scope: &[&str]| server.run(&[&["show-hooks"], scope].concat());
    let before = (hooks_of(&["-g"]), hooks_of(&["-t", "=work:"]));
    tmux.set_fault("hooks");
    start(&world);
    wait_for_panes(&world, "default", &["%0".into()]);
    server.run(&["new-session", "-d", "-s", "more", "cat"]);
    wait_for_panes(&world, "default", &["%0".into(), "%1".into()]);
    assert_eq!((hooks_of(&["-g"]), hooks_of(&["-t", "=work:"])), before, "a truncated listing must change no hooks");
    tmux.clear_fault();
    server.run(&["new-session", "-d", "-s", "third", "cat"]);
    wait_for_hooks(&world, "default");
    assert!(hooks_of(&["-t", "=work:"]).starts_with("alert-bell[4242] display-message theirs\nalert-bell[4243] "));
    stop(&world);
    assert_eq!((hooks_of(&["-g"]), hooks_of(&["-t", "=work:"])), before);
}
