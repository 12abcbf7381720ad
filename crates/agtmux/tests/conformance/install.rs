//! The real command line agents, from npm or PyPI, in a cache that runs share.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::poll_until;

#[path = "install_pypi.rs"]
mod pypi;

/// The largest has 436 MB.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(240);
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(30);

/// For agents that do not run on the oldest node that is still in use.
const NEWER_NODE: (&str, &str) = ("node", "22.23.3");

#[derive(Debug, Clone)]
pub(crate) struct InstalledAgent {
    pub(crate) version: String,
    /// Where its programs are, as they should stand on PATH.
    pub(crate) program_dirs: Vec<PathBuf>,
    /// Whether it was fetched in this run.
    pub(crate) fetched: bool,
}

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageRegistry {
    Npm,
    PyPi,
}

/// This version of this package, fetched if it is not there. The error says why there is none.
pub(crate) fn install(registry: PackageRegistry, package: &str, version: &str) -> Result<InstalledAgent, String> {
    let cache = cache_dir()?;
    let place = cache.join(format!("{package}@{version}"));
    fs::create_dir_all(place.parent().unwrap_or(&cache)).map_err(|error| format!("{}: {error}", cache.display()))?;
    // Tests that run side by side want the same packages: one fetches, the others wait for it.
    let _turn = lock_package(&cache, package)?;
    let (fetched, programs) = match registry {
        PackageRegistry::Npm => {
            let fetched = !place.is_dir();
            if fetched {
                fetch_from_npm(&cache, &place, &format!("{package}@{version}"))?;
            }
            (fetched, place.join("node_modules/.bin"))
        }
        PackageRegistry::PyPi => (pypi::install_package(&place, package, version)?, place.join("bin")),
    };
    Ok(InstalledAgent { version: version.to_owned(), program_dirs: vec![programs], fetched })
}

impl InstalledAgent {
    /// With a node in front of the machine's own.
    pub(crate) fn with_newer_node(mut self) -> Result<Self, String> {
        let (package, version) = NEWER_NODE;
        let node = install(PackageRegistry::Npm, package, version)?;
        self.fetched |= node.fetched;
        self.program_dirs.splice(..0, node.program_dirs);
        Ok(self)
    }
}

/// The newest version that there is.
pub(crate) fn newest_version(registry: PackageRegistry, package: &str) -> Result<String, String> {
    if registry == PackageRegistry::PyPi {
        return pypi::newest_version(package);
    }
    let said = run_npm(&["view", package, "version"], LOOKUP_TIMEOUT)?;
    // Among the warnings that npm may have about its own settings.
    let is_version = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    let version = said.lines().map(str::trim).find(is_version).map(str::to_owned);
    version.ok_or_else(|| format!("npm knows no version of {package}"))
}

/// Outside the checkout: what takes a gigabyte must survive `cargo clean`, and must not be found by tools that read it.
fn cache_dir() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("AGTMUX_CONFORMANCE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME"))
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .ok_or("neither AGTMUX_CONFORMANCE_CACHE nor HOME is set")?;
    let cache = base.join("agtmux-conformance");
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    Ok(cache)
}

/// Held until it is dropped, also when the process is killed.
fn lock_package(cache: &Path, package: &str) -> Result<File, String> {
    let path = cache.join(format!(".{}.lock", package.replace('/', "+")));
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|error| error.to_string())?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file)
}

/// Under another name until it is complete: half an installation must never be taken for one.
fn fetch_from_npm(cache: &Path, place: &Path, what: &str) -> Result<(), String> {
    let draft = tempfile::Builder::new().prefix(".new-").tempdir_in(cache).map_err(|error| error.to_string())?;
    let prefix = draft.path().display().to_string();
    let quiet = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
    run_npm(&[&["install", "--prefix", &prefix], &quiet[..], &[what]].concat(), INSTALL_TIMEOUT)?;
    fs::rename(draft.path(), place).map_err(|error| format!("{}: {error}", place.display()))?;
    // It has moved: there is nothing left to delete.
    let _ = draft.keep();
    Ok(())
}

fn run_npm(args: &[&str], deadline: Duration) -> Result<String, String> {
    let mut command = Command::new("npm");
    // Where there is no network, that must be known soon: npm would try again for a minute.
    command.args(args).args(["--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=3000"]);
    let name = format!("npm {} {}", args.first().unwrap_or(&""), args.last().unwrap_or(&""));
    run_with_deadline(&mut command, &name, deadline)
}

fn run_with_deadline(command: &mut Command, name: &str, deadline: Duration) -> Result<String, String> {
    let output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let share = || output.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    command.stdin(Stdio::null()).stdout(share()?).stderr(share()?);
    let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
    let status = poll_until(deadline, || child.try_wait().ok().flatten());
    if status.is_none() {
        // Fails only when it has ended by now.
        let _ = child.kill().and_then(|()| child.wait());
    }
    let status = status.ok_or_else(|| format!("{name} did not end within {deadline:?}"))?;
    let said = read_all(output);
    if status.success() { Ok(said) } else { Err(format!("{name}: {}", first_lines(&said))) }
}

fn read_all(mut file: File) -> String {
    use std::io::{Read, Seek};
    let mut said = Vec::new();
    // What cannot be read back is only missing from a message.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut said));
    String::from_utf8_lossy(&said).into_owned()
}

/// npm says first what went wrong, and then at length where to read about it.
fn first_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("npm warn"));
    lines.take(3).collect::<Vec<_>>().join(" / ")
}
