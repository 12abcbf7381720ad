//! The routes and the OpenAPI document.

use std::collections::BTreeMap;
use std::sync::Arc;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::fleet_items::{FleetItems, ItemFilter};
use agtmux_api::host_protocol::EVIDENCE_PATH;
use agtmux_api::wire::{
    DaemonHealth, ListQuery, ListResponse, ListScope, PaneItem, SessionGrouping, SessionItem, WatchEvent, WindowItem,
};
use agtmux_api::{API_HEADER, API_VERSION, TMUX_HEADER, TMUX_TMPDIR_HEADER, VERSION, VERSION_HEADER};
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use jiff::Timestamp;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{self, RefOr};
use utoipa::{IntoResponses, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{ErrorResponse, StrictQuery};
use super::{ServeContext, events, health, sse};
use crate::remote::no_such_target;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "agtmux",
        description = "See every AI coding agent that runs in tmux.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(ApiError, SessionGrouping, WatchEvent))
)]
struct Contract;

/// An error response with this status, in the OpenAPI document.
pub(super) struct Error<const STATUS: u16>;

impl<const STATUS: u16> IntoResponses for Error<STATUS> {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        BTreeMap::from([(STATUS.to_string(), error_response("").into())])
    }
}

fn error_response(description: &str) -> openapi::Response {
    let schema = openapi::Ref::from_schema_name("ApiError");
    let content = openapi::ContentBuilder::new().schema(Some(schema)).build();
    openapi::ResponseBuilder::new().description(description).content("application/json", content).build()
}

/// Adds the authentication errors that every path may return over TCP.
fn add_auth_errors(api: &mut openapi::OpenApi) {
    for (status, description) in
        [("401", "Missing or invalid token (TCP only)"), ("403", "Foreign host or origin, or the token is read-only")]
    {
        for operation in api.paths.paths.values_mut().flat_map(operations) {
            let responses = &mut operation.responses.responses;
            responses.entry(status.to_owned()).or_insert_with(|| error_response(description).into());
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, post, put, delete, patch, .. } = item;
    [get, post, put, delete, patch].into_iter().filter_map(Option::as_mut)
}

fn routes() -> OpenApiRouter<ServeContext> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .routes(routes!(get_health))
        .routes(routes!(super::metrics::get_metrics))
        .routes(routes!(get_panes))
        .routes(routes!(get_windows))
        .routes(routes!(get_sessions))
        .routes(routes!(get_events, super::ingest::post_event))
        .routes(routes!(super::explain::get_explain))
        .routes(routes!(super::explain::get_history))
        .routes(routes!(super::explain::get_past_events))
        .routes(routes!(super::bridge::respond::post_respond))
        .routes(routes!(super::bridge::respond::get_availability))
        .routes(routes!(super::bridge::stream::get_stream))
        .routes(routes!(super::bridge::hooks::post_hook))
        .routes(routes!(super::web::login::post_link))
        .routes(routes!(super::web::login::post_login))
        .routes(routes!(super::actions::take_snapshot))
        .routes(routes!(super::actions::send))
        .routes(routes!(super::actions::respond))
        .routes(routes!(super::actions::attach))
        .routes(routes!(super::actions::view_output))
        .routes(routes!(super::actions::kill))
        .routes(routes!(super::actions::resume))
        .routes(routes!(super::actions::mark_seen))
        .routes(routes!(super::actions::get_pane_health))
        .routes(routes!(super::actions::get_action))
        .routes(routes!(super::actions::get_audit))
        .routes(routes!(super::tasks::get_tasks))
        .routes(routes!(super::tasks::run_task))
        .routes(routes!(super::tasks::get_task_logs))
        .routes(routes!(super::tasks::send_task_input))
        .routes(routes!(super::tasks::stop_task))
        .routes(routes!(super::tasks::restart_task))
        .routes(routes!(super::tasks::prune_dead_tasks))
        .routes(routes!(super::tasks::kill_all_tasks))
        .routes(routes!(super::tasks::start_up_tasks))
        .routes(routes!(super::tasks::get_task_events))
        .routes(routes!(super::tasks::follow_task_events))
        .routes(routes!(super::mirrors::get_mirrors))
        .routes(routes!(super::mirrors::start_mirror))
        .routes(routes!(super::mirrors::exec_in_mirror))
        .routes(routes!(super::mirrors::get_mirror_command))
        .routes(routes!(super::mirrors::follow_mirror_command))
        .routes(routes!(super::mirrors::cancel_mirror_command))
        .routes(routes!(super::mirrors::get_mirror_screen))
        .routes(routes!(super::mirrors::get_mirror_activity))
        .routes(routes!(super::mirrors::follow_mirror_activity))
        .routes(routes!(super::mirrors::stop_mirror))
        .routes(routes!(super::targets::get_targets, super::targets::add_target))
        .routes(routes!(super::targets::remove_target))
        .routes(routes!(super::targets::connect_target))
        .routes(routes!(super::targets::get_checkup))
        .routes(routes!(super::adapters::get_adapters, super::adapters::switch_adapter))
}

