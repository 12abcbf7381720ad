//! References: how a user or a program names a runtime or a pane. A reference resolves to exactly one runtime or pane,
//! or the lookup fails.

use std::fmt;
use std::str::FromStr;

use crate::fleet::{Fleet, Pane, PaneKey, Server};
use crate::ids::{PaneId, ServerKey, WindowId};
use crate::runtime::{Runtime, RuntimeId};

/// A parsed reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaneRef {
    /// `runtime:<id>`
    Runtime(RuntimeId),
    /// `pane:<target>/<session>/<window>/<pane>`. If the target has several servers, `<target>@<server>` selects one of
    /// them. Each part is percent-encoded.
    Path { target: String, server: Option<String>, session: String, window: WindowId, pane: PaneId },
    /// A pane id such as `%12`. Only panes on this machine match, because panes on other hosts can have the same id.
    Pane(PaneId),
    /// A window id such as `@3`. Names the agent in this window of this machine. The window must contain exactly one
    /// agent.
    Window(WindowId),
    /// `work:1.2` or `work:editor`, as tmux users write it. `place` is the part after the colon: the index or the name
    /// of a window, optionally followed by a dot and the index of a pane.
    Place { session: String, place: String },
    /// The name of an agent, its type, or the name of the tmux session that shows it. Exactly one agent must match.
    Agent(String),
}

/// The maximum length of an agent name.
const MAX_NAME_LEN: usize = 64;

/// The maximum number of panes on other hosts that an error message lists.
const MAX_OTHER_HOSTS: usize = 4;

/// Whether this is a valid name for an agent. A valid name can also be used as a reference.
pub fn is_agent_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LEN && matches!(name.parse(), Ok(PaneRef::Agent(_)))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    #[error("'{0}' is not a valid reference")]
    Invalid(String),
    #[error("no agent matches '{0}'")]
    NotFound(String),
    /// The reference is a bare pane id, and only other hosts have a pane with this id.
    #[error("this machine has no pane {reference}, but other hosts do: {}", candidates.join(", "))]
    OnOtherHost { reference: String, candidates: Vec<String> },
    #[error("'{reference}' matches several agents: {}", candidates.join(", "))]
    Ambiguous { reference: String, candidates: Vec<String> },
}

impl FromStr for PaneRef {
    type Err = RefError;

    fn from_str(s: &str) -> Result<Self, RefError> {
        let invalid = || RefError::Invalid(s.to_owned());
        if let Some(id) = s.strip_prefix("runtime:") {
            let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            return if plain { Ok(Self::Runtime(RuntimeId::from_stored(id.to_owned()))) } else { Err(invalid()) };
        }
        if let Some(path) = s.strip_prefix("pane:") {
            return parse_path(path).ok_or_else(invalid);
        }
        if s.starts_with('%') {
            return s.parse().map(Self::Pane).map_err(|_| invalid());
        }
        if s.starts_with('@') {
            return s.parse().map(Self::Window).map_err(|_| invalid());
        }
        // tmux allows no colon in the name of a session, so the session name ends at the first colon.
        if let Some((session, place)) = s.split_once(':') {
            let is_valid = !session.is_empty() && !place.is_empty() && !s.chars().any(char::is_control);
            return if is_valid {
                Ok(Self::Place { session: session.into(), place: place.into() })
            } else {
                Err(invalid())
            };
        }
        let name = !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if name { Ok(Self::Agent(s.to_owned())) } else { Err(invalid()) }
    }
}

fn parse_path(text: &str) -> Option<PaneRef> {
    let parts: Vec<&str> = text.split('/').collect();
    let [host, session, window, pane] = parts.as_slice() else { return None };
    let (target, server) = match host.split_once('@') {
        Some((target, server)) => (target, Some(decode(server)?)),
        None => (*host, None),
    };
    Some(PaneRef::Path {
        target: decode(target)?,
        server,
        session: decode(session)?,
        window: decode(window)?.parse().ok()?,
        // The `%` of a pane id is usually not percent-encoded.
        pane: pane.parse().ok().or_else(|| decode(pane)?.parse().ok())?,
    })
}

/// Decodes percent-encoding.
fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn encode(part: &str) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    part.bytes().map(byte).collect()
}

impl fmt::Display for PaneRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(id) => write!(f, "runtime:{id}"),
            Self::Path { target, server, session, window, pane } => {
                let at = server.as_ref().map(|server| format!("@{}", encode(server))).unwrap_or_default();
                write!(f, "pane:{}{at}/{}/{window}/{pane}", encode(target), encode(session))
            }
            Self::Pane(id) => write!(f, "{id}"),
            Self::Window(id) => write!(f, "{id}"),
            Self::Place { session, place } => write!(f, "{session}:{place}"),
            Self::Agent(name) => f.write_str(name),
        }
    }
}

