//! The options that say which text to send.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::{CliError, CliResult};
use crate::input::{self, MAX_BYTES};

#[derive(Debug, Args)]
pub(crate) struct TextArgs {
    /// The text to send
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
    /// Read the text from stdin
    #[arg(long)]
    stdin: bool,
    /// Read the text from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl TextArgs {
    /// The text. `None` if no option was given.
    pub(super) fn read(&self) -> CliResult<Option<String>> {
        match (&self.text, self.stdin, &self.file) {
            (Some(text), ..) => Ok(Some(text.clone())),
            (None, true, _) => read_text(Path::new("-")).map(Some),
            (None, false, Some(file)) => read_text(file).map(Some),
            (None, false, None) => Ok(None),
        }
    }
}

/// Reads a text from a file, or from stdin if the path is `-`.
pub(super) fn read_text(path: &Path) -> CliResult<String> {
    let bytes = input::read(path)?;
    if bytes.len() > MAX_BYTES {
        // Check the size before the encoding: the truncated text may end inside a character.
        return Err(CliError::usage(format!("'{}' is too large: the limit is {MAX_BYTES} bytes", path.display()))
            .hint("tell the agent to read the file"));
    }
    String::from_utf8(bytes).map_err(|_| {
        CliError::usage(format!("'{}' is not UTF-8 text", path.display()))
            .hint("convert the file to UTF-8, for example with iconv")
    })
}
