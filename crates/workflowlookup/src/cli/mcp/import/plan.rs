//! What becomes of each server that a client has. Nothing here touches a file.

use registry::clients::{Found, Scope};
use registry::{Draft, Registry, Server};
use serde::Serialize;

use crate::cli::program;

/// One server of a client's.
pub(super) struct Planned<'a> {
    pub(super) found: &'a Found,
    pub(super) draft: &'a Draft,
    pub(super) status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    New,
    /// The registry has it, reached in the same way.
    Known,
    /// The registry has another one by this id.
    Conflict,
    /// An earlier one of these has the same id, and is reached in the same way.
    Repeated,
    /// An earlier one of these has the same id, and is another.
    Clash,
    /// Of this project alone, and the registry that is written is for all.
    Project,
    Disabled,
    /// This program: it would call itself.
    Own,
    /// The findings say why.
    Unusable,
}

impl Status {
    /// For people, as the rest of a sentence about the server.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Known => "in the registry",
            Self::Conflict => "other than in the registry",
            Self::Repeated => "as above",
            Self::Clash => "other than above",
            Self::Project => "of this project",
            Self::Disabled => "disabled",
            Self::Own => "this program",
            Self::Unusable => "cannot be used",
        }
    }
}

/// Whether what the registry has is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflicts {
    Keep,
    Replace,
}

/// For whom what is written counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whatever was chosen is written.
    Chosen,
    /// Every project: what only this one has is left out.
    Everywhere,
}

pub(super) fn plan<'a>(found: &'a [Found], registry: &Registry, reach: Reach) -> Vec<Planned<'a>> {
    let mut planned: Vec<Planned<'a>> = Vec::new();
    for found in found {
        for server in &found.reading.servers {
            let status = match status(server, &planned, registry) {
                Status::New | Status::Conflict
                    if reach == Reach::Everywhere && found.scope == Scope::Project =>
                {
                    Status::Project
                }
                status => status,
            };
            planned.push(Planned { found, draft: &server.draft, status });
        }
    }
    planned
}

fn status(server: &Server, earlier: &[Planned<'_>], registry: &Registry) -> Status {
    let draft = &server.draft;
    let is_own = draft.id == program::NAME
        || draft.command().is_some_and(|command| program::stem(command) == program::NAME);
    let is_taken = |planned: &&Planned<'_>| {
        let is_wanted = matches!(planned.status, Status::New | Status::Known | Status::Conflict);
        is_wanted && planned.draft.id == draft.id
    };
    if is_own {
        Status::Own
    } else if !server.is_sound {
        Status::Unusable
    } else if draft.is_disabled {
        Status::Disabled
    } else if let Some(first) = earlier.iter().find(is_taken) {
        let is_same = first.draft.is_reached_as(draft);
        if is_same { Status::Repeated } else { Status::Clash }
    } else {
        match known(registry, &draft.id) {
            Some(known) if known.is_reached_as(draft) => Status::Known,
            Some(_) => Status::Conflict,
            None => Status::New,
        }
    }
}

/// Whatever file of the registry has it.
fn known<'r>(registry: &'r Registry, id: &str) -> Option<&'r Draft> {
    let mut all = registry.files.iter().flat_map(|file| &file.servers);
    all.find(|listed| listed.draft.id == id).map(|listed| &listed.draft)
}

/// What is to be written. Of one that is replaced, only how it is reached.
pub(super) fn wanted(
    planned: &[Planned<'_>],
    registry: &Registry,
    conflicts: Conflicts,
) -> Vec<Draft> {
    let wanted = planned.iter().filter_map(|planned| match planned.status {
        Status::New => Some(planned.draft.clone()),
        Status::Conflict if conflicts == Conflicts::Replace => {
            let known = known(registry, &planned.draft.id)?;
            Some(known.reached_as(planned.draft))
        }
        _ => None,
    });
    wanted.collect()
}
