//! Restart, stop and other versions.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, agtmux, configure, pid, start, stop, world};
use agtmux_testkit::{ChildGuard, wait_for, wait_until};

use crate::helper_process;

#[test]
fn a_restart_with_faulty_settings_stops_nothing() {
    let world = world();
    let daemon = start(&world);
    configure(&world, "[daemon]\nlog_levle = \"info\"\n");
    let refused = agtmux(&world, &["daemon", "restart"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("log_levle") && refused.stderr.contains("stopped nothing"), "{}", refused.stderr);
    assert_eq!((pid(&world), world.daemons()), (daemon, vec![daemon]));
    configure(&world, "[daemon]\nlog_level = \"info\"\n");
    assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
    assert_ne!(pid(&world), daemon);
}

#[test]
fn an_open_watch_does_not_start_a_daemon_that_was_stopped() {
    let world = world();
    world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    let (lines, errors) = (world.dir().join("lines"), world.dir().join("errors"));
    let mut watch = world.agtmux();
    watch.args(["watch", "--all", "--format", "jsonl"]).stdin(Stdio::null());
    watch.stdout(File::create(&lines).expect("created")).stderr(File::create(&errors).expect("created"));
    let _watch = ChildGuard::start(&mut watch);
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    wait_until("the first line", SOON, || read(&lines).contains("claude"));
    stop(&world);
    wait_until("the message about the disconnect", SOON, || read(&errors).contains("the daemon disconnected"));
    // A watch that starts the daemon does so after one second.
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        let status = agtmux(&world, &["daemon", "status"]);
        assert_eq!((status.code, world.daemons()), (Some(3), vec![]), "{}", status.stderr);
    }
    start(&world);
    let before = read(&lines).len();
    world.tmux("default").new_session("more", &world.fake_agent_command("codex"));
    wait_for("the next change", SOON, || {
        let text = read(&lines);
        if text[before..].contains("codex") { Ok(()) } else { Err(text) }
    });
}

#[test]
fn a_daemon_of_another_version_is_named_in_one_line() {
    let world = world();
    let list = r#"{"schema_version":2,"generated_at":"2026-11-15T09:00:00Z","filters":{},"partial":false,
        "summary":{"by_state":{},"by_agent":{},"by_target":{}},"target_errors":[],"items":[]}"#;
    let headers = format!("agtmux-api: {}\r\nagtmux-version: 9.9.9\r\n", agtmux_api::API_VERSION);
    let mut other = world.command(helper_process::test_program());
    let helper = "daemon_access::helper_serves_as_a_daemon_of_another_version";
    helper_process::run_as_helper(&mut other, helper, world.socket());
    let _other = ChildGuard::start(other.env("HEADERS", headers).env("BODY", list).stdout(Stdio::null()));
    wait_until("the other daemon", SOON, || UnixStream::connect(world.socket()).is_ok());
    for args in [&["status"][..], &["status", "--json"]] {
        let done = agtmux(&world, args);
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        let expected = format!(
            "agtmux: the daemon is version 9.9.9; this is agtmux {}; run `agtmux daemon restart`\n",
            agtmux_api::VERSION
        );
        assert_eq!(done.stderr, expected, "{args:?}");
    }
}