impl PaneRef {
    /// Builds the full reference to a pane.
    pub fn path_to(key: &PaneKey, pane: &Pane) -> Self {
        Self::Path {
            target: key.server.target.to_string(),
            server: Some(key.server.server.to_string()),
            session: pane.placements.first().map(|p| p.session_name.clone()).unwrap_or_default(),
            window: pane.window,
            pane: key.pane,
        }
    }

    /// Builds the shortest reference that names only this pane, for use in a command: `%12`, the name of the agent,
    /// `work:1.2`, or a longer one. Prefers references that a shell reads as one plain word.
    pub fn shortest(fleet: &Fleet, key: &PaneKey, pane: &Pane) -> Self {
        let is_here = |(_, server): &(&ServerKey, &Server)| server.panes.contains_key(&key.pane);
        if key.server.target.is_local() && fleet.servers_on(&key.server.target).filter(is_here).count() == 1 {
            return Self::Pane(key.pane);
        }
        let place = pane.placements.first().map(|placement| Self::Place {
            session: placement.session_name.clone(),
            place: format!("{}.{}", placement.window_index, pane.pane_index),
        });
        let name = pane.runtime.as_ref().and_then(|runtime| runtime.name.clone()).map(Self::Agent);
        let is_word = |text: &str| {
            !text.starts_with('-') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/@%".contains(&b))
        };
        let works = |reference: &Self| is_word(&reference.to_string()) && reference.names_only(fleet, key);
        let shorter = [name, place].into_iter().flatten().find(works);
        let path = Self::path_to(key, pane);
        let runtime = pane.runtime.as_ref().filter(|_| !is_word(&path.to_string()));
        shorter.or_else(|| runtime.map(|runtime| Self::Runtime(runtime.id.clone()))).unwrap_or(path)
    }

    /// Whether the reference matches this pane and no other.
    fn names_only(&self, fleet: &Fleet, key: &PaneKey) -> bool {
        let mut matching = self.matching_panes(fleet);
        matching.next().is_some_and(|(found, _)| found == *key) && matching.next().is_none()
    }

    /// Resolves the reference to exactly one runtime.
    pub fn resolve(&self, fleet: &Fleet) -> Result<(PaneKey, Runtime), RefError> {
        let with_runtime = |(key, pane): (PaneKey, &Pane)| Some((key, pane.runtime.clone()?));
        let matching = self.matching_panes(fleet).filter_map(with_runtime).collect();
        self.only_one(fleet, matching, |(key, runtime)| {
            let ServerKey { target, server } = &key.server;
            let shortest = fleet
                .pane(key)
                .map_or_else(|| Self::Runtime(runtime.id.clone()), |pane| Self::shortest(fleet, key, pane));
            format!("{shortest} ({} in {} on {target}@{server})", runtime.agent_type, key.pane)
        })
    }

    /// Resolves the reference to exactly one pane. A reference of the form `%12`, `work:1.2` or `pane:…` also matches a
    /// pane without an agent.
    pub fn locate(&self, fleet: &Fleet) -> Result<PaneKey, RefError> {
        let matching = self.matching_panes(fleet).collect();
        let describe = |(key, pane): &(PaneKey, &Pane)| candidate(&Self::shortest(fleet, key, pane), pane);
        self.only_one(fleet, matching, describe).map(|(key, _)| key)
    }

    fn matching_panes<'f>(&self, fleet: &'f Fleet) -> impl Iterator<Item = (PaneKey, &'f Pane)> {
        let panes = fleet.servers().flat_map(|(key, server)| {
            server.panes.iter().map(|(id, pane)| (PaneKey { server: key.clone(), pane: *id }, pane))
        });
        panes.filter(|(key, pane)| match &pane.runtime {
            Some(runtime) => self.matches(key, pane, runtime),
            None => self.matches_pane(key, pane),
        })
    }

    fn only_one<T>(&self, fleet: &Fleet, mut matching: Vec<T>, describe: impl Fn(&T) -> String) -> Result<T, RefError> {
        match matching.len() {
            0 => Err(self.not_found(fleet)),
            1 => Ok(matching.remove(0)),
            _ => {
                let candidates = matching.iter().map(describe).collect();
                Err(RefError::Ambiguous { reference: self.to_string(), candidates })
            }
        }
    }

    fn not_found(&self, fleet: &Fleet) -> RefError {
        let Self::Pane(id) = self else { return RefError::NotFound(self.to_string()) };
        let others = fleet.servers().filter(|(key, _)| !key.target.is_local()).filter_map(|(key, server)| {
            let pane = server.panes.get(id)?;
            Some(candidate(&Self::path_to(&PaneKey { server: key.clone(), pane: *id }, pane), pane))
        });
        let candidates: Vec<String> = others.take(MAX_OTHER_HOSTS).collect();
        match candidates.is_empty() {
            true => RefError::NotFound(self.to_string()),
            false => RefError::OnOtherHost { reference: self.to_string(), candidates },
        }
    }

    fn matches(&self, key: &PaneKey, pane: &Pane, runtime: &Runtime) -> bool {
        match self {
            Self::Runtime(id) => runtime.id == *id,
            Self::Agent(name) => {
                runtime.agent_type.as_str() == name
                    || runtime.name.as_ref() == Some(name)
                    || pane.placements.iter().any(|p| p.session_name == *name)
            }
            Self::Window(id) => key.server.target.is_local() && pane.window == *id,
            Self::Place { session, place } => is_at(pane, session, place).is_some(),
            Self::Path { .. } | Self::Pane(_) => self.matches_pane(key, pane),
        }
    }

    fn matches_pane(&self, key: &PaneKey, pane: &Pane) -> bool {
        match self {
            Self::Runtime(_) | Self::Agent(_) | Self::Window(_) => false,
            // A place with a pane index names a pane. A place without a pane index names a window, and a window stands
            // only for the agent in it.
            Self::Place { session, place } => is_at(pane, session, place) == Some(Precision::Pane),
            Self::Pane(id) => key.server.target.is_local() && key.pane == *id,
            Self::Path { target, server, session, window, pane: id } => {
                key.server.target.as_str() == target
                    && server.as_ref().is_none_or(|server| key.server.server.as_str() == server)
                    && pane.placements.iter().any(|p| p.session_name == *session)
                    && (pane.window, key.pane) == (*window, *id)
            }
        }
    }
}

