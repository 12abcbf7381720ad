//! Opens the database. Moves a damaged database aside and creates a new one. Refuses a database that a newer version of
//! agtmux wrote.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode as ApiErrorCode};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rusqlite_migration::{Error as MigrationError, MigrationDefinitionError};

use super::{StoreContents, integrity, maintenance, rows, schema};

/// How long a statement waits while another connection locks the database.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_WAL_BYTES: i64 = 4 << 20;

/// A database of an older version up to this size is rebuilt when it is opened. This takes a fraction of a second.
const MAX_REBUILD_BYTES: u64 = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the database '{}' was written by a newer agtmux (schema {found}, this version supports {}); \
         install the newer version, or set AGTMUX_STATE_DIR to an empty directory",
        path.display(), schema::VERSION
    )]
    Newer { path: PathBuf, found: i64 },
    #[error("cannot open the database '{}': {message}", path.display())]
    Open { path: PathBuf, message: String },
    #[error("cannot read the database: {0}")]
    Read(String),
    #[error("cannot write to the database: {0}")]
    Write(String),
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request failed because of the database");
        match error {
            StoreError::Write(_) => {
                Self::new(ApiErrorCode::NotStored, error.to_string()).with_hint("agtmux daemon status")
            }
            _ => Self::new(ApiErrorCode::Internal, "the database cannot be read").with_hint("agtmux daemon logs"),
        }
    }
}

pub(super) struct OpenedStore {
    pub(super) connection: Connection,
    pub(super) contents: StoreContents,
    /// Where a damaged database was moved to.
    pub(super) quarantined: Option<PathBuf>,
}

/// Opens the database. A damaged file is moved aside, never deleted, and a new database is created.
pub(super) fn open(path: &Path) -> Result<OpenedStore, StoreError> {
    match open_checked(path) {
        Ok((connection, contents)) => Ok(OpenedStore { connection, contents, quarantined: None }),
        Err(OpenFailure::Damaged(why)) => {
            let moved_path = quarantine(path).map_err(|error| OpenFailure::from(error).into_error(path))?;
            tracing::error!(moved_to = %moved_path.display(), why, "the database was damaged; created a new one");
            let (connection, contents) = open_checked(path).map_err(|failure| failure.into_error(path))?;
            Ok(OpenedStore { connection, contents, quarantined: Some(moved_path) })
        }
        Err(failure) => Err(failure.into_error(path)),
    }
}

enum OpenFailure {
    Damaged(String),
    Newer(i64),
    Other(String),
}

impl OpenFailure {
    fn into_error(self, path: &Path) -> StoreError {
        match self {
            Self::Newer(found) => StoreError::Newer { path: path.to_owned(), found },
            Self::Damaged(message) | Self::Other(message) => StoreError::Open { path: path.to_owned(), message },
        }
    }
}

impl From<rusqlite::Error> for OpenFailure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged(error.to_string()),
            // An error without an SQLite code means that the file contains a value that the daemon never writes.
            None => Self::Damaged(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<std::io::Error> for OpenFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

fn open_checked(path: &Path) -> Result<(Connection, StoreContents), OpenFailure> {
    // Create the file before SQLite does, so that other users can never read it, whatever the umask.
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    drop(file);
    let mut connection = connect(path)?;
    if let Some(damage) = integrity::check_at_start(&connection, path)? {
        return Err(OpenFailure::Damaged(damage));
    }
    match schema::MIGRATIONS.to_latest(&mut connection) {
        Ok(()) => {
            rebuild_small(&connection, path)?;
            let contents = rows::read_contents(&connection)?;
            Ok((connection, contents))
        }
        Err(MigrationError::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead)) => {
            Err(OpenFailure::Newer(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?))
        }
        Err(MigrationError::RusqliteError { err, .. }) => Err(err.into()),
        Err(error) => Err(OpenFailure::Other(error.to_string())),
    }
}

/// Opens a connection that writes.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    configure(Connection::open(path)?)
}

/// Opens a connection that writes, and never creates the database.
pub(super) fn connect_existing(path: &Path) -> rusqlite::Result<Connection> {
    configure(Connection::open_with_flags(path, OpenFlags::default() & !OpenFlags::SQLITE_OPEN_CREATE)?)
}

fn configure(connection: Connection) -> rusqlite::Result<Connection> {
    // Make a new database able to return free pages. This setting must come before all others.
    if connection.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // After a checkpoint the write-ahead log shrinks to this size.
    connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Opens the write-ahead log, which SQLite otherwise opens at the first query. After that, the connection works even if
/// the database files are removed.
pub(super) fn open_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Rebuilds a small database of an older version at once, so that its file can shrink. A large database is rebuilt
/// later, while the daemon runs.
fn rebuild_small(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_REBUILD_BYTES);
    if is_small && !maintenance::returns_free_pages(connection)? {
        // The rebuild may fail, for example on a full disk. The database also works without it.
        maintenance::rebuild(connection).unwrap_or_else(
            |error| tracing::warn!(%error, "could not rebuild the database, so its file cannot shrink"),
        );
    }
    Ok(())
}

fn quarantine(path: &Path) -> std::io::Result<PathBuf> {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let name = |n: u32, suffix: &str| {
        let mut name = OsString::from(path);
        name.push(format!(".damaged-{stamp}{}{suffix}", if n == 0 { String::new() } else { format!("-{n}") }));
        PathBuf::from(name)
    };
    let unused = (0..).find(|n| !name(*n, "").exists()).unwrap_or(0);
    fs::rename(path, name(unused, ""))?;
    for suffix in ["-wal", "-shm"] {
        let mut sidecar = OsString::from(path);
        sidecar.push(suffix);
        match fs::rename(&sidecar, name(unused, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    integrity::forget_request(path);
    Ok(name(unused, ""))
}
