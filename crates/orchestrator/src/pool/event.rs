//! What upstreams tell without being asked.

/// The lists that a server has.
pub use mcp::client::ListKind as Kind;

/// Something happened at an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A list of it is not what it was.
    Changed { server: String, list: Kind },
    /// A resource that was subscribed to is not what it was.
    Updated { server: String, uri: String },
    /// A connection is there.
    Connected { server: String },
    /// A connection is gone.
    Gone { server: String },
}
