//! A model that shows the recorded fleet, and what a person does to it.

use std::time::Duration;

use agtmux_api::wire::{PaneItem, WatchEvent, WatchEventKind, WatchItem};
use agtmux_client::StreamSignal;
use agtmux_tui::model::{TerminalColours, TerminalLook, TuiModel};
use agtmux_tui::update::{TuiEffect, TuiMessage, TuiOutcome, drawn, sync, update};
use agtmux_tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use unicode_width::UnicodeWidthStr;

/// Panes as `agtmux watch --format jsonl --once --all` prints them.
const USUAL_FLEET: &str = include_str!("usual_fleet.jsonl");

/// The moment of the recording.
pub(crate) fn start() -> Timestamp {
    "2026-11-19T12:00:00Z".parse().expect("a time")
}

pub(crate) fn look() -> TerminalLook {
    TerminalLook {
        colours: TerminalColours::All,
        unicode: true,
        home: Some("/home/me".into()),
        ..TerminalLook::default()
    }
}

/// The interface with a clock that tests move.
pub(crate) struct ModelSeat {
    pub(crate) model: TuiModel,
    pub(crate) now: Timestamp,
    terminal: Terminal<TestBackend>,
}

impl ModelSeat {
    /// Shows the recorded fleet on a terminal of this size.
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let mut seat = Self::empty(width, height, look());
        seat.show_usual_fleet();
        seat
    }

    pub(crate) fn show_usual_fleet(&mut self) {
        let events = USUAL_FLEET.lines().map(|line| serde_json::from_str(line).expect("a recorded event"));
        self.receive(events);
        self.draw();
        // Long enough to have read what is on the screen.
        self.wait(Duration::from_secs(5));
    }

    pub(crate) fn empty(width: u16, height: u16, look: TerminalLook) -> Self {
        let terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        Self { model: TuiModel::new(look, false), now: start(), terminal }
    }

    pub(crate) fn wait(&mut self, time: Duration) -> Vec<TuiEffect> {
        self.now += time;
        self.tell(TuiMessage::Due)
    }

    pub(crate) fn tell(&mut self, message: TuiMessage) -> Vec<TuiEffect> {
        update(&mut self.model, message, self.now)
    }

    pub(crate) fn done(&mut self, outcome: TuiOutcome) -> Vec<TuiEffect> {
        self.tell(TuiMessage::Done(outcome))
    }

    /// Applies events of the stream, and the position after them.
    pub(crate) fn receive(&mut self, events: impl IntoIterator<Item = WatchEvent>) {
        for event in events {
            self.tell(TuiMessage::Stream(Ok(StreamSignal::Event(event))));
        }
        self.tell(TuiMessage::Stream(Ok(StreamSignal::CaughtUp)));
        sync(&mut self.model, self.now);
    }

    /// Changes the agent in this pane.
    pub(crate) fn change(&mut self, pane: u32, change: impl FnOnce(&mut PaneItem)) {
        let items = &self.model.fleet.items().panes;
        let item = items.values().find(|item| item.identity.pane_id.0 == pane).expect("a recorded pane");
        let mut item = (**item).clone();
        change(&mut item);
        let event = WatchEvent::of_item(WatchEventKind::Upsert, WatchItem::Pane(Box::new(item)), 200, self.now);
        self.receive([event]);
    }

    pub(crate) fn key(&mut self, code: KeyCode) -> Vec<TuiEffect> {
        self.tell(TuiMessage::Key(KeyEvent::from(code)))
    }

    pub(crate) fn press(&mut self, key: char) -> Vec<TuiEffect> {
        self.key(KeyCode::Char(key))
    }

    pub(crate) fn write(&mut self, text: &str) {
        text.chars().for_each(|c| drop(self.press(c)));
    }

    pub(crate) fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Vec<TuiEffect> {
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        self.tell(TuiMessage::Mouse(event))
    }

    pub(crate) fn click(&mut self, column: u16, row: u16) -> Vec<TuiEffect> {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row)
    }

    /// Draws, as the program does after each message.
    pub(crate) fn draw(&mut self) -> Vec<TuiEffect> {
        let mut screen = None;
        let frame = self.terminal.draw(|frame| screen = Some(view::render(frame, &self.model, self.now)));
        frame.expect("a test terminal takes every frame");
        drawn(&mut self.model, screen.expect("one frame was drawn"), self.now)
    }

    /// What is on the screen after drawing.
    pub(crate) fn screen(&mut self) -> String {
        // A test terminal keeps the second half of a wide character that is overwritten. A new one has none.
        let size = self.terminal.backend().buffer().area;
        self.terminal = Terminal::new(TestBackend::new(size.width, size.height)).expect("a terminal");
        self.draw();
        let rows = self.cells().content.chunks(usize::from(size.width)).map(text_of);
        rows.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn cells(&self) -> &ratatui::buffer::Buffer {
        self.terminal.backend().buffer()
    }

    /// The pane of the selected agent.
    pub(crate) fn selected(&self) -> u32 {
        self.model.list.selected().map(|row| row.item.identity.pane_id.0).expect("an agent is selected")
    }

    /// The panes of the rows, from top to bottom.
    pub(crate) fn rows(&self) -> Vec<u32> {
        self.model.list.rows().map(|row| row.item.identity.pane_id.0).collect()
    }

    /// Selects the agent in this pane and looks at it. Returns what the program must do then.
    pub(crate) fn select(&mut self, pane: u32) -> Vec<TuiEffect> {
        let is_there =
            |line: &agtmux_tui::model::ListLine| line.agent().is_some_and(|row| row.item.identity.pane_id.0 == pane);
        let line = self.model.list.lines().iter().position(is_there).expect("a row of the pane");
        assert!(self.model.list.select_at(line));
        self.draw();
        self.wait(Duration::from_secs(5))
    }

    pub(crate) fn notice(&self) -> &str {
        self.model.notice.as_ref().map_or("", |notice| &notice.text)
    }
}

/// The text of a row of cells. The cell after a wide character is a part of it.
fn text_of(row: &[Cell]) -> String {
    let (mut text, mut skipped) = (String::new(), 0);
    for cell in row {
        if skipped > 0 {
            skipped -= 1;
            continue;
        }
        skipped = cell.symbol().width().saturating_sub(1);
        text.push_str(cell.symbol());
    }
    text.trim_end().to_owned()
}
