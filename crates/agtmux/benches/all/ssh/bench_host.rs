//! A host with 15 panes. One pane runs a scripted agent.

use std::path::PathBuf;

use agtmux_testkit::TestWorld;

use crate::harness::bench_agent::BenchAgent;

const PANES: usize = 15;

pub(crate) struct BenchHost {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    /// Whether agtmux runs on the host, so that hooks can report events.
    pub(crate) has_agtmux: bool,
    pub(crate) agent: BenchAgent,
    pub(crate) socket: PathBuf,
}

impl BenchHost {
    /// Creates the measured agent, an agent for the background load, and panes without agents.
    pub(crate) fn create(label: &'static str, target: &'static str, has_agtmux: bool, world: &TestWorld) -> Self {
        let tmux = world.tmux("default");
        let agent = BenchAgent::start(target, world, &tmux);
        tmux.new_session("load", &world.fake_agent_command("claude"));
        for n in 2..PANES {
            tmux.new_session(&format!("rest{n}"), "cat");
        }
        Self { label, target, has_agtmux, agent, socket: world.socket() }
    }
}
