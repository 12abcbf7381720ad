//! Which tools a client may use.

use agtmux_api::config::{AgentAction, AgentActions};
use agtmux_core::named_enum;

named_enum!(
    /// What a client may do only with the permission of the user.
    McpPermission {
        /// Send a text to another agent.
        Send => "send",
        /// Answer the dialog of another agent.
        Respond => "respond",
        /// Stop tasks, also those that the client did not start.
        StopTask => "stop_task",
    }
);

impl McpPermission {
    /// The action that the daemon checks for this permission.
    fn action(self) -> AgentAction {
        match self {
            Self::Send => AgentAction::Send,
            Self::Respond => AgentAction::Respond,
            Self::StopTask => AgentAction::StopTask,
        }
    }
}

/// What the clients of this server may do.
#[derive(Debug, Clone)]
pub struct McpAccess {
    /// Only look: no tasks and no shared terminal.
    pub read_only: bool,
    allowed: Vec<McpPermission>,
}

impl McpAccess {
    /// Allows what the command line and the settings allow. The daemon checks the settings again: an agent that starts
    /// this server with more permissions does not get them.
    pub fn new(read_only: bool, given: &[McpPermission], settings: AgentActions) -> Self {
        let is_allowed =
            |permission: &&McpPermission| given.contains(permission) || settings.allows(permission.action());
        let allowed = McpPermission::ALL.iter().filter(is_allowed).copied();
        Self { read_only, allowed: if read_only { Vec::new() } else { allowed.collect() } }
    }

    pub(crate) fn allows(&self, permission: McpPermission) -> bool {
        self.allowed.contains(&permission)
    }
}

/// What a tool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolNeeds {
    /// The tool only reads.
    Nothing,
    /// The tool runs commands. The permission prompt of the client guards it.
    Commands,
    Permission(McpPermission),
}

impl McpAccess {
    /// Why a tool with these needs may not be used. The model reads this text.
    pub(crate) fn refusal(&self, tool: &str, needs: ToolNeeds) -> Option<String> {
        match needs {
            ToolNeeds::Nothing => None,
            ToolNeeds::Commands if !self.read_only => None,
            ToolNeeds::Permission(permission) if self.allows(permission) => None,
            _ if self.read_only => Some(format!(
                "{tool} is not available: the user started this server with --read-only. Do not try to work around \
                 this; tell the user what you wanted to do."
            )),
            ToolNeeds::Commands => None,
            ToolNeeds::Permission(permission) => Some(format!(
                "{tool} needs a permission that the user has not given. Nothing was done. Do not try to work around \
                 this; tell the user what you wanted to do. The user can allow it: start the server with `agtmux mcp \
                 --allow {permission}`, and set actions.allow_from_agents = [\"{permission}\"] in the configuration of \
                 agtmux."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: ToolNeeds = ToolNeeds::Permission(McpPermission::Send);

    #[test]
    fn permissions_come_from_the_command_line_or_the_settings() {
        let none = AgentActions::default();
        assert!(McpAccess::new(false, &[], none).refusal("send", SEND).is_some());
        assert_eq!(McpAccess::new(false, &[McpPermission::Send], none).refusal("send", SEND), None);
        let settings = [AgentAction::Send].into_iter().collect();
        assert_eq!(McpAccess::new(false, &[], settings).refusal("send", SEND), None);
        let other = ToolNeeds::Permission(McpPermission::Respond);
        let why = McpAccess::new(false, &[], settings).refusal("respond", other).expect("refused");
        assert!(why.contains("--allow respond") && why.contains("Nothing was done"), "{why}");
    }

    #[test]
    fn read_only_takes_all_permissions_away() {
        let access = McpAccess::new(true, McpPermission::ALL, AgentActions::ALL);
        for needs in [SEND, ToolNeeds::Commands] {
            assert!(access.refusal("x", needs).expect("refused").contains("--read-only"));
        }
        assert_eq!(access.refusal("list_agents", ToolNeeds::Nothing), None);
    }
}
