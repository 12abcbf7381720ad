//! A read-only token changes nothing.

use std::path::PathBuf;

use agtmux_testkit::agtmux::{SOON, run, world};
use agtmux_testkit::http;
use agtmux_testkit::web::{WebAccess, operations, start_with_web};
use agtmux_testkit::{TestWorld, wait_until};
use serde_json::{Value, json};

const CHANGE_HEADERS: [&str; 2] = ["Content-Type: application/json", "X-Agtmux: 1"];

/// A tmux server in a directory that the daemon does not watch. The headers of a request can name it.
struct ServerElsewhere<'a> {
    world: &'a TestWorld,
    dir: PathBuf,
    socket: PathBuf,
}

impl<'a> ServerElsewhere<'a> {
    fn start(world: &'a TestWorld) -> Self {
        let dir = world.dir().join("elsewhere");
        std::fs::create_dir(&dir).expect("the world is writable");
        let mut tmux = world.command("tmux");
        tmux.env("TMUX_TMPDIR", &dir).args(["-L", "hidden", "-f", "/dev/null", "new-session", "-d", "cat"]);
        assert_eq!(run(&mut tmux).code, Some(0));
        let socket = dir.join(format!("tmux-{}", rustix::process::getuid().as_raw())).join("hidden");
        Self { world, dir, socket }
    }

    fn headers(&self) -> [String; 2] {
        [format!("agtmux-tmux: {},1,0", self.socket.display()), format!("agtmux-tmux-tmpdir: {}", self.dir.display())]
    }
}

impl Drop for ServerElsewhere<'_> {
    fn drop(&mut self) {
        let killed = run(self.world.command("tmux").arg("-S").arg(&self.socket).arg("kill-server"));
        assert!(killed.code == Some(0) || std::thread::panicking(), "{}", killed.stderr);
    }
}

/// What a change would show: the watched servers and hosts, the adapters, the tasks and the actions.
fn visible_state(world: &TestWorld) -> Value {
    let get = |path: &str| http::get(&world.socket(), path).json();
    let names = |value: &Value, name: &str| -> Vec<Value> {
        value.as_array().into_iter().flatten().map(|item| item[name].clone()).collect()
    };
    let adapters: Vec<Value> =
        get("/v1/adapters")["items"].as_array().into_iter().flatten().map(|item| item["enabled"].clone()).collect();
    json!({
        "servers": names(&get("/v1/health")["servers"], "server"),
        "targets": names(&get("/v1/targets")["items"], "name"),
        "adapters": adapters,
        "actions": get("/v1/audit")["items"],
    })
}

fn ask(web: &WebAccess, method: &str, path: &str, headers: &[&str]) -> u16 {
    let body = if method == "GET" { "" } else { "{}" };
    web.request(&format!("{method} {path}"), &[headers, &CHANGE_HEADERS].concat(), body).status
}

/// Covers every operation of the OpenAPI document, including future ones.
#[test]
fn a_read_only_token_changes_nothing_on_any_path() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    let web = start_with_web(&world);
    let elsewhere = ServerElsewhere::start(&world);
    wait_until("the default server", SOON, || visible_state(&world)["servers"] == json!(["default"]));
    let before = visible_state(&world);
    let ([tmux, tmpdir], bearer) = (elsewhere.headers(), web.read_only_bearer());
    let headers = [bearer.as_str(), &tmux, &tmpdir];
    let all = operations(&world);
    for (method, path) in &all {
        let status = ask(&web, method, path, &headers);
        // A check of a host starts programs on the host.
        let may_read = method == "GET" && !path.ends_with("/doctor");
        assert_eq!(status == 403, !may_read, "{method} {path} answered {status}");
        assert_eq!(visible_state(&world), before, "after {method} {path}");
    }
    assert!(all.len() > 35, "{all:?}");
    // The page, a login and a wrong token are no way around.
    for (method, path, headers) in [
        ("GET", "/", &headers[1..]),
        ("POST", "/v1/web/login", &headers[1..]),
        ("GET", "/v1/panes", &[tmux.as_str(), "Authorization: Bearer wrong"]),
        ("GET", "/nothing", &headers),
        ("GET", "/v1/openapi.json", &headers),
    ] {
        ask(&web, method, path, headers);
        assert_eq!(visible_state(&world), before, "after {method} {path}");
    }
    // The same headers with the other token do add the server, so the checks above are not vacuous.
    assert_eq!(ask(&web, "GET", "/v1/health", &[&web.bearer(), &tmux, &tmpdir]), 200);
    wait_until("the named server", SOON, || visible_state(&world)["servers"].to_string().contains("hidden"));
}
