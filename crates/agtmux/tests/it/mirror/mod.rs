//! A terminal that a person and an agent share, with real shells.

mod access;
mod adopted;
mod commands;
mod exactness;
mod fallback;
mod fallback_line;
mod faults;
mod listed;
mod matrix;
mod mirror_fixture;
mod person;
mod rapid;
mod shell_start;

use mirror_fixture::{MirrorFixture, for_each_shell};
