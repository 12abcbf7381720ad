//! The terminal interface of agtmux. Model, update and view are apart: the update is pure, the view only draws, and one
//! table drives keys, hints, help and palette.

mod age;
mod editor;
pub mod keymap;
pub mod model;
mod run;
mod settings;
mod sgr;
mod text;
pub mod update;
pub mod view;

pub use editor::TextEditor;
pub use run::{TerminalWatcher, TuiError, TuiExit, TuiOptions, look_from_environment, run};
pub use settings::InterfaceSettingsError;
