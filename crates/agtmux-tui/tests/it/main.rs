//! The interface without a terminal: a recorded fleet, key presses and the drawn screens.

mod answers;
mod fixture;
mod looking;
mod marks;
mod pages;
mod rows;
mod screens;
mod several;
mod texts;
mod typing;
