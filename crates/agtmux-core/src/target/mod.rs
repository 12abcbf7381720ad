//! Targets are the hosts whose tmux is watched. This module defines their valid names, how the daemon reaches them, and
//! their health.

mod health;
mod target_names;

pub use health::{TargetFault, TargetHealth, TargetHealthLog};
pub use target_names::{SshTarget, TargetNameError, is_target_name};

use crate::ids::TargetName;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// How the daemon reaches a target.
    TargetKind {
        /// The machine that runs the daemon.
        Local => "local",
        /// Another host, through the system's `ssh`.
        Ssh => "ssh",
    }
);

/// A target as stored. It contains no secrets: `ssh` and its configuration handle authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub name: TargetName,
    pub ssh: SshTarget,
}
