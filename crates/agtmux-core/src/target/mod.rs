//! The hosts whose tmux is watched: what they may be called, how they are reached, and how they fare.

mod health;
mod target_names;

pub use health::{TargetFault, TargetHealth, TargetHealthLog};
pub use target_names::{SshTarget, TargetNameError, is_target_name};

use crate::ids::TargetName;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// How a target is reached.
    TargetKind {
        /// It is this machine.
        Local => "local",
        /// By the system's `ssh`.
        Ssh => "ssh",
    }
);

/// A target as it is stored. Nothing of it is secret: how to get in is the business of `ssh` and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub name: TargetName,
    pub ssh: SshTarget,
}
