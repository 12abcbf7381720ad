//! Installs packages from npm that contain all their code but name dependencies that the registry does not have.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{
    INSTALL_TIMEOUT, InstalledAgent, cache_dir, keep_draft, lock_package, npm_install, run_npm, run_with_deadline,
};

/// Returns this version of the package, and downloads it if it is not in the cache. Of the dependencies, only those in
/// `beside` are installed.
pub(super) fn install_archive(package: &str, version: &str, beside: &[&str]) -> Result<InstalledAgent, String> {
    let cache = cache_dir()?;
    let dir = cache.join(format!("{package}@{version}-archive"));
    fs::create_dir_all(dir.parent().unwrap_or(&cache)).map_err(|error| format!("{}: {error}", cache.display()))?;
    let _turn = lock_package(&cache, package)?;
    let fetched = !dir.is_dir();
    if fetched {
        let draft = tempfile::Builder::new().prefix(".new-").tempdir_in(&cache).map_err(|error| error.to_string())?;
        npm_install(draft.path(), beside)?;
        unpack(draft.path(), package, version)?;
        keep_draft(draft, &dir)?;
    }
    Ok(InstalledAgent { version: version.to_owned(), program_dirs: vec![dir.join("node_modules/.bin")], fetched })
}

/// Unpacks the archive of the package into `node_modules`, and links its programs.
fn unpack(draft: &Path, package: &str, version: &str) -> Result<(), String> {
    let to_text = |error: std::io::Error| format!("{package}@{version}: {error}");
    let target = draft.join("node_modules").join(package);
    fs::create_dir_all(&target).map_err(to_text)?;
    let (name, destination) = (format!("{package}@{version}"), draft.display().to_string());
    let printed = run_npm(&["pack", "--silent", "--pack-destination", &destination, &name], INSTALL_TIMEOUT)?;
    let archive = printed.lines().map(str::trim).rfind(|line| line.ends_with(".tgz")).ok_or("npm packed no archive")?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(draft.join(archive)).arg("-C").arg(&target).arg("--strip-components=1");
    run_with_deadline(&mut tar, "tar", INSTALL_TIMEOUT)?;
    let manifest = fs::read(target.join("package.json")).map_err(to_text)?;
    let manifest: Value = serde_json::from_slice(&manifest).map_err(|error| format!("{package}@{version}: {error}"))?;
    let links = draft.join("node_modules/.bin");
    fs::create_dir_all(&links).map_err(to_text)?;
    for (program, path) in manifest["bin"].as_object().into_iter().flatten() {
        let path = Path::new("..").join(package).join(path.as_str().unwrap_or_default());
        std::os::unix::fs::symlink(path, links.join(program)).map_err(to_text)?;
    }
    Ok(())
}
