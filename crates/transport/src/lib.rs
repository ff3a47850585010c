//! How we are reached over HTTP: one endpoint for both eras, in front of any host. Knows no workflow and no tool, and
//! keeps nothing for a client that it could not do without: a client's handshake is in the token that it carries, so
//! that any process with the key serves any request.

mod admission;
mod answer;
mod body;
mod budget;
mod calls;
mod connections;
mod ended;
mod endpoints;
mod events;
mod exchange;
mod feed;
mod get;
mod guard;
mod handshake_token;
mod host;
mod impatient;
pub mod limits;
mod metrics;
mod page;
mod peers;
mod post;
mod probes;
mod routes;
mod serve;
mod service;
mod stream;

pub use calls::{Calls, Context, Event, News, OutcomeFuture, Threads, Work, block_on, guarded};
pub use endpoints::{EndpointAnswer, EndpointRequest};
pub use feed::Feed;
pub use guard::Allowed;
pub use host::{Denied, Following, Host, Principal};
pub use limits::Limits;
pub use page::{Family, Labels, Page};
pub use serve::serve;
pub use service::{Options, Service};
