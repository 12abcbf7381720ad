//! Agents may not start agents, unless `actions.allow_new_from_agents` is set, which allows nothing else.

use super::agent_fixture::AgentFixture;

#[test]
fn agents_may_start_agents_only_if_the_settings_allow_it() {
    let fixture = AgentFixture::start("");
    for (label, line) in [
        ("new", "new claude --session person"),
        ("worktree", "new claude --session person --worktree x"),
        ("rename", "rename claude mine"),
        ("remove", "worktree remove x"),
    ] {
        fixture.agent_runs(label, line).assert_refused();
    }

    let fixture = AgentFixture::start("actions.allow_new_from_agents = true\n");
    let before = fixture.server.panes().len();
    let allowed = fixture.agent_runs("allowed", "new nonesuch --session person");
    assert!(allowed.output.contains("does not know an agent 'nonesuch'"), "{allowed:?}");
    fixture.agent_runs("steer", "rename claude mine").assert_refused();
    assert_eq!(fixture.server.panes().len(), before);
}
