//! Gives the terminal to another program until it ends.

use std::process::Stdio;

use jiff::Timestamp;
use tokio::process::Command;

use super::{Interface, TuiError, next_signal};
use crate::model::AgentTarget;
use crate::update::{self, ProgramCall, TuiMessage};

/// Runs `agtmux attach` on this terminal. Inside tmux it ends at once: the tmux client is switched to the pane.
pub(super) async fn attach(interface: &mut Interface, agent: &AgentTarget) -> Result<Result<(), String>, TuiError> {
    let mut command = Command::new(&interface.options.program);
    command.args(["attach", &agent.reference]);
    run_here(interface, command).await
}

/// Runs a program of the person.
pub(super) async fn custom(interface: &mut Interface, call: &ProgramCall) -> Result<Result<(), String>, TuiError> {
    let Some((program, arguments)) = call.arguments.split_first() else { return Ok(Ok(())) };
    let mut command = Command::new(program);
    command.args(arguments).envs(call.environment.iter().map(|(name, value)| (name, value)));
    run_here(interface, command).await
}

/// Runs a program on this terminal and takes the terminal back when it ends. The error is what the program printed on
/// stderr.
async fn run_here(interface: &mut Interface, mut command: Command) -> Result<Result<(), String>, TuiError> {
    interface.screen.leave();
    let child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn();
    let result = match child {
        Err(error) => {
            let program = command.as_std().get_program().to_string_lossy().into_owned();
            Err(format!("cannot start '{program}': {error}"))
        }
        Ok(child) => {
            let output = child.wait_with_output();
            tokio::pin!(output);
            let done = loop {
                tokio::select! {
                    done = &mut output => break done,
                    // The list stays up to date meanwhile.
                    signal = next_signal(&mut interface.stream) => {
                        update::update(&mut interface.model, TuiMessage::Stream(signal), Timestamp::now());
                    }
                }
            };
            match done {
                Ok(done) if done.status.success() => Ok(()),
                Ok(done) => Err(first_line(&String::from_utf8_lossy(&done.stderr), &done.status.to_string())),
                Err(error) => Err(error.to_string()),
            }
        }
    };
    interface.screen.come_back()?;
    Ok(result)
}

fn first_line(printed: &str, status: &str) -> String {
    let line = printed.lines().find(|line| !line.trim().is_empty()).unwrap_or(status);
    line.trim_start_matches("agtmux: ").to_owned()
}
