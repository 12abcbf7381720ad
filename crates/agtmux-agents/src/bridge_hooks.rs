//! The hook events of the tmux-bridge interface, an HTTP interface that agtmux also serves (see `docs/bridge.md`). They
//! are the events of Claude Code under other names.

/// The agent type that agtmux assumes if an event names no agent.
pub const BRIDGE_AGENT: &str = "claude";

/// A hook event of the tmux-bridge interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeHook {
    /// The event's name in the tmux-bridge interface.
    pub name: &'static str,
    /// The name that Claude Code uses for the same event.
    pub event_type: &'static str,
    pub session: Option<SessionChange>,
}

/// What an event says about the agent's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChange {
    Active,
    Ended,
}

pub const BRIDGE_HOOKS: [BridgeHook; 8] = [
    event("session-start", "SessionStart", Some(SessionChange::Active)),
    event("session-end", "SessionEnd", Some(SessionChange::Ended)),
    event("stop", "Stop", None),
    event("notification", "Notification", None),
    event("user-prompt-submit", "UserPromptSubmit", Some(SessionChange::Active)),
    event("pre-tool-use", "PreToolUse", None),
    event("post-tool-use", "PostToolUse", None),
    event("permission-request", "PermissionRequest", None),
];

const fn event(name: &'static str, event_type: &'static str, session: Option<SessionChange>) -> BridgeHook {
    BridgeHook { name, event_type, session }
}
