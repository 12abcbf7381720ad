//! The HTTP API on the unix socket.

mod actions;
mod adapters;
mod bridge;
mod caller;
mod event_ancestors;
mod events;
mod evidence;
mod explain;
mod extract;
mod health;
mod ingest;
mod listener;
mod lists;
mod metrics;
mod mirrors;
mod notify;
mod openapi;
mod router;
mod screens;
mod sse;
mod targets;
mod tasks;
pub(crate) mod web;
mod worktrees;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::{CLIENT_HEADER, TMUX_HEADER};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use jiff::Timestamp;
use tokio::sync::watch;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actions::{Actions, RequestCaller};
use crate::bridge::Bridge;
use crate::engine::{EngineHandle, StoreErrorNote};
use crate::event_log::EventLog;
use crate::mirror::Mirrors;
use crate::notify::Notifier;
use crate::observe::Discovery;
use crate::remote::TargetManager;
use crate::screens::Screens;
use crate::store::Store;
use crate::tasks::Tasks;
use crate::worktrees::Worktrees;

pub(crate) use extract::is_retryable;
pub(crate) use ingest::read_event;
pub(crate) use listener::{BoundSocket, Peer, bind};
pub use openapi::openapi;

/// How long a response waits until the daemon has checked whether a person uses the caller's pane.
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
    pub(crate) worktrees: Worktrees,
    pub(crate) bridge: Bridge,
    pub(crate) notifier: Notifier,
    pub(crate) screens: Screens,
    pub(crate) web: web::WebPort,
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
    let router = router::router(context.clone())
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
    let client = request.headers().get(CLIENT_HEADER).and_then(|name| name.to_str().ok()).map(str::to_owned);
    let caller = RequestCaller { peer: Some(peer), via: "unix", peer_gone: false, owner_pid: None, client };
    if request.method() == Method::GET && request.headers().contains_key(TMUX_HEADER) {
        let (actions, caller) = (context.actions, caller.clone());
        let noted = tokio::spawn(async move { actions.note_visit(&caller).await });
        // Wait for the check, because the person may leave the pane as soon as the response has arrived. The timeout
        // keeps a hanging tmux server from delaying the response.
        let _ = tokio::time::timeout(VISIT_TIMEOUT, noted).await;
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// All routes that the OpenAPI document describes.
fn routes() -> OpenApiRouter<ServeContext> {
    OpenApiRouter::with_openapi(openapi::Contract::openapi())
        .routes(routes!(health::get_health))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(caller::get_caller))
        .routes(routes!(lists::get_panes))
        .routes(routes!(lists::get_windows))
        .routes(routes!(lists::get_sessions))
        .routes(routes!(events::get_events, ingest::post_event))
        .routes(routes!(explain::get_explain))
        .routes(routes!(explain::get_history))
        .routes(routes!(explain::get_past_events))
        .routes(routes!(explain::get_ended_agents))
        .routes(routes!(bridge::respond::post_respond))
        .routes(routes!(bridge::respond::get_availability))
        .routes(routes!(bridge::stream::get_stream))
        .routes(routes!(bridge::hooks::post_hook))
        .routes(routes!(web::login::post_link))
        .routes(routes!(web::login::post_open))
        .routes(routes!(web::login::post_login))
        .routes(routes!(web::login::get_logins))
        .routes(routes!(web::login::post_revoke))
        .routes(routes!(web::login::post_stop))
        .routes(routes!(screens::follow_screen))
        .routes(routes!(actions::take_snapshot))
        .routes(routes!(actions::send))
        .routes(routes!(actions::respond))
        .routes(routes!(actions::attach))
        .routes(routes!(actions::view_output))
        .routes(routes!(actions::last))
        .routes(routes!(actions::kill))
        .routes(routes!(actions::resume))
        .routes(routes!(actions::new_agent))
        .routes(routes!(actions::rename))
        .routes(routes!(actions::mark_seen))
        .routes(routes!(actions::get_pane_health))
        .routes(routes!(actions::get_action))
        .routes(routes!(actions::get_audit))
        .routes(routes!(tasks::get_tasks))
        .routes(routes!(tasks::run_task))
        .routes(routes!(tasks::get_task_logs))
        .routes(routes!(tasks::send_task_input))
        .routes(routes!(tasks::stop_task))
        .routes(routes!(tasks::restart_task))
        .routes(routes!(tasks::prune_dead_tasks))
        .routes(routes!(tasks::kill_all_tasks))
        .routes(routes!(tasks::start_up_tasks))
        .routes(routes!(tasks::get_task_events))
        .routes(routes!(tasks::follow_task_events))
        .routes(routes!(mirrors::get_mirrors))
        .routes(routes!(mirrors::start_mirror))
        .routes(routes!(mirrors::exec_in_mirror))
        .routes(routes!(mirrors::get_mirror_command))
        .routes(routes!(mirrors::follow_mirror_command))
        .routes(routes!(mirrors::cancel_mirror_command))
        .routes(routes!(mirrors::get_mirror_screen))
        .routes(routes!(mirrors::get_mirror_activity))
        .routes(routes!(mirrors::follow_mirror_activity))
        .routes(routes!(mirrors::stop_mirror))
        .routes(routes!(worktrees::get_worktrees))
        .routes(routes!(worktrees::add_worktree))
        .routes(routes!(worktrees::remove_worktree))
        .routes(routes!(targets::get_targets, targets::add_target))
        .routes(routes!(targets::remove_target))
        .routes(routes!(targets::connect_target))
        .routes(routes!(targets::get_checkup))
        .routes(routes!(notify::get_notify_log))
        .routes(routes!(notify::test_notify))
        .routes(routes!(adapters::get_adapters, adapters::switch_adapter))
}
