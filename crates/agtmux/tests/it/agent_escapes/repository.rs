//! A repository that an agent has prepared cannot make the daemon's git act for the agent.

use std::fs;
use std::process::Command;

use agtmux_testkit::agtmux::agtmux;

use super::agent_fixture::AgentFixture;

#[test]
fn a_filter_of_a_repository_may_not_act_when_the_daemon_runs_git() {
    let fixture = AgentFixture::start("");
    let repository = fixture.file("repository");
    fs::create_dir(&repository).expect("the world is writable");
    let git = |args: &[&str]| {
        let mut git: Command = fixture.world.command("git");
        let done =
            git.arg("-C").arg(&repository).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args).output();
        let done = done.expect("git is installed");
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    fs::write(repository.join("file"), "1\n").expect("written");
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let name = fixture.write_script("filter");
    git(&["config", "filter.act.clean", &format!("sh {} >/dev/null 2>&1; cat", fixture.script(&name))]);
    fs::write(repository.join(".gitattributes"), "file filter=act\n").expect("written");
    fs::write(repository.join("file"), "2\n").expect("written");
    let listed = agtmux(&fixture.world, &["worktree", "list", "--in", &repository.display().to_string()]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    fixture.result(&name).assert_refused();
}
