//! `/v1/worktrees`: the worktrees of repositories on this machine.

use agtmux_api::wire::{
    WorktreeAddRequest, WorktreeAdded, WorktreeList, WorktreeQuery, WorktreeRemoveRequest, WorktreeRemoved,
};
use axum::Json;

use super::ServeContext;
use super::extract::{JsonBody, JsonResult, MAX_SMALL_BODY_BYTES, StrictQuery, run_detached};
use super::openapi::Error;
use crate::actions::RequestCaller;

/// List the worktrees of a repository, with their agents.
#[utoipa::path(get, path = "/v1/worktrees", params(WorktreeQuery), responses(
    (status = 200, body = WorktreeList), Error<400>, Error<409>))]
pub(super) async fn get_worktrees(
    context: ServeContext,
    StrictQuery(query): StrictQuery<WorktreeQuery>,
) -> JsonResult<WorktreeList> {
    Ok(Json(context.worktrees.list(&query).await?))
}

/// Make a worktree for a branch.
///
/// Returns the existing worktree if the branch is already checked out in one. Fails with `E_CALLER_IS_AGENT` if the
/// caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/worktrees/add", request_body = WorktreeAddRequest, responses(
    (status = 200, body = WorktreeAdded), Error<400>, Error<403>, Error<409>))]
pub(super) async fn add_worktree(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(request): JsonBody<WorktreeAddRequest, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<WorktreeAdded> {
    run_detached(async move { context.worktrees.add(&request, &caller).await }).await
}

/// Remove a worktree, if that loses no work.
///
/// Fails if the worktree has uncommitted files, commits that no other branch has, or a running agent. Fails with
/// `E_CALLER_IS_AGENT` if the caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/worktrees/remove", request_body = WorktreeRemoveRequest, responses(
    (status = 200, body = WorktreeRemoved), Error<400>, Error<403>, Error<404>, Error<409>))]
pub(super) async fn remove_worktree(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(request): JsonBody<WorktreeRemoveRequest, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<WorktreeRemoved> {
    run_detached(async move { context.worktrees.remove(&request, &caller).await }).await
}
