//! A package of PyPI, in an environment of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{LOOKUP_TIMEOUT, run_with_deadline};

/// aider has 687 MB in many small files.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(900);

/// The newest that aider runs on comes first.
const PYTHONS: [&str; 3] = ["python3.12", "python3.11", "python3.10"];

/// Made when everything else is there. The scripts of an environment name it by its path, so it cannot be made under another
/// name and moved.
const COMPLETE_MARKER: &str = "complete";

/// Whether it had to be fetched.
pub(super) fn install_package(place: &Path, package: &str, version: &str) -> Result<bool, String> {
    if place.join(COMPLETE_MARKER).exists() {
        return Ok(false);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    if place.exists() {
        fs::remove_dir_all(place).map_err(failed)?;
    }
    run_with_deadline(Command::new(find_python()?).args(["-m", "venv"]).arg(place), "python -m venv", INSTALL_TIMEOUT)?;
    let mut pip = Command::new(place.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1"]);
    run_with_deadline(pip.arg(format!("{package}=={version}")), &format!("pip install {package}"), INSTALL_TIMEOUT)?;
    fs::write(place.join(COMPLETE_MARKER), "").map_err(failed)?;
    Ok(true)
}

pub(super) fn newest_version(package: &str) -> Result<String, String> {
    let mut pip = Command::new(find_python()?);
    pip.args(["-m", "pip", "index", "versions", package, "--disable-pip-version-check", "--retries", "1"]);
    let said = run_with_deadline(&mut pip, &format!("pip index versions {package}"), LOOKUP_TIMEOUT)?;
    // `aider-chat (0.86.2)`
    let version = said.lines().find_map(|line| line.strip_prefix(package)?.trim().strip_prefix('(')?.strip_suffix(')'));
    version.map(str::to_owned).ok_or_else(|| format!("PyPI knows no version of {package}"))
}

fn find_python() -> Result<&'static str, String> {
    let works = |python: &&str| {
        run_with_deadline(Command::new(python).args(["-c", "import venv, ensurepip"]), python, LOOKUP_TIMEOUT).is_ok()
    };
    let found = PYTHONS.into_iter().find(works);
    found.ok_or_else(|| format!("none of {} can make an environment", PYTHONS.join(", ")))
}
