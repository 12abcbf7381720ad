//! The screen of a pane with the version in which each row last changed. From it, every viewer gets the rows that
//! changed since its own last update. A slow viewer skips versions, and the daemon stores nothing for it.

use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ScreenCursor, ScreenRowUpdate, ScreenUpdate, StyledSpan};

use super::capture::ScreenContent;

/// What viewers of a pane see.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewedScreen {
    /// `None` before the first capture.
    pub(crate) frame: Option<Arc<ScreenFrame>>,
    /// Why the screen ended. `None` while the pane exists.
    pub(crate) ended: Option<String>,
}

#[derive(Debug)]
pub(crate) struct ScreenFrame {
    pub(crate) version: u64,
    rows: Vec<FrameRow>,
    width: Option<u32>,
    cursor: Option<ScreenCursor>,
    full_screen: bool,
    title: Option<String>,
}

#[derive(Debug, Clone)]
struct FrameRow {
    changed_in: u64,
    spans: Arc<Vec<StyledSpan>>,
}

impl ScreenFrame {
    /// The frame after a new capture. `None` if the capture shows the same as the previous frame.
    pub(super) fn after(previous: Option<&Self>, content: &ScreenContent) -> Option<Self> {
        let version = previous.map_or(1, |previous| previous.version + 1);
        let row = |(at, spans): (usize, &Vec<StyledSpan>)| {
            let unchanged = previous.and_then(|previous| previous.rows.get(at)).filter(|row| *row.spans == *spans);
            unchanged.cloned().unwrap_or_else(|| FrameRow { changed_in: version, spans: Arc::new(spans.clone()) })
        };
        let next = Self {
            version,
            rows: content.rows.iter().enumerate().map(row).collect(),
            width: content.width,
            cursor: content.cursor,
            full_screen: content.full_screen,
            title: content.title.clone(),
        };
        previous.is_none_or(|previous| previous.differs(&next)).then_some(next)
    }

    fn differs(&self, next: &Self) -> bool {
        let of = |frame: &Self| (frame.rows.len(), frame.width, frame.cursor, frame.full_screen);
        of(self) != of(next) || self.title != next.title || next.rows.iter().any(|row| row.changed_in == next.version)
    }

    /// The rows that changed after the version that the viewer has. `None`: the viewer has nothing yet.
    pub(crate) fn update_since(&self, seen: Option<u64>) -> ScreenUpdate {
        let changed = self.rows.iter().zip(0..).filter(|(row, _)| seen.is_none_or(|seen| row.changed_in > seen));
        let update = |(row, at): (&FrameRow, u32)| ScreenRowUpdate { row: at, spans: row.spans.as_ref().clone() };
        ScreenUpdate {
            schema_version: SCHEMA_VERSION,
            full: seen.is_none(),
            width: self.width,
            height: u32::try_from(self.rows.len()).unwrap_or(u32::MAX),
            cursor: self.cursor,
            full_screen: self.full_screen,
            title: self.title.clone(),
            rows: changed.map(update).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(rows: &[&str]) -> ScreenContent {
        let row = |text: &&str| vec![StyledSpan { text: (*text).into(), ..StyledSpan::default() }];
        ScreenContent { rows: rows.iter().map(row).collect(), ..ScreenContent::default() }
    }

    fn changed(frame: &ScreenFrame, seen: Option<u64>) -> Vec<(u32, String)> {
        let rows = frame.update_since(seen).rows.into_iter();
        rows.map(|row| (row.row, row.spans.into_iter().map(|span| span.text).collect())).collect()
    }

    #[test]
    fn a_viewer_gets_the_rows_that_changed_since_its_last_update() {
        let first = ScreenFrame::after(None, &content(&["a", "b", "c"])).expect("the first frame");
        assert_eq!(changed(&first, None).len(), 3);
        assert!(ScreenFrame::after(Some(&first), &content(&["a", "b", "c"])).is_none());
        let second = ScreenFrame::after(Some(&first), &content(&["a", "x", "c"])).expect("a change");
        let third = ScreenFrame::after(Some(&second), &content(&["a", "x", "y"])).expect("a change");
        assert_eq!(changed(&third, Some(second.version)), [(2, "y".to_owned())]);
        assert_eq!(changed(&third, Some(first.version)), [(1, "x".to_owned()), (2, "y".to_owned())]);
    }

    #[test]
    fn a_smaller_screen_is_an_update_without_rows() {
        let first = ScreenFrame::after(None, &content(&["a", "b"])).expect("the first frame");
        let second = ScreenFrame::after(Some(&first), &content(&["a"])).expect("a change");
        let update = second.update_since(Some(first.version));
        assert_eq!((update.height, update.rows.len(), update.full), (1, 0, false));
    }
}
