//! What is done for whoever asks, the command line or a client: workflows found and handed out, sessions kept, other servers
//! called. Knows what an answer is, and nothing of how a terminal shows it.

pub mod access;
pub mod app;
pub mod audit;
pub mod auth;
pub mod bundled;
pub mod error;
pub mod failure;
pub mod logins;
mod seal;
pub mod server;
pub mod sessions;
pub mod trust;
mod web_client;
pub mod words;
