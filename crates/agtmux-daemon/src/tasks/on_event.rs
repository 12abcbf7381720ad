//! A program of the user's for each event, one after the other. It never keeps the daemon waiting.

use std::process::Stdio;
use std::time::Duration;

use agtmux_core::task::TaskEvent;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// More than this many wait for nobody: the program does not keep up, or hangs.
const MOST_WAITING: usize = 1024;
/// One that takes longer is ended.
const DONE_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct OnEvent(Option<mpsc::Sender<TaskEvent>>);

impl OnEvent {
    /// The words are separated by spaces. No shell reads them.
    pub(super) fn start(command: &str) -> Self {
        let words: Vec<String> = command.split_whitespace().map(ToOwned::to_owned).collect();
        if words.is_empty() {
            return Self(None);
        }
        let (sender, mut events) = mpsc::channel::<TaskEvent>(MOST_WAITING);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if let Err(error) = run(&words, &event).await {
                    tracing::warn!(program = words[0], error, "tasks.on_event failed");
                }
            }
        });
        Self(Some(sender))
    }

    pub(super) fn tell(&self, event: &TaskEvent) {
        if let Some(sender) = &self.0
            && sender.try_send(event.clone()).is_err()
        {
            tracing::warn!(seq = event.seq, "tasks.on_event does not keep up; it is not told of this event");
        }
    }
}

async fn run(words: &[String], event: &TaskEvent) -> Result<(), String> {
    let mut line = serde_json::to_vec(event).map_err(|error| error.to_string())?;
    line.push(b'\n');
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let input = child.stdin.take();
    let whole = async {
        if let Some(mut input) = input {
            // One that does not want to know need not read it.
            let _ = input.write_all(&line).await;
        }
        child.wait().await
    };
    match timeout(DONE_WITHIN, whole).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("it did not end within {} s", DONE_WITHIN.as_secs())),
    }
}
