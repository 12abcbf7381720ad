//! HTTP over the unix socket.

mod actions;
mod adapters;
mod bridge;
mod events;
mod evidence;
mod explain;
mod ingest;
mod listener;
mod nested;
mod query;
mod routes;
mod sse;
mod targets;
mod tasks;
pub(crate) mod web;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agtmux_api::wire::{Component, Health, ServerHealth, StoreHealth};
use agtmux_api::{API_VERSION, SCHEMA_VERSION, VERSION};
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::actions::{Actions, Asker};
use crate::bridge::Bridge;
use crate::engine::{EngineHandle, StoreErrorNote};
use crate::observe::Discovery;
use crate::shared::Shared;
use crate::store::{Store, schema};
use crate::targets::Targets;
use crate::tasks::Tasks;

pub(crate) use ingest::read_event;
pub(crate) use listener::{Bound, Peer, bind};
pub(crate) use nested::located;
pub(crate) use query::may_pass;
pub use routes::openapi;

/// Everything a request may need.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: EngineHandle,
    pub(crate) store: Arc<Store>,
    pub(crate) store_error: StoreErrorNote,
    pub(crate) discovery: Discovery,
    pub(crate) targets: Targets,
    pub(crate) actions: Actions,
    pub(crate) tasks: Tasks,
    pub(crate) bridge: Bridge,
    /// Where a browser comes in, if it may.
    pub(crate) door: Option<Arc<web::Door>>,
    pub(crate) socket: PathBuf,
    pub(crate) started_at: Timestamp,
    /// Streams end when this turns true.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Serves until `stopping` turns true.
pub(crate) async fn serve(bound: Bound, context: Context) -> std::io::Result<()> {
    let mut stopping = context.stopping.clone();
    let until = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let router = routes::router(context).layer(from_fn(name_caller)).into_make_service_with_connect_info::<Peer>();
    axum::serve(bound, router).with_graceful_shutdown(until).await
}

/// Whatever comes by the socket is asked by the process at its other end.
async fn name_caller(ConnectInfo(peer): ConnectInfo<Peer>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Asker { peer: Some(peer), via: "unix", vanished: false, keeper: None });
    next.run(request).await
}

fn health(context: &Context) -> Health {
    let inner = context.shared.read();
    let error = context.store_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let servers: Vec<ServerHealth> = context.discovery.servers();
    let well = inner.view.errors().is_empty() && error.is_none();
    Health {
        schema_version: SCHEMA_VERSION,
        status: if well { "ok" } else { "degraded" }.into(),
        version: VERSION.into(),
        api_version: API_VERSION,
        pid: std::process::id(),
        socket: context.socket.display().to_string(),
        started_at: context.started_at,
        seq: inner.seq(),
        store: StoreHealth {
            path: context.store.path().display().to_string(),
            schema_version: schema::VERSION,
            quarantined: context.store.quarantined().map(|p| p.display().to_string()),
            error,
        },
        servers,
        target_errors: inner.view.errors().to_vec(),
        components: components(context, well),
    }
}

fn components(context: &Context, well: bool) -> BTreeMap<String, Component> {
    let (tracked, available) = context.bridge.tally();
    let status = |well: bool| if well { "ok" } else { "degraded" }.to_owned();
    let bridge =
        Component { status: status(well), detail: format!("{} tmux servers", context.discovery.servers().len()) };
    // Who has just come was looked at when it came.
    let looked = context.bridge.looked_ago().map(|ago| format!("; all were looked at {} s ago", ago.as_secs()));
    let detail = format!("{available} of {tracked} agents can be reached{}", looked.unwrap_or_default());
    let availability = Component { status: status(available == tracked), detail };
    BTreeMap::from([("tmux_bridge".into(), bridge), ("commander_availability".into(), availability)])
}
