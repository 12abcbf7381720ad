//! `rename`: gives an agent a name.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionOutcome, RenameAction, RenameReport};
use agtmux_core::refs::is_agent_name;

use super::perform::ActionRequest;
use super::{ActionPane, Actions, RequestCaller};

impl Actions {
    pub(crate) async fn rename(
        &self,
        action: RenameAction,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<RenameReport>> {
        let name = action.name.clone();
        let request = ActionRequest {
            summary: Some(format!("name {}", name.escape_debug())),
            ..ActionRequest::new(HubRequest::Rename(action.clone()), &action.guards, caller)
        };
        if !is_agent_name(&name) {
            let message = format!("'{}' is not a valid name", name.escape_debug());
            let error = ApiError::new(ErrorCode::BadRequest, message);
            let error = error.with_hint("use at most 64 letters, digits, '-', '_' and '.'");
            return Err(self.reject(request, error).await);
        }
        self.perform(request, async |pane| rename(pane, name).await).await
    }
}

async fn rename(pane: &ActionPane<'_>, name: String) -> ApiResult<RenameReport> {
    let runtime = &pane.agent()?.runtime;
    let previous = runtime.name.clone();
    pane.actions.0.engine.name_agent(runtime.id.clone(), name.clone()).await?;
    Ok(RenameReport { name, previous })
}
