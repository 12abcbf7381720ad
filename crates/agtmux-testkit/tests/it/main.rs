//! The tests of the testkit, and of rules for the whole workspace.

mod agent_names;
mod crate_dependencies;
mod documented_tests;
mod model;
mod plain_names;
mod skip;
mod tmux;
mod world;
