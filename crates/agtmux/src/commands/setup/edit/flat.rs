//! Our hooks in a file of the shape that Cursor has, without groups, and with a version that must be there:
//! `{"version": 1, "hooks": {"event": [{"command": "…"}]}}`

use super::json::{self, Brackets, Layout, Node};
use super::{Fault, Hints, apply, content_start, draft, newline_of};
use crate::commands::setup::command::OurCommand;

const HOOKS: &str = "hooks";
const VERSION: &str = "version";

type Events = &'static [&'static str];

/// Puts an entry for each event in, beside what is there. The text must hold none of ours.
pub(in crate::commands::setup) fn install(
    text: &str,
    events: Events,
    ours: &OurCommand,
) -> Result<(String, Hints), Fault> {
    let Some(root) = json::parse(text)? else { return Ok(into_blank(text, events, ours)) };
    let root_brackets = object(text, &root, "the file is no object")?;
    let mut hints = Hints::default();
    let (mut splices, mut members) = (Vec::new(), Vec::new());
    hints.version = root.member(VERSION).is_none();
    members.extend(hints.version.then(version));
    let layout = root_brackets.layout(text);
    match root.member(HOOKS) {
        None => members.push(hooks(events, &layout, ours)),
        Some((_, found)) => {
            let brackets = object(text, found, "\"hooks\" is no object")?;
            let mut missing = Vec::new();
            for event in events {
                let Some((_, list)) = found.member(event) else {
                    missing.push(member(event, ours));
                    continue;
                };
                let list = array(text, list, event)?;
                note_if_empty(text, &list, &path_of(event), &mut hints);
                splices.extend(list.append(text, &list.layout(text), &[entry(event, ours)]));
            }
            if !missing.is_empty() {
                note_if_empty(text, &brackets, HOOKS, &mut hints);
                splices.extend(brackets.append(text, &brackets.layout(text), &missing));
            }
        }
    }
    if !members.is_empty() {
        note_if_empty(text, &root_brackets, "", &mut hints);
        splices.extend(root_brackets.append(text, &layout, &members));
    }
    Ok((apply(text, splices), hints))
}

fn into_blank(text: &str, events: Events, ours: &OurCommand) -> (String, Hints) {
    let newline = newline_of(text);
    let layout = Layout { newline, indent: Some("  ".into()), unit: "  ".into() };
    let separator = layout.separator();
    let object = format!("{{{separator}{},{separator}{}{newline}}}{newline}", version(), hooks(events, &layout, ours));
    let open_line = text.len() > content_start(text) && !text.ends_with('\n');
    let before = if open_line { newline } else { "" };
    let hints = Hints { blank: Some(text.to_owned()), version: true, ..Hints::default() };
    (format!("{text}{before}{object}"), hints)
}

fn version() -> String {
    draft::member(VERSION, "1")
}

fn hooks(events: Events, layout: &Layout, ours: &OurCommand) -> String {
    let all: Vec<String> = events.iter().map(|event| member(event, ours)).collect();
    draft::member(HOOKS, &layout.object(&all))
}

fn member(event: &str, ours: &OurCommand) -> String {
    draft::member(event, &format!("[{}]", entry(event, ours)))
}

/// Without a time limit: what is written about its unit differs, and ours takes no time.
fn entry(event: &str, ours: &OurCommand) -> String {
    draft::object(&[("command", draft::string(&ours.line(event)))])
}

fn object(text: &str, node: &Node, why: &str) -> Result<Brackets, Fault> {
    let fits = matches!(node, Node::Object(..));
    node.brackets().filter(|_| fits).ok_or_else(|| Fault::at(text, node.range().start, why))
}

fn array(text: &str, node: &Node, event: &str) -> Result<Brackets, Fault> {
    let fits = matches!(node, Node::Array(..));
    let why = || Fault::at(text, node.range().start, format!("\"hooks\".\"{event}\" is no list"));
    node.brackets().filter(|_| fits).ok_or_else(why)
}

fn note_if_empty(text: &str, brackets: &Brackets, path: &str, hints: &mut Hints) {
    if brackets.items.is_empty() {
        hints.empty.insert(path.to_owned(), text[brackets.inside.clone()].to_owned());
    }
}

