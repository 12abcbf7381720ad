//! Tasks under faults: a killed daemon, a failing store, hanging programs, wrong files, sessions of other owners. Also
//! the contract of the task helper, with awkward folder names and commands.

mod contract;
mod daemon_killed;
mod faulty_tmux;
mod files;
mod on_event;
mod scripted_agent;
mod session_owners;
mod store_failures;
mod unseen_exits;
mod waits;
