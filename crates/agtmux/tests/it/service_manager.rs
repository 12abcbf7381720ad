//! A daemon that a service manager runs: it says when it is ready, and tasks outlive it.

use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::agtmux::{SOON, agtmux, pid, run, start, world};
use agtmux_testkit::{ChildGuard, TestWorld, wait_until};

/// The notification socket of a service manager.
fn notification_socket(world: &TestWorld) -> UnixDatagram {
    let socket = UnixDatagram::bind(world.dir().join("notify.sock")).expect("the directory is writable");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a valid timeout");
    socket
}

fn next_message(socket: &UnixDatagram) -> String {
    let mut message = [0; 256];
    let length = socket.recv(&mut message).expect("the daemon sends a message");
    String::from_utf8_lossy(&message[..length]).trim().to_owned()
}

#[test]
fn the_service_manager_is_told_that_the_daemon_is_ready_and_stops() {
    let world = world();
    let socket = notification_socket(&world);
    let mut daemon = world.agtmux();
    daemon.args(["daemon", "run"]).env("NOTIFY_SOCKET", world.dir().join("notify.sock"));
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = ChildGuard::start(&mut daemon);
    assert_eq!(next_message(&socket), "READY=1");
    let status = run(world.agtmux().args(["status"]).env("AGTMUX_NO_AUTOSTART", "1"));
    assert_eq!(status.code, Some(0), "a ready daemon answers: {status:?}");
    assert_eq!(pid(&world), daemon.id());
    assert_eq!(agtmux(&world, &["daemon", "stop"]).code, Some(0));
    assert_eq!(next_message(&socket), "STOPPING=1");
}

#[test]
fn a_task_survives_a_restart_of_the_daemon() {
    let world = world();
    start(&world);
    let task = |args: &[&str]| {
        let mut command = world.agtmux();
        run(command.arg("task").args(args).env("AGTMUX_SESSION", "pi-demo-main"))
    };
    let release = world.dir().join("release");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; exit 7", release.display());
    assert_eq!(task(&["run", "job", "--", &script]).code, Some(0));
    let first = pid(&world);
    assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
    wait_until("another daemon", SOON, || pid(&world) != first);
    let listed = || task(&["list", "--json"]).json()["tasks"][0].clone();
    assert_eq!(listed()["dead"], false, "the task still runs: {}", listed());
    std::fs::write(&release, "").expect("the directory is writable");
    wait_until("the exit of the task", SOON, || listed()["exit_code"] == 7);
}