fn path_of(event: &str) -> String {
    format!("{HOOKS}/{event}")
}

/// Every command of ours with its event, in the order of the text.
pub(in crate::commands::setup) fn installed(text: &str, ours: &OurCommand) -> Result<Vec<(String, String)>, Fault> {
    let root = json::parse(text)?;
    let found = root.iter().flat_map(|root| entries(root, ours));
    Ok(found.map(|(_, event, command)| (event, command)).collect())
}

/// Whether it holds exactly what an installation would put in.
pub(in crate::commands::setup) fn is_current(text: &str, events: Events, ours: &OurCommand) -> Result<bool, Fault> {
    let mut found = installed(text, ours)?;
    let mut wanted: Vec<_> = events.iter().map(|event| ((*event).to_owned(), ours.line(event))).collect();
    found.sort();
    wanted.sort();
    Ok(found == wanted)
}

/// Takes every entry of ours out, the brackets that held nothing else, and the version if it is ours.
pub(in crate::commands::setup) fn remove(text: &str, hints: &Hints, ours: &OurCommand) -> Result<String, Fault> {
    let mut text = text.to_owned();
    loop {
        let Some(root) = json::parse(&text)? else { return Ok(text) };
        match entries(&root, ours).into_iter().next() {
            Some((place, event, _)) => text = without(&text, &root, place, &event, hints),
            None => break,
        }
    }
    if let Some(root) = json::parse(&text)?
        && hints.version
        // In a file that was blank before us it stays for as long as others need it.
        && (hints.blank.is_none() || root.brackets().is_some_and(|brackets| brackets.items.len() == 1))
        && let (Some((index, _)), Some(brackets)) = (root.member(VERSION), root.brackets())
    {
        text = brackets.without(&text, index, hints.empty.get("").map(String::as_str));
    }
    blank_again(text, hints)
}

/// Positions of an event among the hooks and of an entry in its list, the event's name, the command.
type Entry = ((usize, usize), String, String);

fn entries(root: &Node, ours: &OurCommand) -> Vec<Entry> {
    let mut found = Vec::new();
    let Some((_, Node::Object(events, _))) = root.member(HOOKS) else { return found };
    for (e, event) in events.iter().enumerate() {
        let Node::Array(list, _) = &event.value else { continue };
        for (n, entry) in list.iter().enumerate() {
            let command = entry.member("command").and_then(|(_, node)| node.text());
            if let Some(command) = command.filter(|command| ours.is_one(command)) {
                found.push(((e, n), event.name.clone(), command.to_owned()));
            }
        }
    }
    found
}

/// From the outermost pair of brackets that holds nothing but this entry.
fn without(text: &str, root: &Node, (e, n): (usize, usize), event: &str, hints: &Hints) -> String {
    let Some((h, hooks)) = root.member(HOOKS) else { return text.to_owned() };
    let Node::Object(events, _) = hooks else { return text.to_owned() };
    let path = path_of(event);
    // From the inside out: a pair of brackets, the item in it that goes, and where what it held before is noted.
    let steps = [(&events[e].value, n, path.as_str()), (hooks, e, HOOKS), (root, h, "")];
    for (node, index, path) in steps {
        let Some(brackets) = node.brackets() else { continue };
        let inner = hints.empty.get(path);
        if brackets.items.len() > 1 || inner.is_some() || path.is_empty() {
            return brackets.without(text, index, inner.map(String::as_str));
        }
    }
    text.to_owned()
}

/// A text that was blank before us is blank again once its last value has gone.
fn blank_again(text: String, hints: &Hints) -> Result<String, Fault> {
    let (Some(blank), Some(root)) = (&hints.blank, json::parse(&text)?) else { return Ok(text) };
    let (before, after) = (&text[..root.range().start], &text[root.range().end..]);
    let is_empty = root.brackets().is_some_and(|brackets| text[brackets.inside].trim().is_empty());
    let untouched = before.trim() == blank.trim() && after.trim().is_empty();
    Ok(if is_empty && untouched { blank.clone() } else { text })
}
