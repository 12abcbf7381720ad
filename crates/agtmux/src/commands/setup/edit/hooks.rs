//! Our hooks in a settings file of the shape that Claude Code invented and others took over:
//! `{"hooks": {"Event": [{"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}]}}`

use super::json::{self, Brackets, Node};
use super::{Fault, Hints, Splice, apply, content_start, draft, newline_of};
use crate::commands::setup::command::OurCommand;

/// What an agent wants its hooks to look like.
#[derive(Debug)]
pub(in crate::commands::setup) struct Format {
    pub(in crate::commands::setup) events: &'static [&'static str],
    pub(in crate::commands::setup) shape: Shape,
    /// In the agent's unit.
    pub(in crate::commands::setup) timeout: u32,
}

#[derive(Debug)]
pub(in crate::commands::setup) enum Shape {
    /// As Claude Code invented it.
    Grouped {
        matcher: Option<&'static str>,
        /// Whether a hook has a name that the agent shows.
        named: bool,
    },
    /// Copilot's, without groups, in a file of hooks only, which is ours: `{"version": 1, "hooks": {"event": [{"type":
    /// "command", "bash": "…"}]}}`
    Own { version: u32 },
}

const HOOKS: &str = "hooks";
const VERSION: &str = "version";
/// Where an entry has its command, in one shape and the other.
const COMMANDS: [&str; 2] = ["command", "bash"];

/// Puts an entry for each event in, beside what is there. The text must hold none of ours.
pub(in crate::commands::setup) fn install(
    text: &str,
    format: &Format,
    ours: &OurCommand,
) -> Result<(String, Hints), Fault> {
    let mut hints = Hints::default();
    let Some(root) = json::parse(text)? else { return Ok(into_blank(text, format, ours)) };
    let root_brackets = brackets(text, &root, "the settings are no object", true)?;
    if version_of(format).is_some_and(|version| is_alone(&version, text)) {
        hints.blank = Some(text.to_owned());
    }
    let Some((_, hooks)) = root.member(HOOKS) else {
        note_if_empty(text, &root_brackets, "", &mut hints);
        let layout = root_brackets.layout(text);
        let all: Vec<String> = format.events.iter().map(|event| member(event, format, ours)).collect();
        let item = draft::member(HOOKS, &layout.object(&all));
        return Ok((apply(text, root_brackets.append(text, &layout, &[item])), hints));
    };
    let hooks_brackets = brackets(text, hooks, "\"hooks\" is no object", true)?;
    let (mut splices, mut missing) = (Vec::new(), Vec::new());
    for event in format.events {
        match hooks.member(event) {
            Some((_, list)) => splices.extend(into_list(text, event, list, &group(event, format, ours), &mut hints)?),
            None => missing.push(member(event, format, ours)),
        }
    }
    if !missing.is_empty() {
        note_if_empty(text, &hooks_brackets, HOOKS, &mut hints);
        splices.extend(hooks_brackets.append(text, &hooks_brackets.layout(text), &missing));
    }
    Ok((apply(text, splices), hints))
}

fn into_blank(text: &str, format: &Format, ours: &OurCommand) -> (String, Hints) {
    let newline = newline_of(text);
    let all: Vec<String> = format.events.iter().map(|event| member(event, format, ours)).collect();
    let outer = json::Layout { newline, indent: Some("  ".into()), unit: "  ".into() };
    let members: Vec<String> =
        version_of(format).into_iter().chain([draft::member(HOOKS, &outer.object(&all))]).collect();
    let separator = outer.separator();
    let object = format!("{{{separator}{}{newline}}}{newline}", members.join(&format!(",{separator}")));
    let open_line = text.len() > content_start(text) && !text.ends_with('\n');
    let before = if open_line { newline } else { "" };
    (format!("{text}{before}{object}"), Hints { blank: Some(text.to_owned()), ..Hints::default() })
}

fn into_list(text: &str, event: &str, list: &Node, group: &str, hints: &mut Hints) -> Result<Vec<Splice>, Fault> {
    let list = brackets(text, list, &format!("\"hooks\".\"{event}\" is no list"), false)?;
    note_if_empty(text, &list, &path_of(event), hints);
    Ok(list.append(text, &list.layout(text), &[group.to_owned()]))
}

fn brackets(text: &str, node: &Node, why: &str, object: bool) -> Result<Brackets, Fault> {
    let fits = matches!((node, object), (Node::Object(..), true) | (Node::Array(..), false));
    node.brackets().filter(|_| fits).ok_or_else(|| Fault::at(text, node.range().start, why))
}

fn note_if_empty(text: &str, brackets: &Brackets, path: &str, hints: &mut Hints) {
    if brackets.items.is_empty() {
        hints.empty.insert(path.to_owned(), text[brackets.inside.clone()].to_owned());
    }
}

fn path_of(event: &str) -> String {
    format!("{HOOKS}/{event}")
}

fn member(event: &str, format: &Format, ours: &OurCommand) -> String {
    draft::member(event, &format!("[{}]", group(event, format, ours)))
}

