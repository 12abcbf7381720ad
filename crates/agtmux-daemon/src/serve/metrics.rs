//! `GET /metrics`: figures for Prometheus, in its text format.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use agtmux_api::VERSION;
use agtmux_api::fleet_items::FleetItems;
use agtmux_core::ids::AgentType;
use agtmux_core::sanitize;
use agtmux_core::state::State;
use agtmux_core::target::TargetHealth;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::ServeContext;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Return figures about agents, queues, the database and the targets, for Prometheus.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn get_metrics(context: ServeContext) -> Response {
    let mut text = MetricsText::default();
    add_daemon(&mut text, &context);
    add_queues(&mut text, &context);
    add_store(&mut text, &context);
    let log = context.event_log.read();
    add_fleet(&mut text, &log.view.fleet);
    drop(log);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text.0).into_response()
}

fn add_daemon(text: &mut MetricsText, context: &ServeContext) {
    text.family("agtmux_build_info", "gauge", "The version of the daemon.");
    text.sample("agtmux_build_info", &[("version", VERSION)], 1);
    let started = context.started_at.as_second();
    text.gauge("agtmux_start_time_seconds", "When the daemon started, in seconds since the epoch.", started);
    let seq = context.event_log.read().seq();
    text.counter("agtmux_published_events_total", "The number of the last published event.", seq);
    let events = context.engine.ingest_stats().summary();
    text.family(
        "agtmux_event_lag_seconds",
        "summary",
        "The time from the arrival of an event until it is stored and published.",
    );
    text.sample("agtmux_event_lag_seconds_sum", &[], events.total.as_secs_f64());
    text.sample("agtmux_event_lag_seconds_count", &[], events.count);
    let help = "The time from the arrival of the last event until it was stored and published.";
    text.gauge("agtmux_event_lag_last_seconds", help, events.last.as_secs_f64());
}

fn add_queues(text: &mut MetricsText, context: &ServeContext) {
    let (engine, capacity) = context.engine.queue();
    text.family(
        "agtmux_queue_length",
        "gauge",
        "Inputs that wait for the engine, and batches that wait for the database.",
    );
    text.sample("agtmux_queue_length", &[("queue", "engine")], engine);
    text.sample("agtmux_queue_length", &[("queue", "store")], context.store.stats().queued());
    text.family("agtmux_queue_capacity", "gauge", "The queue length at which senders have to wait.");
    text.sample("agtmux_queue_capacity", &[("queue", "engine")], capacity);
}

fn add_store(text: &mut MetricsText, context: &ServeContext) {
    let stats = context.store.stats();
    let size = stats.size();
    text.gauge("agtmux_store_bytes", "The size of the database file.", size.file_bytes);
    text.gauge("agtmux_store_used_bytes", "The size of the database without free pages.", size.used_bytes);
    text.gauge("agtmux_store_limit_bytes", "The size above which old data is deleted.", stats.max_bytes());
    let help = "Batches that could not be stored.";
    text.counter("agtmux_store_write_errors_total", help, stats.write_errors());
    let is_writable = super::health::store_error(context).is_none();
    text.gauge("agtmux_store_up", "1 if the database accepts writes and no damage is known.", u8::from(is_writable));
}

fn add_fleet(text: &mut MetricsText, fleet: &FleetItems) {
    text.family("agtmux_agents", "gauge", "Agents by target and state.");
    let counts = count_agents(fleet);
    for target in fleet.targets.keys() {
        for state in State::ALL {
            let count = counts.get(&(target.as_str(), *state)).copied().unwrap_or(0);
            text.sample("agtmux_agents", &[("target", target), ("state", state.as_str())], count);
        }
    }
    text.family("agtmux_panes", "gauge", "Panes by target and tmux server.");
    for ((target, server), panes) in count_panes(fleet) {
        text.sample("agtmux_panes", &[("target", target), ("server", server)], panes);
    }
    text.family("agtmux_target_health", "gauge", "1 for the current health of the target, 0 for every other health.");
    for (target, status) in &fleet.targets {
        for health in TargetHealth::ALL {
            let labels = [("target", target.as_str()), ("health", health.as_str())];
            text.sample("agtmux_target_health", &labels, u8::from(status.health == *health));
        }
    }
    text.family("agtmux_outage", "gauge", "1 for each outage of a target or of one of its tmux servers.");
    for error in &fleet.target_errors {
        let code = serde_json::to_value(error.code).ok().and_then(|code| code.as_str().map(str::to_owned));
        let (server, code) = (error.server.as_deref().unwrap_or_default(), code.unwrap_or_default());
        text.sample("agtmux_outage", &[("target", &error.target), ("server", server), ("code", &code)], 1);
    }
}

/// Counts each agent once, even if several sessions show its pane.
fn count_agents(fleet: &FleetItems) -> BTreeMap<(&str, State), u32> {
    let (mut counted, mut counts) = (BTreeSet::new(), BTreeMap::new());
    for pane in fleet.panes.values() {
        let is_agent = pane.agent_type.as_ref().is_some_and(|agent| agent.as_str() != AgentType::TASK);
        if let (true, Some(runtime), Some(state)) = (is_agent, &pane.runtime_id, pane.state)
            && counted.insert(runtime)
        {
            *counts.entry((pane.identity.target.as_str(), state)).or_default() += 1;
        }
    }
    counts
}

/// Counts each pane once.
fn count_panes(fleet: &FleetItems) -> BTreeMap<(&str, &str), u32> {
    let (mut counted, mut counts) = (BTreeSet::new(), BTreeMap::new());
    for identity in fleet.panes.keys() {
        let server = (identity.target.as_str(), identity.server.as_str());
        if counted.insert((server, identity.pane_id)) {
            *counts.entry(server).or_default() += 1;
        }
    }
    counts
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }
}

/// A label value. Server names come from the watched hosts, so control characters are escaped as for a terminal. Other
/// characters are escaped as the Prometheus format requires.
fn escape(value: &str) -> String {
    sanitize::for_terminal(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_label_values_start_no_sample_and_act_on_no_terminal() {
        let mut text = MetricsText::default();
        text.sample("m", &[("server", "a\"} 1\nfake{x=\"y\\"), ("target", "\u{1b}[31m\u{9b}\r\u{202e}")], 7);
        assert_eq!(text.0.lines().count(), 1, "{}", text.0);
        assert!(!text.0.trim_end().chars().any(char::is_control), "{:?}", text.0);
        let expected = r#"m{server="a\"} 1\\nfake{x=\"y\\",target="#;
        assert!(text.0.starts_with(expected), "{}", text.0);
        assert!(text.0.ends_with("\"} 7\n"), "{}", text.0);
    }
}
