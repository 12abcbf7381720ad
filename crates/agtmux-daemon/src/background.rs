//! Keeps the daemon's background tasks running. Starts a task again if it panics or ends. The health report names every
//! task that does not run.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use agtmux_api::wire::ComponentHealth;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The delay before the first restart of a task. It doubles with each further restart, up to the maximum.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// How many times in a row a failed task is started again. After that it stays stopped.
const MAX_RESTARTS: u32 = 8;
/// When a task has run for this long, its earlier failures no longer count.
const STABLE_TIME: Duration = Duration::from_secs(60);

/// The background tasks of the daemon, and the reports about its components.
#[derive(Clone)]
pub(crate) struct BackgroundTasks {
    components: Arc<Mutex<BTreeMap<String, ComponentHealth>>>,
    stopping: watch::Receiver<bool>,
}

impl BackgroundTasks {
    /// Creates an empty set of tasks. A task that ends after `stopping` has become true is not started again.
    pub(crate) fn new(stopping: watch::Receiver<bool>) -> Self {
        Self { components: Arc::default(), stopping }
    }

    /// Runs a task until the daemon stops. `start` creates the task. It is called again when the task panics or ends
    /// early.
    pub(crate) fn keep<F>(&self, name: impl Into<String>, start: impl FnMut() -> F + Send + 'static) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.keep_and_clean_up(name, start, || async {})
    }

    /// Like `keep`, but runs `clean_up` after each failure, even after the last one, when the task is not started
    /// again.
    pub(crate) fn keep_and_clean_up<F, C>(
        &self,
        name: impl Into<String>,
        mut start: impl FnMut() -> F + Send + 'static,
        mut clean_up: impl FnMut() -> C + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
        C: Future<Output = ()> + Send + 'static,
    {
        let (tasks, name) = (self.clone(), name.into());
        tokio::spawn(async move {
            let mut failures = 0_u32;
            loop {
                let (end, was_stable) = tasks.attempt(&name, async { start().await }).await;
                if tasks.is_stopping() {
                    return;
                }
                tasks.report_fault(&name, end.err().unwrap_or_else(|| "it ended early".into()));
                clean_up().await;
                failures = if was_stable { 1 } else { failures + 1 };
                if failures > MAX_RESTARTS {
                    let detail = format!("it failed {failures} times in a row and will not be restarted");
                    return tasks.add_to_fault(&name, &detail);
                }
                let delay = MIN_BACKOFF.saturating_mul(1 << (failures - 1)).min(MAX_BACKOFF);
                tasks.add_to_fault(&name, &format!("started again after {} s", delay.as_secs()));
                tasks.pause(delay).await;
            }
        })
    }

    /// Waits for `delay`, or until the daemon stops.
    pub(crate) async fn pause(&self, delay: Duration) {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = sleep(delay) => {}
            // `wait_for` also returns if the sender is gone, because the daemon has then stopped.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    /// Runs a task that may end by itself. If the task panics, the health report names the task.
    pub(crate) fn run(
        &self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let (tasks, name) = (self.clone(), name.into());
        tokio::spawn(async move {
            if let Err(panic) = catch_panic(task).await {
                tasks.report_fault(&name, panic);
            }
        })
    }

    /// Runs a task once. Returns an error if the task panicked, and in addition whether the task ran for `STABLE_TIME`.
    /// Once the task has run for that long, its entry in the health report is removed.
    pub(crate) async fn attempt(&self, name: &str, task: impl Future<Output = ()>) -> (Result<(), String>, bool) {
        let mut task = pin!(catch_panic(task));
        match timeout(STABLE_TIME, &mut task).await {
            Ok(end) => (end, false),
            Err(_) => {
                self.clear(name);
                (task.await, true)
            }
        }
    }

    /// Adds a component that does not work to the health report.
    pub(crate) fn report_fault(&self, name: &str, detail: String) {
        let component = ComponentHealth { status: "degraded".into(), detail };
        if self.components().insert(name.to_owned(), component.clone()).as_ref() != Some(&component) {
            tracing::error!(component = name, detail = component.detail, "a component of the daemon failed");
        }
    }

    /// Adds a note about a component that works to the health report.
    pub(crate) fn report_note(&self, name: &str, detail: String) {
        self.components().insert(name.to_owned(), ComponentHealth { status: "ok".into(), detail });
    }

    /// Removes a component from the health report.
    pub(crate) fn clear(&self, name: &str) {
        self.components().remove(name);
    }

    pub(crate) fn has_fault(&self, name: &str) -> bool {
        self.components().get(name).is_some_and(|component| component.status != "ok")
    }

    /// The components in the health report, by name.
    pub(crate) fn report(&self) -> BTreeMap<String, ComponentHealth> {
        self.components().clone()
    }

    fn add_to_fault(&self, name: &str, more: &str) {
        if let Some(component) = self.components().get_mut(name) {
            component.detail = format!("{}; {more}", component.detail);
        }
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn components(&self) -> MutexGuard<'_, BTreeMap<String, ComponentHealth>> {
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a future in the current tokio task. Returns an error if the future panics.
async fn catch_panic(task: impl Future<Output = ()>) -> Result<(), String> {
    let mut task = pin!(task);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
        Ok(progress) => progress.map(Ok),
        Err(panic) => Poll::Ready(Err(format!("it panicked: {}", panic_message(&*panic)))),
    })
    .await
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn tasks() -> (watch::Sender<bool>, BackgroundTasks) {
        let (stop, stopping) = watch::channel(false);
        (stop, BackgroundTasks::new(stopping))
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_named_until_it_is_stable() {
        let (_stop, tasks) = tasks();
        let starts = Arc::new(AtomicU32::new(0));
        let counted = starts.clone();
        let task = tasks.keep("spool", move || {
            let nth = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                let blocking = tokio::task::spawn_blocking(move || assert!(nth > 0, "no thread"));
                blocking.await.expect("the blocking task works");
                std::future::pending().await
            }
        });
        sleep(MIN_BACKOFF * 3).await;
        assert_eq!(starts.load(Ordering::Relaxed), 2);
        let report = tasks.report();
        assert!(tasks.has_fault("spool") && report["spool"].detail.contains("it panicked"), "{report:?}");
        sleep(STABLE_TIME).await;
        assert_eq!(tasks.report(), BTreeMap::new());
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_fails_again_and_again_is_given_up_and_stays_named() {
        let (_stop, tasks) = tasks();
        let starts = Arc::new(AtomicU32::new(0));
        let counted = starts.clone();
        let task = tasks.keep("router", move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async {}
        });
        task.await.expect("the supervisor itself does not panic");
        assert_eq!(starts.load(Ordering::Relaxed), MAX_RESTARTS + 1);
        let detail = &tasks.report()["router"].detail;
        assert!(detail.contains("it ended early") && detail.contains("not be restarted"), "{detail}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_while_the_daemon_stops_is_no_fault() {
        let (stop, tasks) = tasks();
        let stopping = tasks.stopping.clone();
        let task = tasks.keep("bridge", move || {
            let mut stopping = stopping.clone();
            async move {
                let _ = stopping.wait_for(|stop| *stop).await;
            }
        });
        stop.send(true).expect("a receiver exists");
        task.await.expect("it ends");
        assert_eq!(tasks.report(), BTreeMap::new());
    }

    #[tokio::test]
    async fn a_panic_of_a_task_that_runs_once_is_named() {
        let (_stop, tasks) = tasks();
        tasks.run("cleanup", async { panic!("broken") }).await.expect("caught");
        assert_eq!(tasks.report()["cleanup"].detail, "it panicked: broken");
    }
}
