//! The integration tests of the API types.

mod schemas;