/// The OpenAPI document of the whole API.
pub fn openapi() -> openapi::OpenApi {
    let mut api = routes().into_openapi();
    add_auth_errors(&mut api);
    api
}

pub(super) fn router(context: ServeContext) -> Router {
    let (router, _) = routes().split_for_parts();
    let contract = Arc::new(openapi());
    router
        .route(EVIDENCE_PATH, axum::routing::get(super::evidence::get_evidence))
        .route("/v1/openapi.json", axum::routing::get(move || async move { Json(contract.as_ref().clone()) }))
        .fallback(|| async {
            ErrorResponse(
                ApiError::new(ErrorCode::NotFound, "no such path").with_hint("GET /v1/openapi.json lists the paths"),
            )
        })
        .method_not_allowed_fallback(|| async {
            ErrorResponse(
                ApiError::new(ErrorCode::Method, "this path does not support this method")
                    .with_hint("GET /v1/openapi.json lists the methods of each path"),
            )
        })
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(context.clone(), discover_caller_server))
        .layer(from_fn(add_version_headers))
        .with_state(context)
}

/// Adds the daemon's version to every response, including errors.
async fn add_version_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(API_HEADER, HeaderValue::from(API_VERSION));
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    response
}

/// Starts to watch the caller's tmux server if it is not watched yet.
async fn discover_caller_server(context: ServeContext, request: Request, next: Next) -> Response {
    let (tmux, tmpdir) = (text(&request, TMUX_HEADER), text(&request, TMUX_TMPDIR_HEADER));
    context.discovery.add_caller_sockets(tmux, tmpdir).await;
    next.run(request).await
}

fn text(request: &Request, header: &str) -> Option<String> {
    request.headers().get(header)?.to_str().ok().map(str::to_owned)
}

/// Return the health of the daemon and of the tmux servers that it watches.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, body = DaemonHealth)))]
async fn get_health(context: ServeContext) -> Json<DaemonHealth> {
    Json(health(&context))
}

/// List panes.
///
/// By default, only panes with an agent are listed.
#[utoipa::path(get, path = "/v1/panes", params(ListQuery), responses(
    (status = 200, body = ListResponse<PaneItem>), Error<400>, Error<404>))]
async fn get_panes(context: ServeContext, StrictQuery(query): StrictQuery) -> Result<Response, ErrorResponse> {
    list(&context, &query, ListScope::Panes, FleetItems::list_panes)
}

/// List windows, with the number of agents in each state.
#[utoipa::path(get, path = "/v1/windows", params(ListQuery), responses(
    (status = 200, body = ListResponse<WindowItem>), Error<400>, Error<404>))]
async fn get_windows(context: ServeContext, StrictQuery(query): StrictQuery) -> Result<Response, ErrorResponse> {
    list(&context, &query, ListScope::Windows, FleetItems::list_windows)
}

/// List sessions, with the number of agents in each state.
#[utoipa::path(get, path = "/v1/sessions", params(ListQuery), responses(
    (status = 200, body = ListResponse<SessionItem>), Error<400>, Error<404>))]
async fn get_sessions(context: ServeContext, StrictQuery(query): StrictQuery) -> Result<Response, ErrorResponse> {
    list(&context, &query, ListScope::Sessions, FleetItems::list_sessions)
}

/// Stream changes as server-sent events.
///
/// The stream starts with a snapshot, or after the event that `Last-Event-ID` names.
#[utoipa::path(get, path = "/v1/events", params(ListQuery), responses(
    (status = 200, body = WatchEvent, content_type = "text/event-stream"), Error<400>, Error<404>))]
async fn get_events(
    context: ServeContext,
    headers: HeaderMap,
    StrictQuery(query): StrictQuery,
) -> Result<Response, ErrorResponse> {
    let scope = query.scope.unwrap_or_default();
    let filter = ItemFilter::new(&query, scope)?;
    check_target(&context, &filter)?;
    let last = sse::last_event(&headers, query.last_event_id)?;
    Ok(events::stream(&context, scope, filter, last))
}

type Lister<T> = fn(&FleetItems, &ItemFilter, Timestamp) -> ListResponse<T>;

fn list<T: serde::Serialize>(
    context: &ServeContext,
    query: &ListQuery,
    scope: ListScope,
    lister: Lister<T>,
) -> Result<Response, ErrorResponse> {
    let filter = ItemFilter::new(query, scope)?;
    check_target(context, &filter)?;
    // Only references are cloned under the lock. The JSON is written after the lock is released.
    let listing = lister(&context.event_log.read().view.fleet, &filter, Timestamp::now());
    match serde_json::to_vec(&listing) {
        Ok(body) => Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
        Err(error) => {
            tracing::error!(%error, "a listing could not be serialized");
            Err(ApiError::new(ErrorCode::Internal, "the listing could not be serialized").into())
        }
    }
}

fn check_target(context: &ServeContext, filter: &ItemFilter) -> Result<(), ErrorResponse> {
    match filter.target() {
        Some(name) if !context.targets.is_known(name) => Err(no_such_target(name).into()),
        _ => Ok(()),
    }
}
