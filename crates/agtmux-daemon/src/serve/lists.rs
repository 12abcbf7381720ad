//! Lists of panes, windows and sessions.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::fleet_items::{FleetItems, ItemFilter};
use agtmux_api::wire::{ListQuery, ListResponse, ListScope, PaneItem, SessionItem, WindowItem};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::ServeContext;
use super::extract::{ErrorResponse, StrictQuery};
use super::openapi::Error;
use crate::remote::no_such_target;

/// List panes.
///
/// By default, only panes with an agent are listed.
#[utoipa::path(get, path = "/v1/panes", params(ListQuery), responses(
    (status = 200, body = ListResponse<PaneItem>), Error<400>, Error<404>))]
pub(super) async fn get_panes(
    context: ServeContext,
    StrictQuery(query): StrictQuery,
) -> Result<Response, ErrorResponse> {
    list(&context, &query, ListScope::Panes, FleetItems::list_panes)
}

/// List windows, with the number of agents in each state.
#[utoipa::path(get, path = "/v1/windows", params(ListQuery), responses(
    (status = 200, body = ListResponse<WindowItem>), Error<400>, Error<404>))]
pub(super) async fn get_windows(
    context: ServeContext,
    StrictQuery(query): StrictQuery,
) -> Result<Response, ErrorResponse> {
    list(&context, &query, ListScope::Windows, FleetItems::list_windows)
}

/// List sessions, with the number of agents in each state.
#[utoipa::path(get, path = "/v1/sessions", params(ListQuery), responses(
    (status = 200, body = ListResponse<SessionItem>), Error<400>, Error<404>))]
pub(super) async fn get_sessions(
    context: ServeContext,
    StrictQuery(query): StrictQuery,
) -> Result<Response, ErrorResponse> {
    list(&context, &query, ListScope::Sessions, FleetItems::list_sessions)
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

pub(super) fn check_target(context: &ServeContext, filter: &ItemFilter) -> Result<(), ErrorResponse> {
    match filter.target() {
        Some(name) if !context.targets.is_known(name) => Err(no_such_target(name).into()),
        _ => Ok(()),
    }
}
