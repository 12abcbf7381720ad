//! The shared terminal: a shell in a pane that a person and an agent both use.
//!
//! The shell writes marks (OSC 133) into its terminal. They show where a prompt begins and ends, where a command starts
//! and how the command ended. A mark counts only with the nonce of the pane and the number of the current prompt, so
//! that the output of a program cannot forge a mark. [`ShellTracker`] finds the marks in the raw bytes of the pane and
//! reports [`ShellEvent`]s; [`MirrorState`] follows the events; [`OutputCleaner`] turns the bytes of a command into its
//! output.

mod clean;
mod cycle;
mod event;
mod excerpt;
mod mark;
mod marked_stream;
mod quoted;
mod state;
#[cfg(test)]
mod tests;

pub use clean::OutputCleaner;
pub use cycle::{ShellTracker, TrackedPiece};
pub use event::ShellEvent;
pub use excerpt::OutputExcerpt;
pub use mark::{ShellMark, ShellMarkKind};
pub use marked_stream::{MarkedPiece, MarkedStream};
pub use state::{MirrorState, RunningCommand};

use crate::wire_enum::wire_enum;

wire_enum!(
    /// A shell that the shared terminal supports.
    MirrorShell {
        Bash => "bash",
        Zsh => "zsh",
        Fish => "fish",
    }
);
