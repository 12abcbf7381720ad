//! A package of PyPI, in an environment of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{LOOK_UP, run};

/// aider has 687 MB in many small files.
const INSTALL: Duration = Duration::from_secs(900);

/// The newest that aider runs on comes first.
const PYTHONS: [&str; 3] = ["python3.12", "python3.11", "python3.10"];

/// Made when everything else is there. The scripts of an environment name it by its path, so it cannot be made under another
/// name and moved.
const COMPLETE: &str = "complete";

/// Whether it had to be fetched.
pub(super) fn provide(place: &Path, package: &str, version: &str) -> Result<bool, String> {
    if place.join(COMPLETE).exists() {
        return Ok(false);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    if place.exists() {
        fs::remove_dir_all(place).map_err(failed)?;
    }
    run(Command::new(python()?).args(["-m", "venv"]).arg(place), "python -m venv", INSTALL)?;
    let mut pip = Command::new(place.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1"]);
    run(pip.arg(format!("{package}=={version}")), &format!("pip install {package}"), INSTALL)?;
    fs::write(place.join(COMPLETE), "").map_err(failed)?;
    Ok(true)
}

pub(super) fn newest(package: &str) -> Result<String, String> {
    let mut pip = Command::new(python()?);
    pip.args(["-m", "pip", "index", "versions", package, "--disable-pip-version-check", "--retries", "1"]);
    let said = run(&mut pip, &format!("pip index versions {package}"), LOOK_UP)?;
    // `aider-chat (0.86.2)`
    let version = said.lines().find_map(|line| line.strip_prefix(package)?.trim().strip_prefix('(')?.strip_suffix(')'));
    version.map(str::to_owned).ok_or_else(|| format!("PyPI knows no version of {package}"))
}

fn python() -> Result<&'static str, String> {
    let works =
        |python: &&str| run(Command::new(python).args(["-c", "import venv, ensurepip"]), python, LOOK_UP).is_ok();
    let found = PYTHONS.into_iter().find(works);
    found.ok_or_else(|| format!("none of {} can make an environment", PYTHONS.join(", ")))
}
