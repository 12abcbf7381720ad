//! Runs child processes with a time limit and cleans them up.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::process;

/// A child process that is killed and reaped on drop.
#[derive(Debug)]
pub struct ChildGuard(Child);

impl ChildGuard {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        match command.spawn() {
            Ok(child) => Self(child),
            Err(error) => panic!("cannot start {command:?}: {error}"),
        }
    }
}

impl Deref for ChildGuard {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildGuard {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // `kill` and `wait` fail only if the child has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of a program. None if the program did not end in time and was killed.
pub(crate) fn output_within(command: &mut Command, deadline: Duration) -> Option<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => panic!("cannot start {command:?}: {error}"),
    };
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(deadline) {
        Ok(output) => output.ok(),
        Err(_) => {
            process::signal(pid, Signal::KILL);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_killed() {
        assert!(output_within(Command::new("sleep").arg("1000"), Duration::from_millis(20)).is_none());
        let output = output_within(Command::new("echo").arg("hi"), Duration::from_secs(20)).expect("ends");
        assert_eq!(output.stdout, b"hi\n");
    }
}
