//! Captures the screen of one pane: with tmux, or through the agtmux on the pane's host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{OutputAction, OutputReport, ScreenCursor, StyledSpan};
use agtmux_core::{sanitize, text};
use agtmux_tmux::TmuxServer;
use tokio::sync::mpsc;

use super::spans::RowReader;
use crate::actions::tmux_error;
use crate::engine::LocatedPane;
use crate::observe::{Discovery, ObserverHint, WatchGuard};
use crate::remote::{self, RemotePane, TargetLink, TargetManager};

/// The most rows of a screen that agtmux on another host may report.
const MAX_REMOTE_ROWS: usize = 1000;

/// What a pane shows.
#[derive(Debug, Default)]
pub(super) struct ScreenContent {
    pub(super) rows: Vec<Vec<StyledSpan>>,
    pub(super) width: Option<u32>,
    pub(super) cursor: Option<ScreenCursor>,
    pub(super) full_screen: bool,
    pub(super) title: Option<String>,
}

pub(super) struct PaneCapturer {
    source: CaptureSource,
    /// The reports of output, and the watch that sends them. `None` if the pane's host reports no output.
    output: Option<(mpsc::UnboundedReceiver<ObserverHint>, WatchGuard)>,
}

enum CaptureSource {
    Tmux { tmux: TmuxServer, located: Box<LocatedPane> },
    Remote(Box<RemotePane>),
}

impl PaneCapturer {
    pub(super) fn new(discovery: &Discovery, targets: &TargetManager, located: LocatedPane) -> ApiResult<Self> {
        let target = located.key.server.target.clone();
        let link = targets.link(&target).filter(|_| !target.is_local()).filter(TargetLink::is_native);
        if let Some(link) = link {
            return Ok(Self { source: CaptureSource::Remote(Box::new(RemotePane { located, link })), output: None });
        }
        let access = discovery.server_access(&located.key.server);
        let access = access.ok_or_else(|| gone("the tmux server of the pane is not connected"))?;
        let tty = text::to_bytes(&located.pane.tty);
        let output = match target.is_local() && !tty.is_empty() {
            true => discovery.watch_output(Path::new(OsStr::from_bytes(&tty)), located.key.pane.0),
            false => None,
        };
        Ok(Self { source: CaptureSource::Tmux { tmux: access.tmux, located: Box::new(located) }, output })
    }

    pub(super) fn reports_output(&self) -> bool {
        self.output.is_some()
    }

    /// Returns when the pane has written. Never returns if the host reports no output.
    pub(super) async fn wait_for_output(&mut self) {
        if let Some((hints, _)) = &mut self.output
            && hints.recv().await.is_some()
        {
            // One capture shows the effect of all reports.
            while hints.try_recv().is_ok() {}
            return;
        }
        std::future::pending().await
    }

    /// Captures the screen. Fails if the pane is gone or runs another program.
    pub(super) async fn capture(&self) -> ApiResult<ScreenContent> {
        match &self.source {
            CaptureSource::Tmux { tmux, located } => capture_with_tmux(tmux, located).await,
            CaptureSource::Remote(pane) => {
                let action = OutputAction { ansi: true, again: true, ..OutputAction::default() };
                let report: OutputReport = pane.relay(HubRequest::ViewOutput(action)).await?;
                Ok(remote_content(remote::sanitize_output(report, MAX_REMOTE_ROWS, true)))
            }
        }
    }
}

async fn capture_with_tmux(tmux: &TmuxServer, located: &LocatedPane) -> ApiResult<ScreenContent> {
    let capture = tmux.screen(located.key.pane.0).await.map_err(tmux_error)?;
    let expected = (located.generation.pid, located.pane.pid);
    let Some(capture) = capture.filter(|capture| (capture.server_pid, capture.pane_pid) == expected) else {
        return Err(gone("the pane is gone, or another program was started in it"));
    };
    let screen = text::from_bytes(&capture.screen);
    let mut reader = RowReader::default();
    let rows = screen.strip_suffix('\n').unwrap_or(&screen).split('\n').take(capture.height as usize);
    Ok(ScreenContent {
        rows: rows.map(|row| reader.read(row)).collect(),
        width: Some(capture.width),
        cursor: capture.cursor.map(|(column, row)| ScreenCursor { row, column }),
        full_screen: capture.full_screen,
        title: shown_title(&text::from_bytes(&capture.title)),
    })
}

fn remote_content(report: OutputReport) -> ScreenContent {
    let mut reader = RowReader::default();
    ScreenContent {
        rows: report.lines.iter().map(|row| reader.read(row)).collect(),
        full_screen: report.full_screen,
        title: report.title.as_deref().and_then(shown_title),
        ..ScreenContent::default()
    }
}

fn shown_title(title: &str) -> Option<String> {
    Some(sanitize::for_terminal(title)).filter(|title| !title.is_empty())
}

fn gone(message: &str) -> ApiError {
    ApiError::new(ErrorCode::RuntimeStale, message).with_hint("agtmux list panes")
}
