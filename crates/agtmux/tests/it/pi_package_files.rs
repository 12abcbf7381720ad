//! The files of the Pi package: its unit tests, and its types with two versions of Pi.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use agtmux_testkit::agtmux::{run, world};
use agtmux_testkit::real_agents::install::{InstalledAgent, PackageRegistry, install, install_agent};
use agtmux_testkit::real_agents::{self};
use agtmux_testkit::{TestWorld, runnable_typescript, skip};

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../extensions/pi");

#[test]
fn the_unit_tests_of_the_package_pass() {
    let world = world();
    let tests = Path::new(PACKAGE).join("test/all.ts");
    let Some(program) = runnable_typescript(&world, &tests) else { return };
    let done = run(world.command("node").arg("--test").arg(program));
    assert_eq!(done.code, Some(0), "{}{}", done.text(), done.stderr);
    assert!(done.text().contains("pass "), "{}", done.text());
}

/// The packages that the check needs.
struct Checker {
    typescript: PathBuf,
    node_types: PathBuf,
    pinned: PathBuf,
    newest: PathBuf,
}

fn modules(installed: &InstalledAgent) -> PathBuf {
    installed.program_dirs[0].parent().expect("the directory of .bin").to_owned()
}

fn checker() -> Result<Checker, String> {
    let pi = *real_agents::ALL.iter().find(|agent| agent.name() == "pi").expect("Pi is a tested agent");
    let npm = |name, version| install(PackageRegistry::Npm, name, version).map(|installed| modules(&installed));
    let version = |version| install(PackageRegistry::Npm, "node", "22.23.3").and(install_agent(pi, version));
    let (pinned, newest) = (version(pi.package().1)?, version(pi.other_versions()[0])?);
    // The first directory is that of the newer node.
    let last =
        |installed: &InstalledAgent| installed.program_dirs.last().and_then(|dir| dir.parent()).map(Path::to_owned);
    Ok(Checker {
        typescript: npm("typescript", "7.0.2")?,
        node_types: npm("@types/node", "22.19.19")?,
        pinned: last(&pinned).ok_or("no directory of Pi")?,
        newest: last(&newest).ok_or("no directory of Pi")?,
    })
}

/// A copy of the package whose modules are those of one version of Pi.
fn copy_with_modules(world: &TestWorld, name: &str, checker: &Checker, pi: &Path) -> PathBuf {
    let dir = world.dir().join(name);
    let done = world.command("cp").arg("-r").arg(PACKAGE).arg(&dir).status();
    assert!(done.is_ok_and(|status| status.success()));
    let own = dir.join("node_modules");
    let link = |from: &Path, to: &str| {
        let to = own.join(to);
        fs::create_dir_all(to.parent().expect("a parent")).expect("the world is writable");
        symlink(from, to).expect("the world is writable");
    };
    link(&pi.join("@earendil-works/pi-coding-agent"), "@earendil-works/pi-coding-agent");
    // The registry has no newer versions of these.
    for name in ["pi-tui", "pi-ai", "pi-agent-core"] {
        link(&checker.pinned.join("@earendil-works").join(name), &format!("@earendil-works/{name}"));
    }
    link(&checker.pinned.join("typebox"), "typebox");
    link(&checker.node_types.join("@types/node"), "@types/node");
    link(&checker.node_types.join("undici-types"), "undici-types");
    dir
}

#[test]
fn the_types_of_the_package_fit_both_versions_of_pi() {
    let checker = match checker() {
        Ok(checker) => checker,
        Err(why) => return skip(&why),
    };
    let world = world();
    for (name, pi) in [("pinned", &checker.pinned), ("newest", &checker.newest)] {
        let dir = copy_with_modules(&world, name, &checker, pi);
        let check = || {
            let mut tsc = world.command(checker.typescript.join(".bin/tsc").display().to_string());
            run(tsc.args(["-p", "."]).current_dir(&dir))
        };
        let done = check();
        assert_eq!(done.code, Some(0), "{name}: {}{}", done.text(), done.stderr);
        // The check must see a wrong use of Pi.
        let index = dir.join("extensions/agtmux/index.ts");
        let text = fs::read_to_string(&index).expect("text");
        fs::write(&index, text.replace("pi.on(\"input\"", "pi.on(\"no_such_event\"")).expect("written");
        assert!(check().text().contains("no_such_event"), "{name}: a wrong event is found");
    }
}
