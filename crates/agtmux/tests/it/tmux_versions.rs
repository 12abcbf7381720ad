//! The installed tmux program and the running server may have different versions.

use std::fs;
use std::path::PathBuf;

use agtmux_testkit::agtmux::{SOON, configure, errors, health, items, list, script, wait_for_panes, world};
use agtmux_testkit::{TestWorld, wait_for};
use serde_json::Value;

/// A wrapper around tmux. It either reports the server version that the test wrote to a file, or fails with a protocol
/// mismatch.
struct FakeTmux {
    version_file: PathBuf,
}

impl FakeTmux {
    fn new(world: &TestWorld) -> Self {
        let order = world.home().join("order");
        let body = format!(
            r##"order=$(cat {order} 2>/dev/null)
if [ "$1" = -V ]; then exec tmux -V; fi
case $order in
    mismatch) echo 'protocol version mismatch (client 9, server 8)' >&2; exit 1 ;;
    '') exec tmux "$@" ;;
esac
left=$#
while [ $left -gt 0 ]; do
    word=$1; shift
    case $word in *'#{{version}}'*) word=$(printf %s "$word" | sed "s/#{{version}}/$order/") ;; esac
    set -- "$@" "$word"
    left=$((left - 1))
done
exec tmux "$@""##,
            order = order.display()
        );
        let program = script(world, "other-tmux", &body);
        configure(world, &format!("[tmux]\nprogram = '{}'\n", program.display()));
        Self { version_file: order }
    }

    fn set_version(&self, what: &str) {
        fs::write(&self.version_file, what).expect("the world is writable");
    }
}

#[track_caller]
fn wait_for_error(world: &TestWorld, code: &str) -> Value {
    wait_for(code, SOON, || {
        let listing = list(world);
        let known = errors(&listing).contains(&(code.to_owned(), Some("default".to_owned())));
        let error = listing["target_errors"].as_array().and_then(|all| all.iter().find(|e| e["code"] == code).cloned());
        error.filter(|_| known).ok_or(listing.to_string())
    })
}

#[test]
fn a_server_with_an_old_version_is_reported() {
    let world = world();
    let program = FakeTmux::new(&world);
    program.set_version("3.1c");
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let error = wait_for_error(&world, "tmux_too_old");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("3.1c") && text.contains("3.2")), "{error}");
    assert!(error["hint"].as_str().is_some_and(|text| text.contains("kill-server")), "{error}");
    assert_eq!(items(&list(&world)).len(), 0, "an unsupported server has no listed panes");
    assert!(!server.run(&["show-hooks", "-g"]).contains("agtmux"), "agtmux installs no hooks in it");
    program.set_version("");
    server.kill_server();
    server.new_session("work", "cat");
    assert_eq!(errors(&wait_for_panes(&world, "default", &["%0".into()])), []);
}

#[test]
fn supported_and_unnumbered_versions_are_accepted() {
    for version in ["3.2a", "3.4", "3.6b", "next-3.8", "master"] {
        let world = world();
        FakeTmux::new(&world).set_version(version);
        world.tmux("default").new_session("work", "cat");
        wait_for_panes(&world, "default", &["%0".into()]);
        assert_eq!(health(&world)["servers"][0]["tmux_version"], version);
    }
}

#[test]
fn a_protocol_mismatch_is_reported_and_keeps_the_panes() {
    let world = world();
    let program = FakeTmux::new(&world);
    let server = world.tmux("default");
    server.new_session("work", "cat");
    wait_for_panes(&world, "default", &["%0".into()]);
    program.set_version("mismatch");
    server.run(&["rename-window", "-t", "=work:", "other"]);
    let error = wait_for_error(&world, "listing_failed");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("protocol version mismatch")), "{error}");
    assert!(error["hint"].as_str().is_some_and(|text| text.contains("tmux.program")), "{error}");
    assert_eq!(agtmux_testkit::agtmux::pane_ids(&list(&world), "default"), ["%0"]);
    program.set_version("");
    assert_eq!(errors(&wait_for_healthy(&world)), []);
}

#[track_caller]
fn wait_for_healthy(world: &TestWorld) -> Value {
    wait_for("a listing without errors", SOON, || {
        let listing = list(world);
        if listing["partial"] == false { Ok(listing) } else { Err(listing.to_string()) }
    })
}
