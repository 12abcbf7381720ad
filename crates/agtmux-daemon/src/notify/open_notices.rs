//! Stores which notices were sent and still hold, so that the next daemon can withdraw them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_api::wire::Notice;
use agtmux_core::notify::OpenNotice;
use serde::{Deserialize, Serialize};

use super::channels::{DesktopId, DesktopIds};
use super::journal::Journal;

pub(super) struct OpenNoticeFile {
    desktop_ids: Arc<DesktopIds>,
    journal: Arc<Journal>,
    /// The document that was saved last, at first by the last daemon.
    saved: Mutex<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct OpenNoticeDocument {
    notices: Vec<OpenNotice>,
    texts: BTreeMap<String, Notice>,
    desktop: BTreeMap<String, DesktopId>,
}

impl OpenNoticeFile {
    /// Reads the file. A damaged file counts as empty.
    pub(super) fn open(path: &Path, journal: Arc<Journal>) -> (Self, Arc<DesktopIds>) {
        let saved = std::fs::read_to_string(path).unwrap_or_default();
        let desktop_ids = Arc::new(DesktopIds::new(parse(&saved).desktop));
        (Self { desktop_ids: desktop_ids.clone(), journal, saved: Mutex::new(saved) }, desktop_ids)
    }

    /// The saved notices and their texts.
    pub(super) fn restored(&self) -> (Vec<OpenNotice>, BTreeMap<String, Notice>) {
        let OpenNoticeDocument { notices, texts, .. } = parse(&self.saved());
        (notices, texts)
    }

    /// Waits until the desktop shows another notification.
    pub(super) async fn desktop_changed(&self) {
        self.desktop_ids.changed().await;
    }

    /// Saves the open notices, if they have changed.
    pub(super) fn save(&self, notices: Vec<OpenNotice>, texts: &BTreeMap<String, Notice>) {
        let mut desktop = self.desktop_ids.all();
        desktop.retain(|notice, _| notices.iter().any(|open| open.notice == *notice));
        let texts = texts.clone();
        let Ok(document) = serde_json::to_string(&OpenNoticeDocument { notices, texts, desktop }) else { return };
        let mut saved = self.saved();
        if *saved != document {
            saved.clone_from(&document);
            self.journal.save_open_notices(document);
        }
    }

    fn saved(&self) -> MutexGuard<'_, String> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(document: &str) -> OpenNoticeDocument {
    serde_json::from_str(document).unwrap_or_default()
}
