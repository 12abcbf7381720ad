//! Loads the agent registry without the daemon. The registry contains the built-in manifests and the user's manifests.

use std::path::Path;

use agtmux_agents::{AgentRegistry, MAX_MANIFEST_BYTES, ManifestFile, UserManifests};
use agtmux_api::files;
use agtmux_api::paths::Paths;
use agtmux_core::text;
use std::os::unix::ffi::OsStrExt;

use crate::error::{CliError, CliResult};

/// Loads the same registry that a daemon started now would load.
pub(crate) fn load() -> CliResult<AgentRegistry> {
    // Without a home directory there are no user manifests.
    let Ok(paths) = Paths::from_env() else { return Ok(UserManifests::default().registry()) };
    let dir = paths.agents_dir();
    let found = files::read_dir_files(&dir, "toml", MAX_MANIFEST_BYTES)
        .map_err(|error| CliError::io(&format!("read '{}'", dir.display()), error))?;
    let files = found.into_iter().map(|file| ManifestFile { path: display_path(&file.path), text: file.text });
    let mut user = UserManifests::default();
    user.update(files);
    Ok(user.registry())
}

/// A path as text for messages. The code that prints the message sanitizes it.
pub(crate) fn display_path(path: &Path) -> String {
    text::from_bytes(path.as_os_str().as_bytes())
}
