//! `agtmux new --worktree` and `agtmux worktree` with fake agents and real repositories.

use std::fs;
use std::path::{Path, PathBuf};

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, run};
use agtmux_testkit::fake_agent::{FAKE_AGENT_SCRIPT, FakeAgent};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

struct WorktreeFixture {
    actions: ActionFixture,
    repository: PathBuf,
}

impl WorktreeFixture {
    fn new(settings: &str) -> Self {
        let actions = ActionFixture::new(settings);
        let repository = actions.world.home().join("my app");
        fs::create_dir(&repository).expect("the world is writable");
        actions.server.new_session("work", "exec cat");
        let programs = actions.world.shell_copy("claude").parent().expect("a directory").display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").expect("PATH is set"));
        actions.server.run(&["set-environment", "-g", "PATH", &path]);
        actions.server.run(&["set-option", "-g", "default-command", "PS1='ready> ' exec sh -i"]);
        let fixture = Self { actions, repository };
        fixture.git(&fixture.repository, &["init", "--quiet", "--initial-branch", "main"]);
        fs::write(fixture.repository.join(".gitignore"), ".env\n").expect("the world is writable");
        fs::write(fixture.repository.join(".env"), "KEY=1\n").expect("the world is writable");
        fixture.commit(&fixture.repository, "first");
        fixture
    }

