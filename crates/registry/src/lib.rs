//! Which upstream servers exist, and what may be done with them: files and imports, secrets, trust and policy. A [`Registry`] is
//! what all files came to, each with its findings, the first file winning by id; [`Watched`] follows their edits. Nothing here
//! connects to anything.

mod add;
pub mod clients;
mod connect;
mod credentials;
mod draft;
pub mod entry;
mod fields;
mod filling;
pub mod finding;
pub mod http;
mod ids;
pub mod limits;
mod load;
mod masks;
pub mod place;
pub mod policy;
mod read;
mod report;
mod secrecy;
mod shapes;
mod tree;
mod trust;
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
pub use trust::{Trust, TrustPolicy};
pub use variables::Variables;
pub use watched::Watched;
