//! The file: how it is opened, its tables, and bringing an older one up to date. A file of a newer
//! format is refused and left as it is.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::chain::Chain;
use crate::error::Error;
use crate::limits::BUSY_MS;
use crate::sqlite::counter;

/// One step per format; the first makes a new file. Steps that were released never change.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];
/// The format from which on a file has a counter.
const COUNTED: i64 = 4;
/// Marks a file as ours.
const APPLICATION: i64 = 0x574c_4c47;
/// How many prepared statements a connection keeps: more than we have.
const STATEMENTS_MAX: usize = 64;
/// How long to wait before a file that is busy is tried again, where SQLite does not wait by itself.
const RETRY: Duration = Duration::from_millis(5);

/// The format that this program writes.
pub(crate) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Makes the file if there is none, brings it up to date, and gives a connection that may write.
pub(crate) fn prepare(path: &Path, chain: &Chain) -> Result<Connection, Error> {
    create_file(path)?;
    let mut connection = connect(path)?;
    let mut version = pragma(&connection, "user_version")?;
    if version < known() {
        version = migrate(&mut connection, chain)?;
    }
    if version > known() {
        return Err(Error::Newer { found: version, known: known() });
    }
    if pragma(&connection, "application_id")? != APPLICATION {
        return Err(Error::NotOurs);
    }
    let check: Option<Vec<u8>> = connection
        .query_row("SELECT value FROM settings WHERE name = 'key'", [], |row| row.get(0))
        .optional()?;
    if check.as_deref() != Some(&chain.key_check()) {
        return Err(Error::WrongKey);
    }
    // Only now: a file that we refuse stays as it is.
    let mode: String =
        patiently(|| connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)))?;
    if mode != "wal" {
        return Err(Error::Unavailable("its file system has no shared memory".to_owned()));
    }
    Ok(connection)
}

/// A connection that may write.
pub(crate) fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // SQLite does with less than it was asked for, and would stay so when the file can be written again.
    if connection.is_readonly(MAIN_DB)? {
        return Err(Error::Unavailable("it can only be read".to_owned()));
    }
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Plans do not depend on values. Otherwise a statement with a range is planned anew for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    patiently(|| {
        // `fullfsync` is for macOS, where a plain flush does not reach the disk.
        connection.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
            PRAGMA fullfsync = ON; PRAGMA temp_store = MEMORY;",
        )
    })?;
    Ok(connection)
}

/// A connection that reads.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection, Error> {
    let connection = connect(path)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    Ok(connection)
}

/// What the file says of goals and outputs is for its owner only.
fn create_file(path: &Path) -> Result<(), Error> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    match new_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// An empty file for its owner only, where there is none.
pub(crate) fn new_file(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the name of a new file durable.
pub(crate) fn sync_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Runs the steps that are missing, alone in the file. Says which format it has then.
fn migrate(connection: &mut Connection, chain: &Chain) -> Result<i64, Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    // Another process may have been here while we waited.
    let version = pragma(&transaction, "user_version")?;
    if version >= known() {
        return Ok(version);
    }
    if version == 0 {
        let count = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        if count("SELECT count(*) FROM sqlite_schema")? > 0 {
            return Err(Error::NotOurs);
        }
    }
    let done = usize::try_from(version).map_err(|_| Error::NotOurs)?;
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    if version == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.execute(
            "INSERT INTO settings (name, value) VALUES ('key', ?1), ('over', 0)",
            [chain.key_check()],
        )?;
    }
    if version < COUNTED {
        counter::make(&transaction, chain)?;
    }
    transaction.pragma_update(None, "user_version", known())?;
    transaction.commit()?;
    Ok(known())
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, Error> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

/// Two processes that open a new file at once get in each other's way where SQLite does not wait.
fn patiently<T>(mut run: impl FnMut() -> rusqlite::Result<T>) -> Result<T, Error> {
    let start = Instant::now();
    loop {
        match run() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < Duration::from_millis(BUSY_MS) =>
            {
                std::thread::sleep(RETRY);
            }
            result => return Ok(result?),
        }
    }
}
