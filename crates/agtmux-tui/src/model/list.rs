//! The list of agents: groups, order and selection. Rows keep their places until `arrange` is called.

use std::collections::BTreeMap;

use super::agents::{AgentKey, AgentRow};
use super::filter::{ReadScreens, RowFilter};
use super::grouping::RowGrouping;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListLine {
    Group {
        title: String,
        agents: usize,
        /// The directory of all agents of the group, if it is the same.
        directory: Option<String>,
    },
    Agent(AgentRow),
}

impl ListLine {
    pub fn agent(&self) -> Option<&AgentRow> {
        match self {
            Self::Agent(row) => Some(row),
            Self::Group { .. } => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct AgentList {
    /// All agents, in attention order, also those that the filter hides.
    all: Vec<AgentRow>,
    lines: Vec<ListLine>,
    selected: Option<RowSelection>,
    /// The name of the agent to select once it is listed.
    awaited: Option<String>,
    /// Whether the shown order is older than the agents.
    pub is_stale: bool,
}

/// The selected agent, and the line from which another one is selected when that agent disappears.
#[derive(Debug, Clone)]
struct RowSelection {
    row: AgentRow,
    line: usize,
}

impl AgentList {
    pub fn lines(&self) -> &[ListLine] {
        &self.lines
    }

    pub fn all(&self) -> &[AgentRow] {
        &self.all
    }

    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &AgentRow> {
        self.lines.iter().filter_map(ListLine::agent)
    }

    pub fn selected(&self) -> Option<&AgentRow> {
        self.lines.get(self.selected_line()?)?.agent()
    }

    pub fn selected_line(&self) -> Option<usize> {
        self.selected.as_ref().map(|selection| selection.line)
    }

    /// Takes the agents as they are now. Shown rows keep their places; an agent that is gone is shown as ended.
    pub fn receive(&mut self, all: Vec<AgentRow>) {
        let known: BTreeMap<&AgentKey, &AgentRow> = all.iter().map(|row| (&row.key, row)).collect();
        for line in &mut self.lines {
            let ListLine::Agent(row) = line else { continue };
            match known.get(&row.key) {
                Some(now) => *row = (*now).clone(),
                None => row.has_ended = true,
            }
        }
        self.all = all;
        self.is_stale = true;
    }

    /// Orders and groups the rows again. The selection stays with its agent.
    pub fn arrange(&mut self, grouping: RowGrouping, filter: &RowFilter, screens: &ReadScreens) {
        let rows = self.all.iter().filter(|row| filter.accepts(row, screens));
        let mut groups: Vec<(String, Vec<&AgentRow>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for row in rows {
            let title = grouping.title(row);
            let place = *places.entry(title.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, members)) => members.push(row),
                None => groups.push((title, vec![row])),
            }
        }
        self.lines.clear();
        for (title, members) in groups {
            if grouping != RowGrouping::None {
                let directory = common_directory(&members);
                self.lines.push(ListLine::Group { title, agents: members.len(), directory });
            }
            self.lines.extend(members.into_iter().map(|row| ListLine::Agent(row.clone())));
        }
        self.is_stale = false;
        self.keep_selection();
    }

    /// Finds the selected agent again: the same agent, else the agent in its pane, else the nearest row.
    fn keep_selection(&mut self) {
        let find =
            |wanted: &dyn Fn(&AgentRow) -> bool| self.lines.iter().position(|line| line.agent().is_some_and(wanted));
        let awaited = self.awaited.take().and_then(|name| find(&|row| row.key.name() == name));
        let line = match &self.selected {
            _ if awaited.is_some() => awaited,
            None => find(&|_| true),
            Some(RowSelection { row: old, line }) => find(&|row| row.key == old.key)
                .or_else(|| find(&|row| row.item.identity == old.item.identity))
                .or_else(|| self.nearest(*line)),
        };
        self.select_line(line);
    }

    /// Selects this agent when the list is arranged next.
    pub fn select_later(&mut self, name: Option<String>) {
        self.awaited = name;
    }

    fn nearest(&self, line: usize) -> Option<usize> {
        let is_agent = |line: &usize| self.lines.get(*line).is_some_and(|line| line.agent().is_some());
        (line..self.lines.len()).find(is_agent).or_else(|| (0..line).rev().find(is_agent))
    }

    fn select_line(&mut self, line: Option<usize>) {
        let selected = line.and_then(|line| Some((line, self.lines.get(line)?.agent()?)));
        self.selected = selected.map(|(line, row)| RowSelection { row: row.clone(), line });
    }

    /// Selects the agent on this line. Returns false if there is none.
    pub fn select_at(&mut self, line: usize) -> bool {
        let has_agent = self.lines.get(line).is_some_and(|line| line.agent().is_some());
        if has_agent {
            self.select_line(Some(line));
        }
        has_agent
    }

    /// Selects the next agent that `wanted` accepts, and continues at the other end if `wraps`.
    pub fn step(&mut self, forward: bool, wraps: bool, wanted: impl Fn(&AgentRow) -> bool) -> bool {
        let (count, current) = (self.lines.len(), self.selected_line().unwrap_or(0));
        let distances = 1..=count;
        let lines = distances.filter_map(|distance| match (forward, wraps) {
            (true, true) => Some((current + distance) % count),
            (false, true) => Some((current + count - distance) % count),
            (true, false) => Some(current + distance).filter(|line| *line < count),
            (false, false) => current.checked_sub(distance),
        });
        let accepted = |line: &usize| self.lines[*line].agent().is_some_and(&wanted);
        let found = lines.into_iter().find(accepted);
        found.is_some_and(|line| self.select_at(line))
    }

    pub fn select_end(&mut self, last: bool) {
        let mut agents = (0..self.lines.len()).filter(|line| self.lines[*line].agent().is_some());
        let line = if last { agents.next_back() } else { agents.next() };
        self.select_line(line);
    }
}

fn common_directory(rows: &[&AgentRow]) -> Option<String> {
    let first = rows.first()?.item.cwd.as_ref()?;
    rows.iter().all(|row| row.item.cwd.as_ref() == Some(first)).then(|| first.clone())
}
