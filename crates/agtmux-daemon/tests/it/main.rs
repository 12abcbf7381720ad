//! The integration tests of the daemon's API.

mod contract;
