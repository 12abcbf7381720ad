//! agtmux lists the same servers, sessions, windows and panes as tmux.

mod agents;
mod entries;
mod hints;
mod latencies;
mod model;
mod model_server;
mod operations;
mod servers;
mod stream;

use agtmux_testkit::agtmux::{soak, world};

#[test]
fn random_operations_on_two_servers_are_listed_correctly() {
    let world = world();
    let operations = if soak() { 2000 } else { 120 };
    let mut model = model::TopologyModel::start(&world);
    while model.operations() < operations {
        model.step();
    }
    model.finish();
}
