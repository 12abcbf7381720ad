//! How a person or a program names one runtime. It is resolved to exactly one, or refused.

use std::fmt;
use std::str::FromStr;

use crate::fleet::{Fleet, Pane, PaneKey};
use crate::ids::{PaneId, ServerKey, WindowId};
use crate::runtime::{Runtime, RuntimeId};

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaneRef {
    /// `runtime:<id>`
    Runtime(RuntimeId),
    /// `pane:<target>/<session>/<window>/<pane>`, `<target>@<server>` where two servers match. Parts are
    /// percent-encoded.
    Path { target: String, server: Option<String>, session: String, window: WindowId, pane: PaneId },
    /// `%12`, on this machine: other hosts count from the same numbers.
    Pane(PaneId),
    /// The name of an agent, its kind, or the session that it lives in, where there is one of it.
    Agent(String),
}

/// The longest name that an agent can be given.
const MAX_NAME_LEN: usize = 64;

/// There may be many hosts, and each has its first pane.
const MAX_OTHER_HOSTS: usize = 4;

/// Whether an agent can be named so, and be found by that name.
pub fn is_agent_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LEN && matches!(name.parse(), Ok(PaneRef::Agent(_)))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    #[error("'{0}' cannot be read as a reference")]
    Invalid(String),
    #[error("no agent fits '{0}'")]
    NotFound(String),
    /// A bare pane that this machine does not have, and others do.
    #[error("this machine has no {reference}; other hosts do: {}", candidates.join(", "))]
    OnOtherHost { reference: String, candidates: Vec<String> },
    #[error("'{reference}' fits several agents: {}", candidates.join(", "))]
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
        if let Some(place) = s.strip_prefix("pane:") {
            return parse_path(place).ok_or_else(invalid);
        }
        if s.starts_with('%') {
            return s.parse().map(Self::Pane).map_err(|_| invalid());
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
        // A pane's own `%` is mostly written as it is.
        pane: pane.parse().ok().or_else(|| decode(pane)?.parse().ok())?,
    })
}

/// A `%` and two hex digits stand for a byte.
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
            Self::Agent(name) => f.write_str(name),
        }
    }
}

impl PaneRef {
    /// Names this one and no other.
    pub fn path_to(key: &PaneKey, pane: &Pane) -> Self {
        Self::Path {
            target: key.server.target.to_string(),
            server: Some(key.server.server.to_string()),
            session: pane.placements.first().map(|p| p.session_name.clone()).unwrap_or_default(),
            window: pane.window,
            pane: key.pane,
        }
    }

    /// As short as it can be written for somebody who is to name it in a command.
    pub fn shortest(key: &PaneKey, pane: &Pane) -> Self {
        match &pane.runtime {
            _ if key.server.target.is_local() => Self::Pane(key.pane),
            Some(runtime) => Self::Runtime(runtime.id.clone()),
            None => Self::path_to(key, pane),
        }
    }

    /// Exactly one runtime, or none.
    pub fn resolve(&self, fleet: &Fleet) -> Result<(PaneKey, Runtime), RefError> {
        let mut fitting = Vec::new();
        for (key, server) in fleet.servers() {
            for (id, pane) in &server.panes {
                let place = PaneKey { server: key.clone(), pane: *id };
                if let Some(runtime) = pane.runtime.as_ref().filter(|runtime| self.matches(&place, pane, runtime)) {
                    fitting.push((place, runtime.clone()));
                }
            }
        }
        match fitting.len() {
            0 => Err(self.not_found(fleet)),
            1 => Ok(fitting.remove(0)),
            _ => {
                let candidates = fitting.iter().map(|(key, runtime)| {
                    let ServerKey { target, server } = &key.server;
                    format!("runtime:{} ({} in {} on {target}@{server})", runtime.id, runtime.agent_type, key.pane)
                });
                Err(RefError::Ambiguous { reference: self.to_string(), candidates: candidates.collect() })
            }
        }
    }

