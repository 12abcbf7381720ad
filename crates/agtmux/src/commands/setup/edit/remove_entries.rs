//! How entries of ours are taken out of `{"hooks": {"Event": [entry]}}`, and what was made for them alone with them.

use std::ops::Range;

use super::json::{self, JsonNode};
use super::{EditError, EditHints, TextSplice, apply, indent_at, newline_of};

pub(super) const HOOKS: &str = "hooks";

/// One entry of ours and the way to it.
pub(super) struct InstalledEntry {
    pub(super) event: String,
    pub(super) command: String,
    /// Positions: of the event among the hooks, and of the item in its list.
    pub(super) at: (usize, usize),
    /// The position in a group that somebody else has a part in, if it is in one.
    pub(super) in_group: Option<usize>,
}

/// Where the hooks of an event are noted that held nothing.
pub(super) fn path_of(event: &str) -> String {
    format!("{HOOKS}/{event}")
}

/// Takes out what `find` finds, one after the other: each time everything is somewhere else.
pub(super) fn remove_all(
    text: &str,
    hints: &EditHints,
    find: impl Fn(&JsonNode) -> Vec<InstalledEntry>,
) -> Result<String, EditError> {
    let mut text = text.to_owned();
    while let Some(root) = json::parse(&text)? {
        let Some(found) = find(&root).into_iter().next() else { break };
        let Some(less) = remove_one(&text, &root, &found, hints)? else { break };
        text = less;
    }
    Ok(text)
}

fn remove_one(
    text: &str,
    root: &JsonNode,
    found: &InstalledEntry,
    hints: &EditHints,
) -> Result<Option<String>, EditError> {
    let (e, n) = found.at;
    let Some((h, hooks)) = root.member(HOOKS) else { return Ok(None) };
    let (JsonNode::Object(events, _), Some(hooks_pair), Some(root_pair)) = (hooks, hooks.brackets(), root.brackets())
    else {
        return Ok(None);
    };
    let list = &events[e].value;
    let Some(list_pair) = list.brackets() else { return Ok(None) };
    let remarks = json::comments(text)?;
    let group = match (list, found.in_group) {
        (JsonNode::Array(items, _), Some(i)) => {
            items[n].member(HOOKS).and_then(|(_, list)| Some((list.brackets()?, i)))
        }
        _ => None,
    };
    let item = group.as_ref().map_or(&list_pair.items[n], |(pair, i)| &pair.items[*i]);
    if remarks.iter().any(|remark| is_within(remark, item)) {
        return Ok(Some(lift_comments(text, item, &remarks)));
    }
    if let Some((pair, i)) = group {
        return Ok(Some(pair.without(text, i, None)));
    }
    let inner = |path: &str| hints.empty.get(path).map(String::as_str);
    // From the inside out, to the outermost pair of brackets that was there before us or holds something else.
    let steps = [
        (&list_pair, n, inner(&path_of(&found.event)), &hooks_pair.items[e]),
        (&hooks_pair, e, inner(HOOKS), &root_pair.items[h]),
    ];
    for (pair, index, inner, outer) in steps {
        let has_remarks = remarks.iter().any(|remark| is_within(remark, outer));
        if pair.items.len() > 1 || inner.is_some() || has_remarks {
            return Ok(Some(pair.without(text, index, inner)));
        }
    }
    Ok(Some(root_pair.without(text, h, inner(""))))
}

pub(super) fn is_within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// With the comments in this item before it: they are not ours.
fn lift_comments(text: &str, item: &Range<usize>, remarks: &[Range<usize>]) -> String {
    let line = format!("{}{}", newline_of(text), indent_at(text, item.start));
    let own = remarks.iter().filter(|remark| is_within(remark, item));
    let before: String = own.clone().map(|remark| format!("{}{line}", &text[remark.clone()])).collect();
    let removals = own.map(|remark| TextSplice::remove(remark.clone()));
    apply(text, std::iter::once(TextSplice::insert(item.start, before)).chain(removals).collect())
}

/// A text that was blank before us is blank again once nothing is left in it.
pub(super) fn restore_blank(text: String, hints: &EditHints) -> Result<String, EditError> {
    let (Some(blank), Some(root)) = (&hints.blank, json::parse(&text)?) else { return Ok(text) };
    let (before, after) = (&text[..root.range().start], &text[root.range().end..]);
    let is_empty = root.brackets().is_some_and(|brackets| text[brackets.inside].trim().is_empty());
    let untouched = before.trim() == blank.trim() && after.trim().is_empty();
    Ok(if is_empty && untouched { blank.clone() } else { text })
}
