//! Finds the title of a session of Pi or a similar harness: the title stored in its session file, or the user's first
//! message if none is stored.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_agents::{SESSION_DIRS, SessionDir, SessionNames, is_session_file};
use agtmux_api::files::open_no_follow;
use agtmux_core::task::session_title;

/// At most this many bytes are read at the start of a session file, and as many at its end. The start contains the
/// first message, and the end contains the last title.
const MAX_READ_BYTES: u64 = 1 << 20;
/// The search for a session file stops after this many directory entries.
const MAX_ENTRIES: usize = 200_000;
/// How long a caller waits for a title. Reading a title can take forever if the disk hangs.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The title of a harness session, shortened so that it fits into a notice. `None` if no known harness has such a
/// session.
pub(super) async fn title_of(session_id: String) -> Option<String> {
    let roots = roots(|name| std::env::var_os(name).map(PathBuf::from));
    let read = tokio::task::spawn_blocking(move || title_in(&roots, &session_id));
    tokio::time::timeout(READ_TIMEOUT, read).await.ok()?.ok()?
}

fn roots(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let home = variable("HOME");
    let root = |dir: &SessionDir| {
        let moved = variable(dir.root_variable).filter(|path| !path.as_os_str().is_empty());
        // Expand `~` as the harness does.
        let moved = moved.map(|path| match path.strip_prefix("~") {
            Ok(rest) => home.as_ref().map_or_else(|| path.clone(), |home| home.join(rest)),
            Err(_) => path,
        });
        let root = moved.or_else(|| Some(home.as_ref()?.join(dir.root?)))?;
        Some(root.join(dir.path))
    };
    SESSION_DIRS.iter().filter_map(root).collect()
}

fn title_in(roots: &[PathBuf], session_id: &str) -> Option<String> {
    let file = roots.iter().find_map(|root| session_file(root, session_id))?;
    let text = both_ends(open_no_follow(&file).ok()?).ok()?;
    let names = SessionNames::of(text.lines());
    session_title(names.title(), names.first_message.as_deref())
}

/// Reads the start and the end of a file. A line that is cut in the middle is later ignored, because it is not valid
/// JSON.
fn both_ends(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let size = file.metadata()?.len();
    (&mut file).take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    if size > MAX_READ_BYTES {
        let from = (size - MAX_READ_BYTES).max(MAX_READ_BYTES);
        if from > MAX_READ_BYTES {
            bytes.push(b'\n');
        }
        file.seek(SeekFrom::Start(from))?;
        file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn session_file(sessions: &Path, session_id: &str) -> Option<PathBuf> {
    let entries = |dir: &Path| fs::read_dir(dir).ok().into_iter().flat_map(|entries| entries.flatten());
    let inside = |entry: fs::DirEntry| {
        let path = entry.path();
        // read_dir fails on anything that is not a directory, without opening it.
        entries(&path).map(|entry| entry.path()).collect::<Vec<_>>().into_iter().chain([path])
    };
    let mut files = entries(sessions).flat_map(inside).take(MAX_ENTRIES);
    files.find(|file| {
        file.file_name().and_then(|name| name.to_str()).is_some_and(|name| is_session_file(name, session_id))
    })
}

#[cfg(test)]
mod tests;
