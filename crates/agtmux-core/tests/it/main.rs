//! The integration tests of the core.

mod parsers;
