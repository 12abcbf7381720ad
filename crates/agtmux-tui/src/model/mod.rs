//! Everything that the interface shows and remembers. No IO and no clock.

mod agents;
mod filter;
mod grouping;
mod list;
mod overlay;
pub(crate) mod shown;

use std::collections::{BTreeMap, BTreeSet};

use agtmux_client::FleetReplica;
use jiff::Timestamp;

pub use agents::{AgentKey, AgentRow, KnownAgents};
pub use filter::RowFilter;
pub use grouping::RowGrouping;
pub use list::{AgentList, ListLine};
pub use overlay::{AgentTarget, ComposePurpose, ComposedText, ReaderSubject, TextReader, TuiOverlay};
pub use shown::{DrawnDialog, DrawnScreen, PanePreview};

/// What the terminal can show, and where the home directory is.
#[derive(Debug, Clone, Default)]
pub struct TerminalLook {
    pub colour: bool,
    pub unicode: bool,
    pub home: Option<String>,
}

/// The event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetConnection {
    Connecting,
    Live,
    /// The stream broke and is being opened again.
    Interrupted(String),
    /// The stream has ended.
    Failed(TuiNotice),
}

/// A message to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuiNotice {
    pub text: String,
    pub hint: Option<String>,
    pub is_error: bool,
}

impl TuiNotice {
    pub fn info(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None, is_error: false }
    }

    pub fn error(text: impl Into<String>, hint: Option<String>) -> Self {
        Self { text: text.into(), hint, is_error: true }
    }
}

#[derive(Debug)]
pub struct TuiModel {
    pub look: TerminalLook,
    pub fleet: FleetReplica,
    pub known: KnownAgents,
    pub connection: FleetConnection,
    pub list: AgentList,
    pub grouping: RowGrouping,
    pub filter: RowFilter,
    pub overlay: Option<TuiOverlay>,
    pub notice: Option<TuiNotice>,
    /// Whether a terminal with room for one column shows the selected agent and not the list.
    pub shows_details: bool,
    /// How many lines the dialog or the preview is scrolled. For the preview, 0 is the newest line.
    pub detail_scroll: usize,
    pub preview: PanePreview,
    /// The options that are marked, for a dialog that takes several.
    pub marked: BTreeSet<u32>,
    /// The agent whose dialog is being answered.
    pub answering: Option<AgentKey>,
    /// Texts that were written but not sent.
    pub drafts: BTreeMap<AgentKey, String>,
    /// What is on the screen, which may be older than the model.
    pub drawn: DrawnScreen,
    /// When the person last pressed a key or a mouse button.
    pub last_input: Option<Timestamp>,
}

impl TuiModel {
    pub fn new(look: TerminalLook, waiting_only: bool) -> Self {
        Self {
            look,
            fleet: FleetReplica::default(),
            known: KnownAgents::default(),
            connection: FleetConnection::Connecting,
            list: AgentList::default(),
            grouping: if waiting_only { RowGrouping::None } else { RowGrouping::default() },
            filter: RowFilter { waiting_only, ..RowFilter::default() },
            overlay: None,
            notice: None,
            shows_details: false,
            detail_scroll: 0,
            preview: PanePreview::default(),
            marked: BTreeSet::new(),
            answering: None,
            drafts: BTreeMap::new(),
            drawn: DrawnScreen::default(),
            last_input: None,
        }
    }

    /// How many agents wait, also those that the filter hides.
    pub fn waiting(&self) -> usize {
        self.list.all().iter().filter(|row| row.is_waiting()).count()
    }

    pub fn target(&self) -> Option<AgentTarget> {
        let row = self.list.selected()?;
        let label = format!("{} {}", row.agent_type(), row.place());
        Some(AgentTarget { key: row.key.clone(), reference: row.reference(), label })
    }
}
