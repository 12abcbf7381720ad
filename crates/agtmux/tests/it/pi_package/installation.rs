//! The ways in which Pi installs the package.

use std::fs;
use std::path::Path;

use super::pi_fixture::{PACKAGE, PiFixture};

/// Runs a command in the shell of the pane. It must succeed.
#[track_caller]
fn run_in_shell(pi: &PiFixture, command: &str, mark: &str) {
    pi.sandbox.type_text(&format!("clear; {command}; echo {mark}-$?"));
    pi.sandbox.press("Enter");
    pi.wait_for_screen("the end of the command", |screen| {
        screen.lines().any(|line| line.starts_with(&format!("{mark}-")))
    });
    let screen = pi.screen();
    assert!(screen.contains(&format!("{mark}-0")), "{command}: {screen}");
}

/// Starts Pi, which must load the extension and the skill, and ends it.
#[track_caller]
fn assert_loaded(pi: &PiFixture) {
    pi.launch("clear; pi");
    pi.wait_for_screen("the skill", |screen| screen.contains("tmux-task-manager"));
    pi.type_line("/tmux-tasks");
    pi.wait_for_screen("the panel", |screen| screen.contains("This session has no tasks."));
    pi.sandbox.press("Escape");
    pi.wait_for_screen("the panel to close", |screen| !screen.contains("Esc close"));
    pi.quit();
}

/// Copies the files into a new git repository.
fn repository(pi: &PiFixture, dir: &Path, commands: &str) {
    let script = format!(
        "set -e; mkdir -p {0}; cd {0}; {commands}; git init -q; git add .; git -c user.name=t -c user.email=t@t commit -qm t",
        dir.display()
    );
    let done = pi.sandbox.world().command("sh").args(["-c", &script]).output().expect("sh runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn pi_installs_the_package_from_a_directory_an_archive_and_git() {
    let Some(pi) = PiFixture::open() else { return };
    pi.use_packages(&[]);
    run_in_shell(&pi, &format!("pi install {PACKAGE}"), "installed-dir");
    assert_loaded(&pi);
    run_in_shell(&pi, &format!("pi remove {PACKAGE}"), "removed-dir");
    let dir = pi.sandbox.world().dir().join("packed");
    fs::create_dir(&dir).expect("the world is writable");
    run_in_shell(&pi, &format!("npm pack --silent --pack-destination {} {PACKAGE}", dir.display()), "packed");
    let archive = fs::read_dir(&dir).expect("a directory").flatten().next().expect("an archive").path();
    run_in_shell(&pi, &format!("pi install npm:pi-agtmux@file:{}", archive.display()), "installed-npm");
    assert!(pi.pi_dir().join("npm/node_modules/pi-agtmux/package.json").exists());
    assert!(!pi.pi_dir().join("npm/node_modules/@earendil-works").exists(), "Pi itself is not installed again");
    assert_loaded(&pi);
    run_in_shell(&pi, &format!("pi remove npm:pi-agtmux@file:{}", archive.display()), "removed-npm");
    // The whole repository of agtmux, as far as Pi reads it.
    let source = pi.sandbox.world().dir().join("source");
    let root = Path::new(PACKAGE).ancestors().nth(2).expect("the repository").display();
    repository(&pi, &source, &format!("mkdir extensions; cp -r {PACKAGE} extensions/pi; cp {root}/package.json ."));
    let replaced = format!("url.file://{}.insteadOf https://github.com/agtmux/agtmux", source.display());
    run_in_shell(&pi, &format!("git config --global {replaced}"), "configured");
    run_in_shell(&pi, "pi install git:github.com/agtmux/agtmux", "installed-git");
    assert_loaded(&pi);
}
