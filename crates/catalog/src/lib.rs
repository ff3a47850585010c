//! What there is: workflow files from several sources, loaded in parallel, watched, and looked up by
//! id. An id is only ever a key in a table; it never becomes a path.

mod catalog;
mod examine;
mod load;
mod own_id;
mod snapshot;
mod source;
mod watch;

pub use catalog::{Catalog, Change};
pub use examine::{Examination, Examined, examine, examine_text};
pub use load::{FILES_MAX, FOLDER_DEPTH_MAX};
pub use snapshot::{Entry, Shadow, ShadowReason, Snapshot, SourceReport, SourceState};
pub use source::{Bundled, Digest, Kind, OverridePolicy, Source};
pub use watch::{Beside, Watch};
