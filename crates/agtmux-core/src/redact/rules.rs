use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::{Captures, Match, Regex, RegexSet};

use super::table::{SECRET_PATTERNS, SecretPattern};
use super::{is_marked, marker, secret_names};

static RULES: LazyLock<CompiledPatterns> =
    LazyLock::new(|| CompiledPatterns::compile().expect("a test compiles every row"));

pub(super) fn prepare() {
    LazyLock::force(&RULES);
}

struct CompiledPatterns {
    /// All rows in one scan: most texts match none.
    any: RegexSet,
    /// One for each row, compiled when its row is first found: most never are.
    rows: Vec<(String, OnceLock<Regex>)>,
    markers: Regex,
}

/// A place that has to go, and the row that says so. No row means that it is a marker already.
struct SecretMatch {
    range: Range<usize>,
    row: Option<&'static SecretPattern>,
}

/// The text with what all rows find taken out. None if they find nothing.
///
/// All rows look at the same text: would one change it for the next, it could take away the name that gives another
/// secret away (`--token password = hunter2`).
pub(super) fn round(text: &str) -> Option<String> {
    let mut found = RULES.find(text);
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

    /// Row by row, so that a find of a more telling kind comes before others.
    fn find(&self, text: &str) -> Vec<SecretMatch> {
        let matching = self.any.matches(text).into_iter();
        matching.flat_map(|index| find_row(self.row(index), &SECRET_PATTERNS[index], text)).collect()
    }
}

/// What was taken for a secret may hold the name of another (`password://{"password": …`), so the search goes on inside
/// it. Not in a long one: that would take time in proportion to its square.
const MAX_RESCAN_LEN: usize = 1024;

fn find_row(pattern: &Regex, row: &'static SecretPattern, text: &str) -> Vec<SecretMatch> {
    let mut finds = Vec::new();
    let mut from = 0;
    while let Some(found) = (from <= text.len()).then(|| pattern.captures_at(text, from)).flatten() {
        let Some(secret) = secret_part(&found) else { break };
        finds.push(SecretMatch { range: secret.range(), row: Some(row) });
        let inside = text[secret.start()..].chars().next().map_or(1, char::len_utf8);
        let end = found.get(0).map_or(secret.end(), |all| all.end());
        from = if secret.len() <= MAX_RESCAN_LEN { secret.start() + inside } else { end };
    }
    finds
}

/// The group that took part, or all of it in a row without groups.
fn secret_part<'t>(found: &Captures<'t>) -> Option<Match<'t>> {
    found.iter().skip(1).flatten().next().or_else(|| found.get(0))
}

/// Where finds overlap, all of it goes, by the name of the one that came first.
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

/// Whether a row finds something by itself.
#[cfg(test)]
pub(super) fn finds(index: usize, text: &str) -> bool {
    !find_row(RULES.row(index), &SECRET_PATTERNS[index], text).is_empty()
}
