//! How a connection began: what the server said about itself, and in which of the two ways it speaks.
//!
//! A server that does not know the modern way should say so, but some say nothing at all. After a while we go on in the
//! old way without its answer. Should that answer come late and say that the server is modern, and should the old way fail,
//! then we know better.

use std::sync::Mutex;

use rmcp::model::{DiscoverResult, InitializeResult, ProtocolVersion, ServerResult};
use serde_json::value::RawValue;

use super::failure::Failure;
use super::info::Era;
use super::typed;
use crate::lock;

/// The largest handshake.
const HANDSHAKE_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Handshake(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What the server said about itself, in the way that we speak with it.
    said: Option<(Era, Box<RawValue>)>,
    /// That it is modern, and too late.
    late: Option<Box<RawValue>>,
    failure: Option<Failure>,
}

impl Handshake {
    pub(super) fn initialized(&self, result: &RawValue) -> Result<ServerResult, String> {
        bounded(result)?;
        let initialized = typed::initialized(result)?;
        let revision = &initialized.protocol_version;
        if !ProtocolVersion::KNOWN_VERSIONS.contains(revision) {
            return Err(format!(
                "it speaks revision `{revision}` of the protocol, which we do not know"
            ));
        }
        let era = if revision.has_initialize() { Era::Legacy } else { Era::Modern };
        lock(&self.0).said = Some((era, result.to_owned()));
        Ok(ServerResult::InitializeResult(initialized))
    }

    pub(super) fn discovered(&self, result: &RawValue) -> Result<ServerResult, String> {
        bounded(result)?;
        let discovered = serde_json::from_str::<DiscoverResult>(result.get())
            .map_err(|error| format!("its answer to `server/discover` cannot be read: {error}"))?;
        lock(&self.0).said = Some((Era::Modern, result.to_owned()));
        Ok(ServerResult::DiscoverResult(discovered))
    }

    /// The answer to `server/discover`, after we had gone on without it.
    pub(super) fn discovered_late(&self, result: &RawValue) {
        lock(&self.0).late = bounded(result).ok().map(|()| result.to_owned());
    }

    /// `initialize` was refused. Where the server has said by now that it is modern, this is what it would have answered.
    pub(super) fn instead(&self) -> Option<InitializeResult> {
        let mut state = lock(&self.0);
        let late = state.late.take()?;
        let discovered = serde_json::from_str::<DiscoverResult>(late.get()).ok()?;
        let modern = ProtocolVersion::V_2026_07_28;
        if !discovered.supported_versions.contains(&modern) {
            return None;
        }
        let mut result =
            InitializeResult::new(discovered.capabilities.clone()).with_protocol_version(modern);
        if let Some(implementation) = discovered.server_info() {
            result = result.with_server_info(implementation);
        }
        if let Some(instructions) = discovered.instructions {
            result = result.with_instructions(instructions);
        }
        state.said = Some((Era::Modern, late));
        Some(result)
    }

    /// What went wrong, in our own words. The first one counts.
    pub(crate) fn fail(&self, failure: Failure) {
        lock(&self.0).failure.get_or_insert(failure);
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        lock(&self.0).failure.clone()
    }

    pub(crate) fn said(&self) -> Option<(Era, Box<RawValue>)> {
        lock(&self.0).said.clone()
    }
}

/// What it says about itself is kept for as long as it is there.
fn bounded(result: &RawValue) -> Result<(), String> {
    match result.get().len() {
        0..=HANDSHAKE_BYTES_MAX => Ok(()),
        bytes => {
            Err(format!("its handshake has {bytes} bytes, and {HANDSHAKE_BYTES_MAX} are the most"))
        }
    }
}
