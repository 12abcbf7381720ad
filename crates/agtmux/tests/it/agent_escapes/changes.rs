//! Changes of the daemon itself: agents may not make them, and each attempt is in the audit log.

use agtmux_testkit::agtmux::agtmux;
use serde_json::Value;

use super::agent_fixture::AgentFixture;

/// A command that changes the daemon, and the kind and the description of its audit record.
const CHANGES: [(&str, &str, &str); 5] = [
    ("adapters disable claude", "adapter", "switch an adapter off"),
    ("adapters enable claude", "adapter", "switch an adapter on"),
    ("target add other --ssh-target nowhere.invalid", "target", "add a target"),
    ("target remove other --yes", "target", "remove a target"),
    ("web url", "web", "create a web link"),
];

fn rows_of<'a>(audit: &'a [Value], kind: &str, what: &str) -> Vec<&'a Value> {
    audit.iter().filter(|row| row["kind"] == kind && row["what"] == what).collect()
}

#[test]
fn agents_may_not_change_the_daemon_and_every_change_is_recorded() {
    let fixture = AgentFixture::start("web.listen = '127.0.0.1:0'\nssh.program = '/bin/false'\n");
    for (change, kind, what) in CHANGES {
        let name = fixture.write_script_with(kind, |_, _| format!("{} {change}", env!("CARGO_BIN_EXE_agtmux")));
        fixture.type_line(&fixture.agent, &format!("env -i setsid -f sh {}", fixture.script(&name)));
        fixture.result(&name).assert_refused();
        let args: Vec<&str> = change.split(' ').collect();
        let done = agtmux(&fixture.world, &args);
        assert!(!done.stderr.contains("agents may not"), "{change}: {}", done.stderr);
        let audit = fixture.audit();
        let rows = rows_of(&audit, kind, what);
        let [refused, made] = rows[..] else { panic!("{change}: {rows:?}") };
        assert_eq!((&refused["status"], &refused["code"]), (&"refused".into(), &"E_CALLER_IS_AGENT".into()));
        assert_eq!(made["status"], "done", "{change}: {made}");
        for row in [refused, made] {
            let caller = &row["caller"];
            assert!(caller["uid"].is_u64() && caller["pid"].is_u64() && caller["program"] == "agtmux", "{row}");
        }
    }
    let shown = agtmux(&fixture.world, &["audit"]).text();
    for words in ["adapter switch an adapter off", "target add a target", "web create a web link", "E_CALLER_IS_AGENT"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn a_connection_attempt_to_a_target_is_recorded() {
    let fixture = AgentFixture::start("ssh.program = '/bin/false'\n");
    for args in
        [&["target", "add", "other"][..], &["target", "connect", "other"], &["target", "remove", "other", "--yes"]]
    {
        agtmux(&fixture.world, args);
    }
    let audit = fixture.audit();
    let rows = rows_of(&audit, "target", "connect to a target");
    assert!(matches!(rows[..], [row] if row["ref"] == "other"), "{rows:?}");
}
