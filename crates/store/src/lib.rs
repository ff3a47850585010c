//! What happened: the logs of sessions. A log is a list of events under a head; the store keeps it durable,
//! in order and checked, and knows nothing of what the events mean; `sessions` on top of it does. There is no
//! randomness, no async, and no clock but a stopwatch (`latency`): times and ids come from the caller, and answers come
//! by a callback or by waiting.

mod backend;
mod backup;
mod chain;
mod changes;
mod counter;
mod error;
mod export;
mod figures;
mod import;
mod indent;
mod latency;
pub mod limits;
mod list;
mod model;
mod postgres;
pub mod sessions;
mod sqlite;
mod store;
mod verify;
mod words;

pub use backend::Done;
pub use backup::Backup;
pub use chain::Key;
pub use changes::{Change, Mark};
pub use counter::Counter;
pub use error::Error;
pub use export::{EXPORT_FORMAT, ExportedEvent, ExportedHead, ExportedLog, ExportedSession};
pub use figures::{Figures, PoolFigures};
pub use import::{Adoption, ImportFile};
pub use latency::{Histogram, Latency};
pub use list::{Cursor, Filter, Page};
pub use model::{
    Append, Counts, Created, Definition, Document, Event, Head, Log, Meta, NewEvent, NewSession,
    Snapshot, Status, Usage, Version,
};
pub use postgres::Address;
pub use store::Store;
pub use verify::{Flaw, Verified};
