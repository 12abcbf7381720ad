//! The health of the daemon.

use std::collections::BTreeMap;

use agtmux_api::wire::{ComponentHealth, DaemonHealth, ServerHealth, StoreHealth};
use agtmux_api::{API_VERSION, SCHEMA_VERSION, VERSION};
use axum::Json;

use super::ServeContext;
use crate::store::schema;

/// Return the health of the daemon and of the tmux servers that it watches.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, body = DaemonHealth)))]
pub(super) async fn get_health(context: ServeContext) -> Json<DaemonHealth> {
    Json(health(&context))
}

fn health(context: &ServeContext) -> DaemonHealth {
    let log = context.event_log.read();
    let error = store_error(context);
    let servers: Vec<ServerHealth> = context.discovery.servers();
    let reported = context.discovery.background().report();
    let is_ok = |component: &ComponentHealth| component.status == "ok";
    let healthy = log.view.errors().is_empty() && error.is_none() && reported.values().all(is_ok);
    DaemonHealth {
        schema_version: SCHEMA_VERSION,
        status: if healthy { "ok" } else { "degraded" }.into(),
        version: VERSION.into(),
        api_version: API_VERSION,
        pid: std::process::id(),
        socket: context.socket.display().to_string(),
        started_at: context.started_at,
        seq: log.seq(),
        store: StoreHealth {
            path: context.store.path().display().to_string(),
            schema_version: schema::VERSION,
            quarantined: context.store.quarantined().map(|p| p.display().to_string()),
            error,
        },
        servers,
        target_errors: log.view.errors().to_vec(),
        components: components(context, healthy, reported),
    }
}

/// Why the database cannot be written, or how it is damaged. `None` if it works.
pub(super) fn store_error(context: &ServeContext) -> Option<String> {
    let error = context.store_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    error.or_else(|| context.store.damage())
}

fn components(
    context: &ServeContext,
    healthy: bool,
    reported: BTreeMap<String, ComponentHealth>,
) -> BTreeMap<String, ComponentHealth> {
    let (tracked, available) = context.bridge.agent_counts();
    let status = |healthy: bool| if healthy { "ok" } else { "degraded" }.to_owned();
    let bridge = ComponentHealth {
        status: status(healthy),
        detail: format!("{} tmux servers", context.discovery.servers().len()),
    };
    // An agent that appeared after the last full check was checked when it appeared.
    let last_check = context.bridge.since_last_check().map(|ago| format!("; last checked {} s ago", ago.as_secs()));
    let detail = format!("{available} of {tracked} agents can be reached{}", last_check.unwrap_or_default());
    let availability = ComponentHealth { status: status(available == tracked), detail };
    let known = [("tmux_bridge".into(), bridge), ("commander_availability".into(), availability)];
    known.into_iter().chain(reported).collect()
}
