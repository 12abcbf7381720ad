//! Installs the real agents from npm or PyPI into a shared cache.

mod archive;
mod pypi;

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::{ConformanceAgent, poll_until};

/// How long an installation may take. This is long enough for the largest package, which has 436 MB.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(240);
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The package of a newer node, for agents that do not run on an old one.
const NEWER_NODE: (&str, &str) = ("node", "22.23.3");

#[derive(Debug, Clone)]
pub struct InstalledAgent {
    pub version: String,
    /// The directories to put in front of PATH.
    pub program_dirs: Vec<PathBuf>,
    /// Whether the package was downloaded just now.
    pub fetched: bool,
}

/// The package registry of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageRegistry {
    Npm,
    PyPi,
}

/// Returns this version of the package, and downloads it if it is not in the cache. If this fails, the caller skips the
/// test and reports the error as the reason.
pub fn install(registry: PackageRegistry, package: &str, version: &str) -> Result<InstalledAgent, String> {
    let cache = cache_dir()?;
    let dir = cache.join(format!("{package}@{version}"));
    fs::create_dir_all(dir.parent().unwrap_or(&cache)).map_err(|error| format!("{}: {error}", cache.display()))?;
    // Parallel tests need the same packages: one downloads, the others wait.
    let _turn = lock_package(&cache, package)?;
    let (fetched, programs) = match registry {
        PackageRegistry::Npm => {
            let fetched = !dir.is_dir();
            if fetched {
                fetch_from_npm(&cache, &dir, &format!("{package}@{version}"))?;
            }
            (fetched, dir.join("node_modules/.bin"))
        }
        PackageRegistry::PyPi => (pypi::install_package(&dir, package, version)?, dir.join("bin")),
    };
    Ok(InstalledAgent { version: version.to_owned(), program_dirs: vec![programs], fetched })
}

/// Returns this version of an agent, with a newer node if it needs one.
pub fn install_agent(agent: &dyn ConformanceAgent, version: &str) -> Result<InstalledAgent, String> {
    let (package, _) = agent.package();
    let installed = match agent.archive_with(version) {
        Some(beside) => archive::install_archive(package, version, beside),
        None => install(agent.registry(), package, version),
    }?;
    if agent.needs_newer_node() { installed.with_newer_node() } else { Ok(installed) }
}

impl InstalledAgent {
    /// Puts a newer node into `program_dirs`, so that the agent does not use the node of this machine.
    pub fn with_newer_node(mut self) -> Result<Self, String> {
        let (package, version) = NEWER_NODE;
        let node = install(PackageRegistry::Npm, package, version)?;
        self.fetched |= node.fetched;
        self.program_dirs.splice(..0, node.program_dirs);
        Ok(self)
    }
}

/// The newest published version.
pub fn newest_version(registry: PackageRegistry, package: &str) -> Result<String, String> {
    if registry == PackageRegistry::PyPi {
        return pypi::newest_version(package);
    }
    let text = run_npm(&["view", package, "version"], LOOKUP_TIMEOUT)?;
    // npm may print warnings about its settings around the version.
    let is_version = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    let version = text.lines().map(str::trim).find(is_version).map(str::to_owned);
    version.ok_or_else(|| format!("npm has no version of {package}"))
}

/// The cache is outside the checkout, so that `cargo clean` keeps it and tools that scan the checkout do not read a
/// gigabyte.
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

/// Locks the package. The lock is held until the returned file is dropped or the process ends.
fn lock_package(cache: &Path, package: &str) -> Result<File, String> {
    let path = cache.join(format!(".{}.lock", package.replace('/', "+")));
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|error| error.to_string())?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file)
}

/// Installs into a temporary directory, and renames the directory when the installation is complete. A partial
/// installation is therefore never used.
fn fetch_from_npm(cache: &Path, dir: &Path, package: &str) -> Result<(), String> {
    let draft = tempfile::Builder::new().prefix(".new-").tempdir_in(cache).map_err(|error| error.to_string())?;
    npm_install(draft.path(), &[package])?;
    keep_draft(draft, dir)
}

fn npm_install(prefix: &Path, packages: &[&str]) -> Result<(), String> {
    let prefix = prefix.display().to_string();
    let quiet = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
    run_npm(&[&["install", "--prefix", &prefix], &quiet[..], packages].concat(), INSTALL_TIMEOUT).map(drop)
}

fn keep_draft(draft: tempfile::TempDir, dir: &Path) -> Result<(), String> {
    fs::rename(draft.path(), dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    // The directory was renamed. `keep` prevents the draft from deleting its old path on drop.
    let _ = draft.keep();
    Ok(())
}

fn run_npm(args: &[&str], deadline: Duration) -> Result<String, String> {
    let mut command = Command::new("npm");
    // Without a network npm would retry for a minute; fail sooner.
    command.args(args).args(["--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=3000"]);
    let name = format!("npm {} {}", args.first().unwrap_or(&""), args.last().unwrap_or(&""));
    run_with_deadline(&mut command, &name, deadline)
}

fn run_with_deadline(command: &mut Command, name: &str, deadline: Duration) -> Result<String, String> {
    let output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let share = || output.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    command.stdin(Stdio::null()).stdout(share()?).stderr(share()?);
    let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
    let status = poll_until(deadline, || child.try_wait().ok().flatten());
    if status.is_none() {
        // Fails only if the process has already ended.
        let _ = child.kill().and_then(|()| child.wait());
    }
    let status = status.ok_or_else(|| format!("{name} did not end within {deadline:?}"))?;
    let text = read_all(output);
    if status.success() { Ok(text) } else { Err(format!("{name}: {}", first_lines(&text))) }
}

fn read_all(mut file: File) -> String {
    use std::io::{Read, Seek};
    let mut text = Vec::new();
    // A read error only shortens a message.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}

/// The first lines of an npm error, which name the cause. The rest is only advice.
fn first_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("npm warn"));
    lines.take(3).collect::<Vec<_>>().join(" / ")
}