    /// Exactly one pane, or none. A pane is named whether or not an agent lives in it; an agent is named by itself.
    pub fn locate(&self, fleet: &Fleet) -> Result<PaneKey, RefError> {
        let mut fitting = Vec::new();
        for (key, server) in fleet.servers() {
            for (id, pane) in &server.panes {
                let place = PaneKey { server: key.clone(), pane: *id };
                let fits = match &pane.runtime {
                    Some(runtime) => self.matches(&place, pane, runtime),
                    None => self.matches_pane(&place, pane),
                };
                if fits {
                    fitting.push((place, pane));
                }
            }
        }
        match fitting.len() {
            0 => Err(self.not_found(fleet)),
            1 => Ok(fitting.remove(0).0),
            _ => {
                let candidates = fitting.iter().map(|(key, pane)| candidate(key, pane)).collect();
                Err(RefError::Ambiguous { reference: self.to_string(), candidates })
            }
        }
    }

    fn not_found(&self, fleet: &Fleet) -> RefError {
        let Self::Pane(id) = self else { return RefError::NotFound(self.to_string()) };
        let others = fleet.servers().filter(|(key, _)| !key.target.is_local()).filter_map(|(key, server)| {
            let pane = server.panes.get(id)?;
            Some(candidate(&PaneKey { server: key.clone(), pane: *id }, pane))
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
            Self::Path { .. } | Self::Pane(_) => self.matches_pane(key, pane),
        }
    }

    fn matches_pane(&self, key: &PaneKey, pane: &Pane) -> bool {
        match self {
            Self::Runtime(_) | Self::Agent(_) => false,
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

/// A reference that names only this one, and who lives there.
fn candidate(key: &PaneKey, pane: &Pane) -> String {
    let place = PaneRef::path_to(key, pane);
    match &pane.runtime {
        Some(runtime) => format!("{place} ({})", runtime.agent_type),
        None => format!("{place} (no agent)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_written_is_read_or_refused(text in any::<String>(), prefix in "(pane:|runtime:|%|)") {
            let _ = format!("{prefix}{text}").parse::<PaneRef>();
        }

        #[test]
        fn a_place_is_read_as_it_was_written(
            target in any::<String>(),
            server in proptest::option::of(any::<String>()),
            session in any::<String>(),
            window in any::<u32>(),
            pane in any::<u32>(),
        ) {
            let place = PaneRef::Path { target, server, session, window: WindowId(window), pane: PaneId(pane) };
            let written = place.to_string();
            prop_assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{}", written);
            prop_assert_eq!(written.parse(), Ok(place));
        }
    }

    #[test]
    fn references_are_read_strictly() {
        assert_eq!("%3".parse(), Ok(PaneRef::Pane(PaneId(3))));
        assert_eq!("claude".parse(), Ok(PaneRef::Agent("claude".into())));
        assert!(matches!("runtime:ab12".parse(), Ok(PaneRef::Runtime(_))));
        let place = "pane:host@default/my%20work/@1/%3".parse::<PaneRef>().expect("a place");
        let PaneRef::Path { target, server, session, window, pane } = place else { panic!("a place") };
        assert_eq!((target.as_str(), server.as_deref(), session.as_str()), ("host", Some("default"), "my work"));
        assert_eq!((window, pane), (WindowId(1), PaneId(3)));
        let odd = "pane:host@%2Ftmp%2Fs/%2512/@1/%2512".parse::<PaneRef>().expect("a place");
        let PaneRef::Path { server, session, pane, .. } = odd else { panic!("a place") };
        assert_eq!((server.as_deref(), session.as_str(), pane), (Some("/tmp/s"), "%12", PaneId(2512)));
        for bad in
            ["", "%", "%x", "runtime:", "runtime:a/b", "pane:host/s/1/%3", "pane:host/s/@1", "a b", "pane:h/%zz/@1/%1"]
        {
            assert!(matches!(bad.parse::<PaneRef>(), Err(RefError::Invalid(_))), "{bad}");
        }
    }
}
