//! Connections to other MCP servers, which we call upstreams, and safe calls of their tools. [`Orchestrator`] is the way in: it
//! connects to an entry of the registry on first use. Knows no workflow and no caller's protocol.

mod breaker;
mod call;
mod error;
pub mod kept;
pub mod oauth;
pub mod pool;
mod rate;
pub mod recording;
pub mod text;
pub mod upstream;
pub mod wire;

pub use breaker::Open;
pub use call::{Answer, AskedBy, Asker, Call, CallResult, Form, Party, Progress, Wanted};
pub use error::{Awaited, Credentials, Error};
pub use pool::{Options, Orchestrator};
pub use rate::Exceeded;
