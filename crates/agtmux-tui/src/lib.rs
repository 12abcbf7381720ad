//! The terminal interface of agtmux. Model, update and view are apart: the update is pure, the view only draws, and one
//! table drives keys, hints and help.

mod age;
mod editor;
pub mod keymap;
pub mod model;
mod run;
mod sgr;
mod text;
pub mod update;
pub mod view;

pub use editor::TextEditor;
pub use run::{TerminalWatcher, TuiError, TuiExit, TuiOptions, look_from_environment, run};
