//! The upstreams that a user has named: read from files, each with its findings, the first file winning by id.

mod add;
pub mod clients;
mod connect;
mod credentials;
mod draft;
pub mod entry;
mod fields;
mod filling;
pub(crate) mod finding;
pub(crate) mod http;
mod ids;
pub mod limits;
mod load;
pub(crate) mod masks;
pub mod place;
mod read;
mod report;
mod secrecy;
mod shapes;
pub(crate) mod tree;
mod variables;
mod watched;
mod written;

pub use add::{NotAdded, add};
pub use draft::Draft;
pub use entry::Entry;
pub use finding::{Code, Finding, Severity};
pub use ids::is_id;
pub use load::{Listed, Registry, RegistryFile, Shadow, Standing, State};
pub use masks::Masks;
pub use place::Places;
pub use read::{Format, Reader, Reading, Server};
pub use tree::OPTIONS as JSONC;
pub use variables::Variables;
pub use watched::Watched;
