//! The real command line agents, from npm, in a cache that runs share.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::until;

/// The largest has 436 MB.
const INSTALL: Duration = Duration::from_secs(240);
const LOOK_UP: Duration = Duration::from_secs(30);

/// For agents that do not run on the oldest node that is still in use.
const NEWER_NODE: (&str, &str) = ("node", "22.23.3");

#[derive(Debug, Clone)]
pub(crate) struct Installed {
    pub(crate) version: String,
    /// Where its programs are, as they should stand on PATH.
    pub(crate) programs: Vec<PathBuf>,
    /// Whether npm was asked for it in this run.
    pub(crate) fetched: bool,
}

/// This version of this package, fetched if it is not there. The error says why there is none.
pub(crate) fn install(package: &str, version: &str) -> Result<Installed, String> {
    let cache = cache()?;
    let place = cache.join(format!("{package}@{version}"));
    fs::create_dir_all(place.parent().unwrap_or(&cache)).map_err(|error| format!("{}: {error}", cache.display()))?;
    // Tests that run side by side want the same packages: one fetches, the others wait for it.
    let _turn = take_turn(&cache, package)?;
    let fetched = !place.is_dir();
    if fetched {
        fetch(&cache, &place, &format!("{package}@{version}"))?;
    }
    Ok(Installed { version: version.to_owned(), programs: vec![place.join("node_modules/.bin")], fetched })
}

impl Installed {
    /// With a node in front of the machine's own.
    pub(crate) fn with_newer_node(mut self) -> Result<Self, String> {
        let (package, version) = NEWER_NODE;
        let node = install(package, version)?;
        self.fetched |= node.fetched;
        self.programs.splice(..0, node.programs);
        Ok(self)
    }
}

/// The newest version that there is.
pub(crate) fn newest(package: &str) -> Result<String, String> {
    let said = run_npm(&["view", package, "version"], LOOK_UP)?;
    // Among the warnings that npm may have about its own settings.
    let is_version = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    let version = said.lines().map(str::trim).find(is_version).map(str::to_owned);
    version.ok_or_else(|| format!("npm knows no version of {package}"))
}

/// Outside the checkout: what takes a gigabyte must survive `cargo clean`, and must not be found by tools that read it.
fn cache() -> Result<PathBuf, String> {
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
fn take_turn(cache: &Path, package: &str) -> Result<File, String> {
    let path = cache.join(format!(".{}.lock", package.replace('/', "+")));
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|error| error.to_string())?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file)
}

/// Under another name until it is complete: half an installation must never be taken for one.
fn fetch(cache: &Path, place: &Path, what: &str) -> Result<(), String> {
    let draft = tempfile::Builder::new().prefix(".new-").tempdir_in(cache).map_err(|error| error.to_string())?;
    let prefix = draft.path().display().to_string();
    let quiet = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
    run_npm(&[&["install", "--prefix", &prefix], &quiet[..], &[what]].concat(), INSTALL)?;
    fs::rename(draft.path(), place).map_err(|error| format!("{}: {error}", place.display()))?;
    // It has moved: there is nothing left to delete.
    let _ = draft.keep();
    Ok(())
}

fn run_npm(args: &[&str], deadline: Duration) -> Result<String, String> {
    let mut command = Command::new("npm");
    // Where there is no network, that must be known soon: npm would try again for a minute.
    command.args(args).args(["--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=3000"]).stdin(Stdio::null());
    let output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let share = || output.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    command.stdout(share()?).stderr(share()?);
    let mut npm = command.spawn().map_err(|error| format!("npm cannot be started: {error}"))?;
    let status = until(deadline, || npm.try_wait().ok().flatten());
    if status.is_none() {
        // Fails only when it has ended by now.
        let _ = npm.kill().and_then(|()| npm.wait());
    }
    let name = format!("npm {} {}", args.first().unwrap_or(&""), args.last().unwrap_or(&""));
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
