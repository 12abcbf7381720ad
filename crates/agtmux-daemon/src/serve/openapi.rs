//! The OpenAPI document.

use std::collections::BTreeMap;

use agtmux_api::error::ApiError;
use agtmux_api::wire::{SessionGrouping, WatchEvent};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{self, RefOr};
use utoipa::{IntoResponses, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "agtmux",
        description = "See every AI coding agent that runs in tmux.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(ApiError, SessionGrouping, WatchEvent))
)]
pub(super) struct Contract;

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

/// The OpenAPI document of the whole API.
pub fn openapi() -> openapi::OpenApi {
    let mut api = super::routes().into_openapi();
    add_auth_errors(&mut api);
    api
}
