//! Everything that the interface shows and remembers. No IO and no clock.

mod agents;
mod filter;
mod grouping;
mod list;
mod look;
mod marks;
mod memory;
mod overlay;
mod picker;
mod reader;
pub(crate) mod shown;
mod typing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agtmux_client::FleetReplica;
use agtmux_core::state::State;
use jiff::Timestamp;

pub use agents::{AgentKey, AgentRow, KnownAgents};
pub use filter::{ReadScreens, RowFilter};
pub use grouping::RowGrouping;
pub use list::{AgentList, ListLine};
pub use look::{ColourRoles, TerminalColours, TerminalLook};
pub use marks::AgentMarks;
pub use memory::InterfaceMemory;
pub use overlay::{AgentTarget, ComposePurpose, ComposedText, MenuChoice, MenuItem, SnoozeEnd, TuiMenu, TuiOverlay};
pub use picker::{EntryLook, ListedTask, PickerChoice, PickerEntry, PickerKind, TuiPicker};
pub use reader::{ReaderSubject, TextReader};
pub use shown::{DrawnDialog, DrawnScreen, PanePreview};
pub use typing::{PaneTyping, TypedKey};

use crate::keymap::{KeyMap, TuiCommand};

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
    pub keys: KeyMap,
    /// Whether the interface was opened to answer the waiting agents.
    pub is_inbox: bool,
    pub fleet: FleetReplica,
    /// Whether the fleet has changed since the list took it over.
    pub is_fleet_newer: bool,
    pub known: KnownAgents,
    pub marks: AgentMarks,
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
    pub screens: ReadScreens,
    /// What the list knew of the tasks when their events were read last.
    pub tasks_read_at: Vec<(AgentKey, Option<State>, bool)>,
    /// The agents that are selected for one action on all of them.
    pub chosen: BTreeSet<AgentKey>,
    /// Where keys go, if they go to a pane.
    pub typing: Option<PaneTyping>,
    /// The options that are marked, for a dialog that takes several.
    pub marked: BTreeSet<u32>,
    /// The agent whose dialog is being answered.
    pub answering: Option<AgentKey>,
    /// Texts that were written but not sent.
    pub drafts: BTreeMap<AgentKey, String>,
    /// Texts that are being sent, the oldest first.
    pub texts_in_flight: BTreeMap<AgentKey, VecDeque<String>>,
    /// What is on the screen, which may be older than the model.
    pub drawn: DrawnScreen,
    /// When the person last pressed a key or a mouse button.
    pub last_input: Option<Timestamp>,
}

impl TuiModel {
    pub fn new(look: TerminalLook, waiting_only: bool) -> Self {
        Self {
            look,
            keys: KeyMap::default(),
            is_inbox: waiting_only,
            fleet: FleetReplica::default(),
            is_fleet_newer: false,
            known: KnownAgents::default(),
            marks: AgentMarks::default(),
            connection: FleetConnection::Connecting,
            list: AgentList::default(),
            grouping: if waiting_only { RowGrouping::None } else { RowGrouping::default() },
            filter: RowFilter { waiting_only, ..RowFilter::default() },
            overlay: None,
            notice: None,
            shows_details: false,
            detail_scroll: 0,
            preview: PanePreview::default(),
            screens: ReadScreens::default(),
            tasks_read_at: Vec::new(),
            chosen: BTreeSet::new(),
            typing: None,
            marked: BTreeSet::new(),
            answering: None,
            drafts: BTreeMap::new(),
            texts_in_flight: BTreeMap::new(),
            drawn: DrawnScreen::default(),
            last_input: None,
        }
    }

    /// How many agents wait, also those that the filter hides.
    pub fn waiting(&self) -> usize {
        self.list.all().iter().filter(|row| row.is_waiting()).count()
    }

    /// The key of a command, as the screen shows it.
    pub fn key(&self, command: TuiCommand) -> String {
        self.keys.label(command, self.look.unicode)
    }

    pub fn target(&self) -> Option<AgentTarget> {
        self.list.selected().map(target_of)
    }

    /// The agents that are selected for one action, or the agent under the cursor.
    pub fn targets(&self) -> Vec<AgentTarget> {
        if self.chosen.is_empty() {
            return self.target().into_iter().collect();
        }
        self.list.all().iter().filter(|row| self.chosen.contains(&row.key)).map(target_of).collect()
    }
}

pub(crate) fn target_of(row: &AgentRow) -> AgentTarget {
    let label = match &row.item.name {
        Some(name) => format!("{} {name}", row.agent_type()),
        None => format!("{} {}", row.agent_type(), row.place()),
    };
    AgentTarget { key: row.key.clone(), reference: row.reference(), label }
}
