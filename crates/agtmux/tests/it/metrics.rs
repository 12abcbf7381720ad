//! `GET /metrics`, which Prometheus reads.

use std::collections::BTreeMap;

use agtmux_testkit::agtmux::{SOON, items, list, start, world};
use agtmux_testkit::web::start_with_web;
use agtmux_testkit::{TestWorld, http, wait_for, wait_until};
use serde_json::json;

/// Reads the samples, and checks that each line has the text format of Prometheus.
#[track_caller]
fn samples(text: &str) -> BTreeMap<String, f64> {
    let line = regex::Regex::new(
        r#"^([a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})?) (-?[0-9.]+)$"#,
    )
    .expect("valid");
    let comment = regex::Regex::new(r"^# (HELP [a-z_]+ .+|TYPE [a-z_]+ (gauge|counter|summary))$").expect("valid");
    let mut samples = BTreeMap::new();
    for text in text.lines() {
        if text.starts_with('#') {
            assert!(comment.is_match(text), "{text}");
            continue;
        }
        let parts = line.captures(text).unwrap_or_else(|| panic!("not a sample: {text}"));
        let before = samples.insert(parts[1].to_owned(), parts[2].parse().expect("a number"));
        assert_eq!(before, None, "{text} is there twice");
    }
    samples
}

#[track_caller]
fn metrics(world: &TestWorld) -> BTreeMap<String, f64> {
    let answer = http::get(&world.socket(), "/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    samples(&String::from_utf8(answer.body).expect("text"))
}

#[test]
fn metrics_show_agents_lag_queues_store_and_targets() {
    let world = world();
    world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    let idle = r#"agtmux_agents{target="host",state="idle"}"#;
    let running = r#"agtmux_agents{target="host",state="running"}"#;
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    let before = metrics(&world);
    assert_eq!(before[running], 0.0, "states without agents are there, too");
    assert!(before.contains_key(idle));
    let event = json!({"pane": "%0", "source": "hook", "event_type": "running", "dedupe_key": "k"});
    assert_eq!(http::post(&world.socket(), "/v1/events", &event.to_string()).status, 202);
    let after = wait_for("the running agent", SOON, || {
        let after = metrics(&world);
        if after[running] == 1.0 { Ok(after) } else { Err(format!("{after:?}")) }
    });
    assert_eq!(after["agtmux_event_lag_seconds_count"], before["agtmux_event_lag_seconds_count"] + 1.0);
    assert!(after["agtmux_event_lag_seconds_sum"] > 0.0 && after["agtmux_event_lag_last_seconds"] > 0.0);
    assert_eq!(after[r#"agtmux_queue_length{queue="store"}"#], 0.0);
    assert!(after[r#"agtmux_queue_length{queue="engine"}"#] <= after[r#"agtmux_queue_capacity{queue="engine"}"#]);
    assert!(after["agtmux_store_bytes"] > 0.0 && after["agtmux_store_used_bytes"] <= after["agtmux_store_bytes"]);
    assert_eq!(after["agtmux_store_limit_bytes"], f64::from(256 << 20));
    assert_eq!((after["agtmux_store_write_errors_total"], after["agtmux_store_up"]), (0.0, 1.0));
    assert_eq!(after[r#"agtmux_target_health{target="host",health="ok"}"#], 1.0);
    assert_eq!(after[r#"agtmux_target_health{target="host",health="down"}"#], 0.0);
    assert_eq!(after[r#"agtmux_panes{target="host",server="default"}"#], 1.0);
}

#[test]
fn hostile_server_names_are_escaped_in_metrics() {
    let world = world();
    world.tmux("a\"} 1\nfake{x=\"\\\u{1b}[31m").new_session("work", "cat");
    start(&world);
    wait_until("the server", SOON, || !items(&list(&world)).is_empty());
    let found = metrics(&world);
    let names: Vec<&String> = found.keys().filter(|name| name.contains("fake")).collect();
    let [name] = names[..] else { panic!("{names:?}") };
    assert!(name.starts_with(r#"agtmux_panes{target="host",server="a\"} 1\\nfake{x=\"\\\\x1b[31m"#), "{name}");
}

#[test]
fn metrics_over_tcp_need_a_token_and_a_read_only_one_suffices() {
    let world = world();
    let web = start_with_web(&world);
    assert_eq!(web.request("GET /metrics", &[], "").status, 401);
    for bearer in [web.bearer(), web.read_only_bearer()] {
        let answer = web.request("GET /metrics", &[&bearer], "");
        assert_eq!(answer.status, 200);
        assert!(samples(&String::from_utf8_lossy(&answer.body)).contains_key("agtmux_store_up"));
    }
    assert_eq!(
        web.request("POST /metrics", &[&web.bearer(), "Content-Type: application/json", "X-Agtmux: 1"], "{}").status,
        405
    );
}
