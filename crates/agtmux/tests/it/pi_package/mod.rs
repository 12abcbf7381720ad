//! The Pi package in the real Pi, with the mock model. Skipped if Pi cannot be installed from npm.

mod delivery;
mod installation;
mod mirror;
mod modes;
mod panel;
mod pi_fixture;
mod sessions;
mod states;
