//! agtmux lists the same servers, sessions, windows and panes as tmux.

#[path = "support/topology_agents.rs"]
mod agents;
#[path = "support/topology_entries.rs"]
mod entries;
#[path = "support/topology_hints.rs"]
mod hints;
#[path = "support/topology_latencies.rs"]
mod latencies;
#[path = "support/topology_model.rs"]
mod model;
#[path = "support/topology_model_server.rs"]
mod model_server;
#[path = "support/topology_operations.rs"]
mod operations;
#[path = "support/topology_random.rs"]
mod random;
#[path = "support/topology_servers.rs"]
mod servers;
#[path = "support/topology_stream.rs"]
mod stream;

use agtmux_testkit::TestWorld;

fn world() -> TestWorld {
    TestWorld::with_agtmux(env!("CARGO_BIN_EXE_agtmux"))
}

#[test]
fn random_operations_on_two_servers_are_listed_correctly() {
    let world = world();
    let operations = if std::env::var_os("AGTMUX_SOAK").is_some() { 2000 } else { 120 };
    let mut model = model::TopologyModel::start(&world);
    while model.operations() < operations {
        model.step();
    }
    model.finish();
}
