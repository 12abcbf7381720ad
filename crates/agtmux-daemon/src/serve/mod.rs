//! The HTTP API on the unix socket.

mod actions;
mod adapters;
mod bridge;
mod event_ancestors;
mod events;
mod evidence;
mod explain;
mod extract;
mod ingest;
mod listener;
mod metrics;
mod mirrors;
mod routes;
mod sse;
mod targets;
mod tasks;
pub(crate) mod web;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::wire::{ComponentHealth, DaemonHealth, ServerHealth, StoreHealth};
use agtmux_api::{API_VERSION, SCHEMA_VERSION, TMUX_HEADER, VERSION};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::actions::{Actions, RequestCaller};
use crate::bridge::Bridge;
use crate::engine::{EngineHandle, StoreErrorNote};
use crate::event_log::EventLog;
use crate::mirror::Mirrors;
use crate::observe::Discovery;
use crate::remote::TargetManager;
use crate::store::{Store, schema};
use crate::tasks::Tasks;

pub(crate) use extract::is_retryable;
pub(crate) use ingest::read_event;
pub(crate) use listener::{BoundSocket, Peer, bind};
pub use routes::openapi;

/// How long an answer waits until the daemon has checked whether a person uses the caller's pane.
const VISIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything that a request handler needs.
#[derive(Clone)]
pub(crate) struct ServeContext {
    pub(crate) event_log: Arc<EventLog>,
    pub(crate) engine: EngineHandle,
    pub(crate) store: Arc<Store>,
    pub(crate) store_error: StoreErrorNote,
    pub(crate) discovery: Discovery,
    pub(crate) targets: TargetManager,
    pub(crate) actions: Actions,
    pub(crate) tasks: Tasks,
    pub(crate) mirrors: Mirrors,
    pub(crate) bridge: Bridge,
    /// Access control of the TCP port, if there is one.
    pub(crate) web_auth: Option<Arc<web::WebAuth>>,
    pub(crate) socket: PathBuf,
    pub(crate) started_at: Timestamp,
    /// Streams end when this turns true.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Serves until `stopping` turns true.
pub(crate) async fn serve(socket: BoundSocket, context: ServeContext) -> std::io::Result<()> {
    let mut stopping = context.stopping.clone();
    let stopped = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let router = routes::router(context.clone())
        .layer(from_fn_with_state(context, attach_caller))
        .into_make_service_with_connect_info::<Peer>();
    axum::serve(socket, router).with_graceful_shutdown(stopped).await
}

/// Attaches the caller to a request on the unix socket. The caller is the process at the other end of the connection.
async fn attach_caller(
    State(context): State<ServeContext>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = RequestCaller { peer: Some(peer), via: "unix", peer_gone: false, owner_pid: None };
    if request.method() == Method::GET && request.headers().contains_key(TMUX_HEADER) {
        let (actions, caller) = (context.actions, caller.clone());
        let noted = tokio::spawn(async move { actions.note_visit(&caller).await });
        // The person may leave the pane when the answer has arrived, but a tmux server that hangs delays no answer.
        let _ = tokio::time::timeout(VISIT_TIMEOUT, noted).await;
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
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

/// Why the database cannot be written, or how it is damaged.
fn store_error(context: &ServeContext) -> Option<String> {
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