fn group(event: &str, format: &Format, ours: &OurCommand) -> String {
    let (kind, command, timeout) =
        (draft::string("command"), draft::string(&ours.line(event)), format.timeout.to_string());
    let (matcher, named) = match format.shape {
        Shape::Grouped { matcher, named } => (matcher, named),
        Shape::Own { .. } => {
            return draft::object(&[("type", kind), (COMMANDS[1], command), ("timeoutSec", timeout)]);
        }
    };
    let mut entry = vec![("type", kind), (COMMANDS[0], command), ("timeout", timeout)];
    if named {
        entry.insert(0, ("name", draft::string("agtmux")));
    }
    let mut group = vec![(HOOKS, format!("[{}]", draft::object(&entry)))];
    if let Some(matcher) = matcher {
        group.insert(0, ("matcher", draft::string(matcher)));
    }
    draft::object(&group)
}

/// What a file of ours says besides hooks.
fn version_of(format: &Format) -> Option<String> {
    match format.shape {
        Shape::Own { version } => Some(draft::member(VERSION, &version.to_string())),
        Shape::Grouped { .. } => None,
    }
}

/// Every command of ours with its event, in the order of the text.
pub(in crate::commands::setup) fn installed(text: &str, ours: &OurCommand) -> Result<Vec<(String, String)>, Fault> {
    let root = json::parse(text)?;
    let found = root.iter().flat_map(|root| entries(root, ours));
    Ok(found.map(|entry| (entry.event, entry.command)).collect())
}

/// Whether it holds exactly what an installation would put in.
pub(in crate::commands::setup) fn is_current(text: &str, format: &Format, ours: &OurCommand) -> Result<bool, Fault> {
    let mut found = installed(text, ours)?;
    let mut wanted: Vec<_> = format.events.iter().map(|event| ((*event).to_owned(), ours.line(event))).collect();
    found.sort();
    wanted.sort();
    Ok(found == wanted)
}

/// Takes every entry of ours out, and the brackets that held nothing else.
pub(in crate::commands::setup) fn remove(
    text: &str,
    format: &Format,
    hints: &Hints,
    ours: &OurCommand,
) -> Result<String, Fault> {
    let mut left = text.to_owned();
    while let Some(root) = json::parse(&left)? {
        let Some(entry) = entries(&root, ours).into_iter().next() else { break };
        left = without(&left, &root, &entry, hints);
    }
    let only_version = version_of(format).is_some_and(|version| is_alone(&version, &left));
    Ok(if only_version && left != text { hints.blank.clone().unwrap_or_default() } else { left })
}

/// Whether there is nothing but this member.
fn is_alone(member: &str, text: &str) -> bool {
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| inner.trim() == member)
}

/// One command of ours and the way to it.
struct Entry {
    event: String,
    command: String,
    /// Positions: of the event among the hooks, of the group, of the entry in its group.
    at: (usize, usize, usize),
    /// Nothing else is in its group.
    alone: bool,
}

fn entries(root: &Node, ours: &OurCommand) -> Vec<Entry> {
    let mut found = Vec::new();
    let Some((_, Node::Object(events, _))) = root.member(HOOKS) else { return found };
    for (e, event) in events.iter().enumerate() {
        let Node::Array(groups, _) = &event.value else { continue };
        for (g, group) in groups.iter().enumerate() {
            // Where there are no groups, an entry is as good as one that is alone in its group.
            let list = match group.member(HOOKS) {
                Some((_, Node::Array(list, _))) => list.as_slice(),
                _ => std::slice::from_ref(group),
            };
            for (n, entry) in list.iter().enumerate() {
                let mut commands = COMMANDS.iter().filter_map(|name| entry.member(name)?.1.text());
                if let Some(command) = commands.find(|command| ours.is_one(command)) {
                    let (event, command) = (event.name.clone(), command.to_owned());
                    found.push(Entry { event, command, at: (e, g, n), alone: list.len() == 1 });
                }
            }
        }
    }
    found
}

/// From the outermost pair of brackets that holds nothing but this entry.
fn without(text: &str, root: &Node, entry: &Entry, hints: &Hints) -> String {
    let (e, g, n) = entry.at;
    let Some((h, hooks)) = root.member(HOOKS) else { return text.to_owned() };
    let Node::Object(events, _) = hooks else { return text.to_owned() };
    let Node::Array(groups, _) = &events[e].value else { return text.to_owned() };
    let path = path_of(&entry.event);
    // From the inside out: a pair of brackets, the item in it that goes, and whether it stays when it is empty.
    let list = groups[g].member(HOOKS).map(|(_, list)| list);
    let steps = [
        (list, n, None, false),
        (Some(&events[e].value), g, hints.empty.get(&path), hints.empty.contains_key(&path)),
        (Some(hooks), e, hints.empty.get(HOOKS), hints.empty.contains_key(HOOKS)),
        (Some(root), h, hints.empty.get(""), true),
    ];
    let first = usize::from(entry.alone);
    for (node, index, inner, stays) in steps.into_iter().skip(first) {
        let Some(brackets) = node.and_then(Node::brackets) else { continue };
        if brackets.items.len() > 1 || stays || first == 0 {
            let left = brackets.without(text, index, inner.map(String::as_str));
            return blank_again(text, left, &brackets, root, hints);
        }
    }
    text.to_owned()
}

/// A text that was blank before us is blank again once its last value has gone.
fn blank_again(text: &str, left: String, emptied: &Brackets, root: &Node, hints: &Hints) -> String {
    let is_root = emptied.inside.start == root.range().start + 1;
    match &hints.blank {
        Some(blank) if is_root && emptied.items.len() == 1 => {
            let untouched =
                text[..root.range().start].trim() == blank.trim() && text[root.range().end..].trim().is_empty();
            if untouched { blank.clone() } else { left }
        }
        _ => left,
    }
}
