use std::process::Stdio;

use jiff::Timestamp;
use tokio::process::Command;

use super::{Interface, TuiError, next_signal};
use crate::model::AgentTarget;
use crate::update::{self, TuiMessage};

/// Runs `agtmux attach` on this terminal and takes the terminal back when it ends. Inside tmux that is at once: the
/// tmux client is switched to the pane. The error is what the command printed.
pub(super) async fn attach(interface: &mut Interface, agent: &AgentTarget) -> Result<Result<(), String>, TuiError> {
    interface.screen.leave();
    let mut command = Command::new(&interface.options.program);
    command.args(["attach", &agent.reference]).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn();
    let result = match child {
        Err(error) => Err(format!("cannot start '{}': {error}", interface.options.program.display())),
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
                Ok(done) => Err(first_line(&String::from_utf8_lossy(&done.stderr))),
                Err(error) => Err(error.to_string()),
            }
        }
    };
    interface.screen.come_back()?;
    Ok(result)
}

fn first_line(printed: &str) -> String {
    let line = printed.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a message");
    line.trim_start_matches("agtmux: ").to_owned()
}