    fn git(&self, dir: &Path, args: &[&str]) -> String {
        let mut git = self.actions.world.command("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args).current_dir(dir);
        let done = run(&mut git);
        assert_eq!(done.code, Some(0), "git {args:?}: {done:?}");
        done.text().trim().to_owned()
    }

    fn commit(&self, dir: &Path, message: &str) {
        self.git(dir, &["add", "--all"]);
        self.git(dir, &["commit", "--quiet", "--message", message]);
    }

    fn start(&self, branch: &str, more: &[&str]) -> (CommandResult, PathBuf) {
        let dir = FakeAgent::fresh_dir(&self.actions.world);
        let mut command = self.actions.world.agtmux();
        command.args(["new", "claude", "--session", "work", "--json", "--worktree", branch, "--in"]);
        command.arg(&self.repository).args(more).arg("--").arg(FAKE_AGENT_SCRIPT).arg(&dir);
        (run(&mut command), dir)
    }

    fn worktree(&self, args: &[&str]) -> CommandResult {
        let mut command = self.actions.world.agtmux();
        run(command.arg("worktree").args(args).arg("--in").arg(&self.repository))
    }

    fn listed(&self, branch: &str) -> Value {
        let list = self.worktree(&["list", "--json"]).json();
        list["items"]
            .as_array()
            .and_then(|items| items.iter().find(|item| item["branch"] == branch))
            .cloned()
            .unwrap_or_default()
    }
}

#[test]
fn an_agent_gets_a_prepared_worktree_that_is_removed_after_its_work_is_merged() {
    let settings = "worktrees.copy = ['.env', '../secret']\nworktrees.setup = 'echo \"$PWD\" > prepared.env && mv prepared.env .env2'\n";
    let fixture = WorktreeFixture::new(settings);
    fs::write(fixture.repository.join(".gitignore"), ".env*\n").expect("the world is writable");
    fixture.commit(&fixture.repository, "ignore");
    let (done, dir) = fixture.start("fix the/login", &["--prompt", "go"]);
    let outcome = done.json();
    let path = fixture.repository.with_file_name("my app.worktrees").join("fix-the-login");
    assert_eq!(outcome["cwd"].as_str(), path.to_str(), "{done:?}");
    let pane = outcome["pane_id"].as_str().expect("a pane").to_owned();
    let agent = FakeAgent::wait_for_start(&fixture.actions.server, pane, dir);
    assert_eq!(agent.submitted_texts(), ["go"]);
    assert_eq!(fs::read_to_string(path.join(".env")).expect("copied"), "KEY=1\n");
    assert_eq!(fs::read_to_string(path.join(".env2")).expect("prepared").trim(), path.to_str().expect("text"));
    let item = wait_for("the agent in the list", SOON, || {
        let item = fixture.listed("fix-the/login");
        if item["agents"][0]["pane_id"] == agent.pane.as_str() { Ok(item) } else { Err(item.to_string()) }
    });
    assert_eq!((&item["dirty"], &item["merged"], &item["main"]), (&json!(0), &json!(true), &json!(false)), "{item}");
    let remove = || fixture.worktree(&["remove", "fix-the/login"]);
    let refused = remove();
    assert!(refused.code == Some(5) && refused.stderr.contains("works in this worktree"), "{refused:?}");
    // The diff has the commits of the branch, and names untracked files.
    fs::write(path.join("committed"), "by the agent\n").expect("writable");
    fixture.commit(&path, "by the agent");
    fs::write(path.join("new"), "x\n").expect("writable");
    let diff = agtmux(&fixture.actions.world, &["diff", &agent.pane, "--", "--stat"]);
    assert!(diff.code == Some(0) && diff.text().contains("committed | 1 +"), "{diff:?}");
    assert!(diff.stderr.contains("untracked: new"), "{diff:?}");
    fs::remove_file(path.join("new")).expect("writable");
    fixture.git(&path, &["reset", "--quiet", "--hard", "main"]);
    // The same branch again is the same worktree, without another setup.
    fs::remove_file(path.join(".env2")).expect("writable");
    let (again, second) = fixture.start("fix-the/login", &[]);
    assert_eq!(again.json()["cwd"].as_str(), path.to_str());
    assert!(!path.join(".env2").exists());
    let second = FakeAgent::wait_for_start(
        &fixture.actions.server,
        again.json()["pane_id"].as_str().expect("a pane").into(),
        second,
    );

    fs::write(path.join("work"), "done\n").expect("writable");
    for agent in [&agent, &second] {
        let killed = agtmux(&fixture.actions.world, &["kill", &agent.pane, "--signal", "KILL", "--yes", "--json"]);
        assert_eq!(killed.json()["ended"], true, "{killed:?}");
    }
    let refused = remove();
    assert!(refused.code == Some(5) && refused.stderr.contains("1 uncommitted files (work)"), "{refused:?}");
    fixture.commit(&path, "the fix");
    let refused = remove();
    assert!(refused.code == Some(5) && refused.stderr.contains("1 commits that no other branch has"), "{refused:?}");
    let item = fixture.listed("fix-the/login");
    assert_eq!((&item["ahead"], &item["merged"]), (&json!(1), &json!(false)), "{item}");
    fixture.git(&fixture.repository, &["merge", "--quiet", "fix-the/login"]);
    let removed = remove();
    assert!(removed.code == Some(0) && removed.text().contains("deleted the merged branch"), "{removed:?}");
    assert!(!path.exists() && fixture.repository.join("work").exists());
    let panes = || fixture.actions.server.panes().into_iter().map(|row| row.pane_id).collect::<Vec<_>>();
    wait_until("the panes of the agents to close", SOON, || {
        !panes().contains(&agent.pane) && !panes().contains(&second.pane)
    });
    assert!(panes().contains(&"%0".to_owned()), "other panes stay");
}

#[test]
fn odd_repositories_and_names_are_refused_with_the_reason() {
    let fixture = WorktreeFixture::new("worktrees.setup = 'exit 3'\n");
    let home = fixture.actions.world.home();
    let refused = |args: &[&str], why: &str| {
        let mut command = fixture.actions.world.agtmux();
        let done = run(command.args(["new", "claude", "--session", "work"]).args(args));
        assert!(done.code != Some(0) && done.stderr.contains(why), "{args:?}: {done:?}");
    };
    let repository = fixture.repository.to_str().expect("text");
    let plain = home.join("plain");
    fs::create_dir(&plain).expect("the world is writable");
    refused(&["--in", plain.to_str().expect("text"), "--worktree", "x"], "is in no git repository");
    refused(&["--in", repository, "--worktree", "a..b"], "is not a valid branch name");
    refused(&["--in", repository, "--worktree=-x"], "is not a valid branch name");
    refused(&["--in", repository, "--worktree", "x", "--base", "nowhere"], "is not a commit");
    refused(&["--in", repository, "--worktree", "main"], "is checked out in the main worktree");
    let empty = home.join("empty");
    fs::create_dir(&empty).expect("the world is writable");
    fixture.git(&empty, &["init", "--quiet"]);
    refused(&["--in", empty.to_str().expect("text"), "--worktree", "x"], "has no commit yet");
    // The setup fails: no agent starts, and the worktree stays.
    refused(&["--in", repository, "--worktree", "über/x"], "worktrees.setup failed");
    let path = home.join("my app.worktrees/über-x");
    assert!(path.is_dir());
    let gone = fixture.worktree(&["remove", path.to_str().expect("text")]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    // A bare repository has worktrees, too.
    let bare = home.join("bare.git");
    fixture.git(&home, &["clone", "--quiet", "--bare", repository, "bare.git"]);
    let added = fixture.actions.world.agtmux().args(["worktree", "list", "--json", "--in"]).arg(&bare).output();
    assert!(added.is_ok_and(|output| output.status.success()));
}
