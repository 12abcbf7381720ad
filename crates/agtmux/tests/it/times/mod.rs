//! States stay right when the clock is set, when the machine sleeps, and in the first answer of a daemon.

mod clock;
mod first_look;
mod sleep;
