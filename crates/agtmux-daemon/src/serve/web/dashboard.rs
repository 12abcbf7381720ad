//! The files of the dashboard. `make web` builds them into `web/dist`. A build without these files has only the plain
//! page.

use std::borrow::Cow;

use rust_embed::RustEmbed;

/// A development build reads the files when they are requested, so that `make web` needs no new build of the daemon.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[exclude = ".gitignore"]
#[allow_missing = true]
struct DashboardFiles;

/// The name of the page itself.
const INDEX: &str = "index.html";

/// The file for this path: its content type and its content. `None` if the dashboard is not built in or has no such
/// file.
pub(super) fn file(path: &str) -> Option<(&'static str, Cow<'static, [u8]>)> {
    let name = name(path)?;
    DashboardFiles::get(name).map(|file| (content_type(name), file.data))
}

/// Whether this build has a file for this path.
pub(super) fn is_file(path: &str) -> bool {
    name(path).is_some_and(|name| DashboardFiles::iter().any(|file| file == name))
}

/// The name of the file for a path. Only names in one directory are possible.
fn name(path: &str) -> Option<&str> {
    let name = path.strip_prefix('/')?;
    let is_plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    match name {
        "" => Some(INDEX),
        INDEX => None,
        _ => Some(name).filter(|name| is_plain(name) && !name.starts_with('.')),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_files() {
        assert_eq!((name("/"), name("/dashboard.js")), (Some(INDEX), Some("dashboard.js")));
        for path in ["", "x", "/index.html", "/../x", "/a/b", "/.gitignore", "/%61", "/..", "//"] {
            assert!(name(path).is_none() && file(path).is_none() && !is_file(path), "{path}");
        }
    }
}