/// How precisely a place names a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    Window,
    Pane,
}

/// Whether the place names this pane or its window. `None` if the place names neither. The name of a window may contain
/// dots and digits, so the function compares the place with each possible spelling instead of splitting it.
fn is_at(pane: &Pane, session: &str, place: &str) -> Option<Precision> {
    let placements = pane.placements.iter().filter(|placement| placement.session_name == session);
    let windows = placements.flat_map(|placement| [placement.window_index.to_string(), pane.window_name.clone()]);
    let mut precisions = windows.filter_map(|window| match place.strip_prefix(&*window)? {
        "" => Some(Precision::Window),
        rest => (rest.strip_prefix('.')? == pane.pane_index.to_string()).then_some(Precision::Pane),
    });
    precisions.next()
}

/// Formats a candidate: a reference to the pane, and the agent in the pane.
fn candidate(reference: &PaneRef, pane: &Pane) -> String {
    match &pane.runtime {
        Some(runtime) => format!("{reference} ({})", runtime.agent_type),
        None => format!("{reference} (no agent)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>(), prefix in "(pane:|runtime:|%|)") {
            let _ = format!("{prefix}{text}").parse::<PaneRef>();
        }

        #[test]
        fn a_path_reference_round_trips(
            target in any::<String>(),
            server in proptest::option::of(any::<String>()),
            session in any::<String>(),
            window in any::<u32>(),
            pane in any::<u32>(),
        ) {
            let path = PaneRef::Path { target, server, session, window: WindowId(window), pane: PaneId(pane) };
            let written = path.to_string();
            prop_assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{}", written);
            prop_assert_eq!(written.parse(), Ok(path));
        }
    }

    #[test]
    fn references_are_parsed_strictly() {
        assert_eq!("%3".parse(), Ok(PaneRef::Pane(PaneId(3))));
        assert_eq!("claude".parse(), Ok(PaneRef::Agent("claude".into())));
        assert!(matches!("runtime:ab12".parse(), Ok(PaneRef::Runtime(_))));
        let path = "pane:host@default/my%20work/@1/%3".parse::<PaneRef>().expect("a path reference");
        let PaneRef::Path { target, server, session, window, pane } = path else { panic!("a path reference") };
        assert_eq!((target.as_str(), server.as_deref(), session.as_str()), ("host", Some("default"), "my work"));
        assert_eq!((window, pane), (WindowId(1), PaneId(3)));
        let odd = "pane:host@%2Ftmp%2Fs/%2512/@1/%2512".parse::<PaneRef>().expect("a path reference");
        let PaneRef::Path { server, session, pane, .. } = odd else { panic!("a path reference") };
        assert_eq!((server.as_deref(), session.as_str(), pane), (Some("/tmp/s"), "%12", PaneId(2512)));
        assert_eq!("@7".parse(), Ok(PaneRef::Window(WindowId(7))));
        let place = |session: &str, place: &str| PaneRef::Place { session: session.into(), place: place.into() };
        assert_eq!("work:1.2".parse(), Ok(place("work", "1.2")));
        assert_eq!("my work:a: b.c".parse(), Ok(place("my work", "a: b.c")));
        for bad in [
            "@",
            "@x",
            ":1",
            "work:",
            "work:a\nb",
            "",
            "%",
            "%x",
            "runtime:",
            "runtime:a/b",
            "pane:host/s/1/%3",
            "pane:host/s/@1",
            "a b",
            "pane:h/%zz/@1/%1",
        ] {
            assert!(matches!(bad.parse::<PaneRef>(), Err(RefError::Invalid(_))), "{bad}");
        }
    }
}
