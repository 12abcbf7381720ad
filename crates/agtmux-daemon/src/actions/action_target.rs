//! Where an action runs: in this daemon, or in the daemon of another host.

use agtmux_api::error::ApiResult;

use super::Actions;
use super::action_pane::ActionPane;
use crate::engine::LocatedPane;
use crate::remote::{RemotePane, TargetLink, no_such_target};

/// Where an action runs.
pub(super) enum ActionTarget<'a> {
    Local(Box<ActionPane<'a>>),
    Remote(Box<RemotePane>),
}

impl Actions {
    pub(super) fn action_target(&self, located: LocatedPane, forced: bool) -> ApiResult<ActionTarget<'_>> {
        match self.remote_link(&located)? {
            Some(link) => Ok(ActionTarget::Remote(Box::new(RemotePane { located, link }))),
            None => Ok(ActionTarget::Local(Box::new(self.action_pane(located, forced)?))),
        }
    }

    /// The connection to the agtmux on the pane's host. `None` for local panes and for hosts without agtmux.
    pub(super) fn remote_link(&self, located: &LocatedPane) -> ApiResult<Option<TargetLink>> {
        let target = &located.key.server.target;
        if target.is_local() {
            return Ok(None);
        }
        let link = self.0.targets.link(target).ok_or_else(|| no_such_target(target.as_str()))?;
        Ok(Some(link).filter(TargetLink::is_native))
    }
}
