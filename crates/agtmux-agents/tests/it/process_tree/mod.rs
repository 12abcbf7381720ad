//! Parses process trees written as text.

use std::iter::successors;
use std::path::Path;

use agtmux_agents::{AgentRegistry, ProcessFacts};

#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessTree {
    rows: Vec<TreeProcess>,
    pub(crate) foreground: Option<u32>,
    /// The agent that must be found: its type, its pid and whether it is stopped.
    pub(crate) expected: Option<(String, u32, bool)>,
}

#[derive(Debug, Clone, Default)]
struct TreeProcess {
    depth: usize,
    pid: u32,
    ppid: u32,
    pgrp: u32,
    /// The terminal of this process, named by the pid of the process that opened it. Every terminal has its own
    /// foreground group.
    terminal: u32,
    tpgid: Option<u32>,
    stopped: bool,
    zombie: bool,
    name: Vec<u8>,
    argv: Vec<Vec<u8>>,
    exe: Option<String>,
}

impl ProcessTree {
    pub(crate) fn parse(text: &str) -> Self {
        let mut tree = Self::default();
        for line in text.lines() {
            tree.add(line);
        }
        tree.foreground = tree.rows.first().and_then(|root| root.tpgid);
        tree
    }

    fn add(&mut self, line: &str) {
        let depth = line.len() - line.trim_start().len();
        let pid = 100 + u32::try_from(self.rows.len()).expect("the tree is small");
        let parent = self.rows.iter().rev().find(|row| row.depth < depth).cloned();
        let mut row = match parent {
            Some(p) => TreeProcess {
                ppid: p.pid,
                pgrp: p.pgrp,
                terminal: p.terminal,
                tpgid: p.tpgid,
                ..TreeProcess::default()
            },
            None => TreeProcess { ppid: 1, pgrp: pid, terminal: pid, tpgid: Some(pid), ..TreeProcess::default() },
        };
        row.depth = depth;
        row.pid = pid;
        let (command, expected) = match line.trim_start().split_once("=> ") {
            Some((command, agent)) => (command, Some(agent)),
            None => (line.trim_start(), None),
        };
        let words = command.strip_suffix(' ').unwrap_or(command).split(' ');
        for word in words {
            self.read_word(&mut row, &word.replace('~', " "));
        }
        self.expected = expected.map(|agent| (agent.into(), pid, row.stopped)).or(self.expected.take());
        self.rows.push(row);
    }

    fn read_word(&mut self, row: &mut TreeProcess, word: &str) {
        match word.split_once(':').unwrap_or((word, "")) {
            _ if !row.argv.is_empty() => row.argv.push(word.into()),
            ("fg", "") => self.take_terminal(row),
            ("bg", "") => row.pgrp = row.pid,
            ("pty", "") => {
                row.terminal = row.pid;
                self.take_terminal(row);
            }
            ("stopped", "") => row.stopped = true,
            ("zombie", "") => row.zombie = true,
            ("exe", path) => row.exe = Some(path.into()),
            ("comm", name) => row.name = name.into(),
            _ => row.argv.push(word.into()),
        }
    }

    fn take_terminal(&mut self, row: &mut TreeProcess) {
        row.pgrp = row.pid;
        row.tpgid = Some(row.pid);
        for other in self.rows.iter_mut().filter(|other| other.terminal == row.terminal) {
            other.tpgid = Some(row.pid);
        }
    }

    pub(crate) fn without_terminals(mut self) -> Self {
        self.rows.iter_mut().for_each(|row| row.tpgid = None);
        self
    }

    /// The pid of the outermost process of the agent that runs the last process. `same_input` says whether the
    /// processes share their standard input. It is None if that is unknown.
    pub(crate) fn own(&self, registry: &AgentRegistry, same_input: Option<bool>) -> Option<u32> {
        let parent = |row: &&TreeProcess| self.rows.iter().find(|other| other.pid == row.ppid);
        let line: Vec<ProcessFacts<'_>> = successors(self.rows.last(), parent).map(TreeProcess::facts).collect();
        let own = registry.count_own_processes(&line, |_, _| same_input);
        (own < line.len()).then(|| line[own - 1].pid)
    }

    pub(crate) fn identify(&self, registry: &AgentRegistry) -> Option<(String, u32, bool)> {
        let facts: Vec<ProcessFacts<'_>> = self.rows.iter().map(TreeProcess::facts).collect();
        let found = registry.identify(&facts, self.foreground)?;
        Some((found.agent_type.to_string(), found.pid, found.suspended))
    }
}

impl TreeProcess {
    fn facts(&self) -> ProcessFacts<'_> {
        ProcessFacts {
            pid: self.pid,
            ppid: self.ppid,
            pgrp: self.pgrp,
            tpgid: self.tpgid,
            stopped: self.stopped,
            zombie: self.zombie,
            name: &self.name,
            argv: &self.argv,
            exe: self.exe.as_deref().map(Path::new),
        }
    }
}
