//! Protocol versions, and how both sides agree on one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The versions that this agtmux speaks. Raise `max` for a change that an older peer must not ignore. Raise `min` when
/// the oldest version is no longer supported.
pub const PROTOCOL_VERSIONS: ProtocolVersions = ProtocolVersions { max: 2, min: Some(2) };

/// The newest and the oldest protocol version that a peer speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolVersions {
    /// The newest version.
    #[serde(rename = "collect")]
    pub max: u32,
    /// The oldest version. None if the peer speaks only protocol 1, which does not have this field.
    #[serde(rename = "collect_min", default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
}

/// Why two peers have no common version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionGap {
    /// The peer must be updated.
    PeerTooOld,
    /// This agtmux must be updated.
    PeerTooNew,
}

impl ProtocolVersions {
    /// Agrees on the highest version that both peers speak.
    pub fn negotiate(self, peer: Self) -> Result<u32, VersionGap> {
        let version = self.max.min(peer.max);
        match version {
            _ if version < self.min.unwrap_or(self.max) => Err(VersionGap::PeerTooOld),
            _ if version < peer.min.unwrap_or(peer.max) => Err(VersionGap::PeerTooNew),
            _ => Ok(version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_use_the_highest_common_version() {
        let versions = |min, max| ProtocolVersions { max, min: Some(min) };
        assert_eq!(versions(1, 3).negotiate(versions(2, 4)), Ok(3));
        assert_eq!(versions(2, 4).negotiate(versions(1, 3)), Ok(3));
        assert_eq!(versions(2, 2).negotiate(versions(3, 4)), Err(VersionGap::PeerTooNew));
        assert_eq!(versions(3, 4).negotiate(versions(2, 2)), Err(VersionGap::PeerTooOld));
        let first: ProtocolVersions = serde_json::from_str(r#"{"collect":1}"#).expect("protocol 1 sends no minimum");
        assert_eq!(PROTOCOL_VERSIONS.negotiate(first), Err(VersionGap::PeerTooOld));
        assert_eq!(first.negotiate(PROTOCOL_VERSIONS), Err(VersionGap::PeerTooNew));
    }
}
