//! The shared terminal: a shell in a pane that a person and an agent both use.
//!
//! The shell writes marks (OSC 133) into its terminal: where a prompt begins and ends, where a command starts and how it
//! ended. A mark counts only with the nonce of the pane and the number of the current prompt, so that the output of a
//! program cannot forge one. [`ShellTracker`] finds the marks in the raw bytes of the pane and reports [`ShellEvent`]s;
//! [`MirrorState`] follows the events; [`OutputCleaner`] turns the bytes of a command into its output. A shell without
//! marks is followed on its screen: [`ScreenPrompt`] finds the prompt and the output there.

mod clean;
mod cycle;
mod event;
mod excerpt;
mod mark;
mod marked_stream;
mod quoted;
mod screen;
mod state;
#[cfg(test)]
mod tests;
mod typed_line;

pub use clean::OutputCleaner;
pub use cycle::{ShellTracker, TrackedPiece};
pub use event::ShellEvent;
pub use excerpt::OutputExcerpt;
pub use mark::{ShellMark, ShellMarkKind};
pub use marked_stream::{MarkedPiece, MarkedStream};
pub use screen::{PromptLine, ScreenPrompt, ScreenText, without_line_end_mark};
pub use state::{MirrorState, RunningCommand};

use crate::wire_enum::wire_enum;

wire_enum!(
    /// A shell that the shared terminal supports.
    MirrorShell {
        Bash => "bash",
        Zsh => "zsh",
        Fish => "fish",
        /// Another POSIX shell, such as dash or ksh. It writes no marks.
        Posix => "sh",
    }
);

wire_enum!(
    /// How agtmux follows the shell of a shared terminal.
    MirrorMethod {
        /// The shell marks its prompts and commands in its output. The output of a command is exact.
        Marks => "marks",
        /// agtmux looks for the prompt on the screen. The output of a command is its text as the screen shows it.
        Screen => "screen",
    }
);
