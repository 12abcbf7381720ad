//! Removes agtmux's entries from `{"hooks": {"Event": [entry]}}`, with the lists and objects that setup created for
//! them.

use std::ops::Range;

use super::json::{self, JsonNode};
use super::{EditError, EditHints, TextSplice, apply, indent_at, newline_of};

pub(super) const HOOKS: &str = "hooks";

/// One entry that setup wrote, and its position.
pub(super) struct InstalledEntry {
    pub(super) event: String,
    pub(super) command: String,
    /// The index of the event in the hooks, and the index of the item in its list.
    pub(super) at: (usize, usize),
    /// The index within a group that holds entries of the user too. `None` outside such a group.
    pub(super) in_group: Option<usize>,
}

/// The path of an event's list in `EditHints::empty`.
pub(super) fn path_of(event: &str) -> String {
    format!("{HOOKS}/{event}")
}

/// Removes the entries that `find` returns, one at a time, because each removal moves the others.
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
    let comments = json::comments(text)?;
    let group = match (list, found.in_group) {
        (JsonNode::Array(items, _), Some(i)) => {
            items[n].member(HOOKS).and_then(|(_, list)| Some((list.brackets()?, i)))
        }
        _ => None,
    };
    let item = group.as_ref().map_or(&list_pair.items[n], |(pair, i)| &pair.items[*i]);
    if comments.iter().any(|comment| is_within(comment, item)) {
        return Ok(Some(lift_comments(text, item, &comments)));
    }
    if let Some((pair, i)) = group {
        return Ok(Some(pair.without(text, i, None)));
    }
    let inner = |path: &str| hints.empty.get(path).map(String::as_str);
    // From the inside out, up to the first brackets that the user wrote or that hold other items.
    let steps = [
        (&list_pair, n, inner(&path_of(&found.event)), &hooks_pair.items[e]),
        (&hooks_pair, e, inner(HOOKS), &root_pair.items[h]),
    ];
    for (pair, index, inner, outer) in steps {
        let has_comments = comments.iter().any(|comment| is_within(comment, outer));
        if pair.items.len() > 1 || inner.is_some() || has_comments {
            return Ok(Some(pair.without(text, index, inner)));
        }
    }
    Ok(Some(root_pair.without(text, h, inner(""))))
}

pub(super) fn is_within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Moves the comments inside an item before it: they belong to the user.
fn lift_comments(text: &str, item: &Range<usize>, comments: &[Range<usize>]) -> String {
    let line = format!("{}{}", newline_of(text), indent_at(text, item.start));
    let own = comments.iter().filter(|comment| is_within(comment, item));
    let before: String = own.clone().map(|comment| format!("{}{line}", &text[comment.clone()])).collect();
    let removals = own.map(|comment| TextSplice::remove(comment.clone()));
    apply(text, std::iter::once(TextSplice::insert(item.start, before)).chain(removals).collect())
}

/// Restores a text that was blank originally, if nothing else is left in it.
pub(super) fn restore_blank(text: String, hints: &EditHints) -> Result<String, EditError> {
    let (Some(blank), Some(root)) = (&hints.blank, json::parse(&text)?) else { return Ok(text) };
    let (before, after) = (&text[..root.range().start], &text[root.range().end..]);
    let is_empty = root.brackets().is_some_and(|brackets| text[brackets.inside].trim().is_empty());
    let untouched = before.trim() == blank.trim() && after.trim().is_empty();
    Ok(if is_empty && untouched { blank.clone() } else { text })
}
