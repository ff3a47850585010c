//! How we are reached over HTTP: one endpoint for both eras, in front of any host. Knows no workflow and no tool.

mod host;

pub use host::{Denied, Host, Principal};
