//! Live screens: streams of the rows of a pane, for clients that show the pane. A pane without a viewer is not
//! captured. Nothing here attaches to a pane, resizes it or types into it.

mod capture;
mod frame;
mod spans;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::Generation;
use agtmux_core::refs::PaneRef;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::engine::EngineHandle;
use crate::observe::Discovery;
use crate::remote::TargetManager;
use capture::{PaneCapturer, ScreenContent};
use frame::ScreenFrame;
pub(crate) use frame::ViewedScreen;

/// A pane is captured at most once in this time, so at most ten times a second.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// How often a pane is captured if its host reports no output.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often a pane is captured without a report of output, to notice a new size or a moved cursor.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The screens that clients view at the moment. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Screens(Arc<ScreensInner>);

struct ScreensInner {
    engine: EngineHandle,
    discovery: Discovery,
    targets: TargetManager,
    viewed: Mutex<HashMap<ViewedPane, Weak<watch::Sender<ViewedScreen>>>>,
}

/// One program in one pane. Another program in the same pane is another screen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ViewedPane {
    key: PaneKey,
    generation: Generation,
    pid: u32,
}

impl Screens {
    pub(crate) fn new(engine: EngineHandle, discovery: Discovery, targets: TargetManager) -> Self {
        Self(Arc::new(ScreensInner { engine, discovery, targets, viewed: Mutex::default() }))
    }

    /// Follows the screen of a pane. All viewers of a pane share its captures.
    pub(crate) async fn view(&self, reference: PaneRef) -> ApiResult<watch::Receiver<ViewedScreen>> {
        let located = self.0.engine.locate(reference).await?;
        let pane = ViewedPane { key: located.key.clone(), generation: located.generation, pid: located.pane.pid };
        if let Some(screen) = self.lock_viewed().get(&pane).and_then(Weak::upgrade) {
            return Ok(screen.subscribe());
        }
        let capturer = PaneCapturer::new(&self.0.discovery, &self.0.targets, located)?;
        let mut viewed = self.lock_viewed();
        // Another viewer may have come first.
        if let Some(screen) = viewed.get(&pane).and_then(Weak::upgrade) {
            return Ok(screen.subscribe());
        }
        let (screen, viewer) = watch::channel(ViewedScreen::default());
        let screen = Arc::new(screen);
        viewed.insert(pane.clone(), Arc::downgrade(&screen));
        drop(viewed);
        tokio::spawn(self.clone().follow(pane, capturer, screen));
        Ok(viewer)
    }

    /// Captures the pane while it has viewers.
    async fn follow(self, pane: ViewedPane, mut capturer: PaneCapturer, screen: Arc<watch::Sender<ViewedScreen>>) {
        loop {
            let captured_at = Instant::now();
            match capturer.capture().await {
                Ok(content) => publish(&screen, &content),
                Err(error) => {
                    self.lock_viewed().remove(&pane);
                    screen.send_modify(|state| state.ended = Some(error.message));
                    return;
                }
            }
            let next = if capturer.reports_output() { RECHECK_INTERVAL } else { POLL_INTERVAL };
            tokio::select! {
                () = capturer.wait_for_output() => sleep_until(captured_at + MIN_INTERVAL).await,
                () = sleep(next) => {}
                () = screen.closed() => if self.forget_unviewed(&pane, &screen) { return },
            }
        }
    }

    /// Forgets a screen without viewers. Returns false if it has a viewer again.
    fn forget_unviewed(&self, pane: &ViewedPane, screen: &watch::Sender<ViewedScreen>) -> bool {
        // A new viewer subscribes under the same lock.
        let mut viewed = self.lock_viewed();
        let is_unviewed = screen.receiver_count() == 0;
        if is_unviewed {
            viewed.remove(pane);
        }
        is_unviewed
    }

    fn lock_viewed(&self) -> MutexGuard<'_, HashMap<ViewedPane, Weak<watch::Sender<ViewedScreen>>>> {
        self.0.viewed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn publish(screen: &watch::Sender<ViewedScreen>, content: &ScreenContent) {
    screen.send_if_modified(|state| {
        let next = ScreenFrame::after(state.frame.as_deref(), content);
        let is_new = next.is_some();
        if let Some(next) = next {
            state.frame = Some(Arc::new(next));
        }
        is_new
    });
}
