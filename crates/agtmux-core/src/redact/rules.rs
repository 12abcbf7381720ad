use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::{Captures, Match, Regex, RegexSet};

use super::table::{SECRET_PATTERNS, SecretPattern};
use super::{Extent, is_marked, literals, marker, secret_names};

static RULES: LazyLock<CompiledPatterns> =
    LazyLock::new(|| CompiledPatterns::compile().expect("a test compiles every row"));

pub(super) fn prepare() {
    LazyLock::force(&RULES);
}

struct CompiledPatterns {
    /// Finds in one scan which patterns match. Most texts match none.
    any: RegexSet,
    /// One regex per pattern. Each is compiled when `any` first reports that its pattern matches, because most are
    /// never needed.
    rows: Vec<(String, OnceLock<Regex>)>,
    markers: Regex,
}

/// A range of the text and the pattern that matched it. `row` is `None` if the range is already a redaction marker.
struct SecretMatch {
    range: Range<usize>,
    row: Option<&'static SecretPattern>,
}

/// Runs one redaction round. Returns `None` if no pattern matches.
///
/// All patterns match against the same text. If one pattern changed the text for the next, it could remove the name
/// that identifies another secret (`--token password = hunter2`).
pub(super) fn round(text: &str, extent: Extent) -> Option<String> {
    let mut found = RULES.find(text);
    if extent == Extent::Literals {
        found = found.into_iter().flat_map(|find| literal_matches(text, find)).collect();
    }
    found.retain(|find| !is_marked(&text[find.range.clone()]));
    if found.is_empty() {
        return None;
    }
    let markers = RULES.markers.find_iter(text).map(|marker| SecretMatch { range: marker.range(), row: None });
    found.extend(markers);
    let whole = join_overlapping(found);
    let wanted = whole.iter().filter(|find| !is_marked(&text[find.range.clone()]));
    replace(text, wanted)
}

/// The parts of a match that can be hidden without hiding shell code.
fn literal_matches(text: &str, find: SecretMatch) -> Vec<SecretMatch> {
    let SecretMatch { range, row } = find;
    let parts = literals::literal_parts(text, range, row.map_or("", |row| row.kind));
    parts.into_iter().map(|range| SecretMatch { range, row }).collect()
}

impl CompiledPatterns {
    fn compile() -> Result<Self, regex::Error> {
        let patterns: Vec<String> = SECRET_PATTERNS.iter().map(|row| secret_names::expand(row.pattern)).collect();
        let kinds: Vec<&str> = SECRET_PATTERNS.iter().map(|row| row.kind).collect();
        Ok(Self {
            any: RegexSet::new(&patterns)?,
            rows: patterns.into_iter().map(|pattern| (pattern, OnceLock::new())).collect(),
            markers: Regex::new(&format!(r"\[redacted:(?:{})\]", kinds.join("|")))?,
        })
    }

    fn row(&self, index: usize) -> &Regex {
        let (pattern, compiled) = &self.rows[index];
        compiled.get_or_init(|| Regex::new(pattern).unwrap_or_else(|e| unreachable!("the set compiled it: {e}")))
    }

    /// Returns matches in table order, so that more specific kinds come first.
    fn find(&self, text: &str) -> Vec<SecretMatch> {
        let matching = self.any.matches(text).into_iter();
        matching.flat_map(|index| find_row(self.row(index), &SECRET_PATTERNS[index], text)).collect()
    }
}

/// A match may contain the name of another secret (`password://{"password": …`), so the search continues inside a match
/// that is at most this long. After a longer match, the search continues behind the match, to avoid quadratic time.
const MAX_RESCAN_LEN: usize = 1024;

fn find_row(pattern: &Regex, row: &'static SecretPattern, text: &str) -> Vec<SecretMatch> {
    let mut finds = Vec::new();
    let mut from = 0;
    while let Some(found) = (from <= text.len()).then(|| pattern.captures_at(text, from)).flatten() {
        let Some(secret) = secret_part(&found) else { break };
        if row.kind != "prose" || !secret_names::is_ordinary_word(secret.as_str()) {
            finds.push(SecretMatch { range: secret.range(), row: Some(row) });
        }
        let inside = text[secret.start()..].chars().next().map_or(1, char::len_utf8);
        let end = found.get(0).map_or(secret.end(), |all| all.end());
        from = if secret.len() <= MAX_RESCAN_LEN { secret.start() + inside } else { end };
    }
    finds
}

/// The part of a match that is the secret: the first group that matched, or the whole match if no group matched.
fn secret_part<'t>(found: &Captures<'t>) -> Option<Match<'t>> {
    found.iter().skip(1).flatten().next().or_else(|| found.get(0))
}

/// Merges overlapping matches. The merged match gets the kind of the pattern that comes first in the table.
fn join_overlapping(found: Vec<SecretMatch>) -> Vec<SecretMatch> {
    let mut by_place: Vec<(usize, SecretMatch)> = found.into_iter().enumerate().collect();
    by_place.sort_by_key(|(rank, find)| (find.range.start, *rank));
    let mut joined: Vec<(usize, SecretMatch)> = Vec::with_capacity(by_place.len());
    for (rank, find) in by_place {
        match joined.last_mut() {
            Some((best, last)) if find.range.start < last.range.end => {
                last.range.end = last.range.end.max(find.range.end);
                if rank < *best {
                    (*best, last.row) = (rank, find.row);
                }
            }
            _ => joined.push((rank, find)),
        }
    }
    joined.into_iter().map(|(_, find)| find).collect()
}

fn replace<'f>(text: &str, wanted: impl Iterator<Item = &'f SecretMatch>) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for (find, row) in wanted.filter_map(|find| Some((find, find.row?))) {
        out.push_str(&text[copied..find.range.start]);
        out.push_str(&marker(row.kind));
        copied = find.range.end;
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Whether the pattern in this row of the table matches, regardless of the other patterns.
#[cfg(test)]
pub(super) fn finds(index: usize, text: &str) -> bool {
    !find_row(RULES.row(index), &SECRET_PATTERNS[index], text).is_empty()
}
