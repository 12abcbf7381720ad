//! The ssh targets: a name and the host alias for `ssh`. No secrets are stored.

use agtmux_core::ids::TargetName;
use agtmux_core::target::Target;
use jiff::Timestamp;
use rusqlite::{Connection, Transaction};

use super::insert::insert;

pub(super) fn put(tx: &Transaction<'_>, target: &Target, now: Timestamp) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO targets", {
        target_id: target.name.as_str(),
        target_name: target.name.as_str(),
        kind: "ssh",
        connection_ref: target.ssh.as_str(),
        health: "degraded",
        updated_at: now.as_microsecond(),
    } "ON CONFLICT (target_id) DO UPDATE SET connection_ref = excluded.connection_ref, updated_at = excluded.updated_at")
}

pub(super) fn remove(tx: &Transaction<'_>, name: &TargetName) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM targets WHERE target_id = ?1 AND kind = 'ssh'")?.execute([name.as_str()]).map(drop)
}

/// All stored ssh targets. A target whose name is not valid is skipped.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Target>> {
    let sql = "SELECT target_name, connection_ref FROM targets WHERE kind = 'ssh' ORDER BY target_name";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
    let mut targets = Vec::new();
    for row in rows {
        let (name, ssh) = row?;
        match (TargetName::parse_remote(&name), ssh.unwrap_or_else(|| name.clone()).parse()) {
            (Ok(name), Ok(ssh)) => targets.push(Target { name, ssh }),
            _ => tracing::warn!(name, "skipped a stored target with an invalid name"),
        }
    }
    Ok(targets)
}
