//! Installs a PyPI package into its own virtual environment.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{LOOKUP_TIMEOUT, run_with_deadline};

/// How long an installation may take. This is long enough for aider, which has 687 MB in many small files.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(900);

/// The Python versions that aider supports, newest first.
const PYTHONS: [&str; 3] = ["python3.12", "python3.11", "python3.10"];

/// This file marks a complete installation. An installation cannot be renamed when it is complete, as is done for npm,
/// because the scripts of a virtual environment contain its path.
const COMPLETE_MARKER: &str = "complete";

/// Installs the package if it is not installed yet. Returns whether the package was downloaded.
pub(super) fn install_package(dir: &Path, package: &str, version: &str) -> Result<bool, String> {
    if dir.join(COMPLETE_MARKER).exists() {
        return Ok(false);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(failed)?;
    }
    run_with_deadline(Command::new(find_python()?).args(["-m", "venv"]).arg(dir), "python -m venv", INSTALL_TIMEOUT)?;
    let mut pip = Command::new(dir.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1"]);
    run_with_deadline(pip.arg(format!("{package}=={version}")), &format!("pip install {package}"), INSTALL_TIMEOUT)?;
    fs::write(dir.join(COMPLETE_MARKER), "").map_err(failed)?;
    Ok(true)
}

pub(super) fn newest_version(package: &str) -> Result<String, String> {
    let mut pip = Command::new(find_python()?);
    pip.args(["-m", "pip", "index", "versions", package, "--disable-pip-version-check", "--retries", "1"]);
    let output = run_with_deadline(&mut pip, &format!("pip index versions {package}"), LOOKUP_TIMEOUT)?;
    // `aider-chat (0.86.2)`
    let version =
        output.lines().find_map(|line| line.strip_prefix(package)?.trim().strip_prefix('(')?.strip_suffix(')'));
    version.map(str::to_owned).ok_or_else(|| format!("PyPI has no version of {package}"))
}

fn find_python() -> Result<&'static str, String> {
    let works = |python: &&str| {
        run_with_deadline(Command::new(python).args(["-c", "import venv, ensurepip"]), python, LOOKUP_TIMEOUT).is_ok()
    };
    let found = PYTHONS.into_iter().find(works);
    found.ok_or_else(|| format!("none of {} can create a virtual environment", PYTHONS.join(", ")))
}
