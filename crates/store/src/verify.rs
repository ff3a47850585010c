//! Computing a chain anew, and what is found wrong with it. Everything that is stored is doubted: after the first wrong
//! event the chain goes on from what is stored, so that all that were changed are named and not only the first.

use std::fmt;

use crate::chain::{Chain, Hash, Link, Root};
use crate::limits::FLAWS_MAX;
use crate::model::{Meta, Version};

/// What came of it. Events and definition are sound if there are no flaws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What the head says.
    pub version: Version,
    /// At most [`FLAWS_MAX`] of them.
    pub flaws: Vec<Flaw>,
}

impl Verified {
    pub fn is_sound(&self) -> bool {
        self.flaws.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Owner, key, workflow, goal, time of start or the definition's text.
    Start,
    /// Its content or its hash.
    Event(Version),
    Missing(Version),
    /// An event that the head does not know.
    Surplus(Version),
    /// The head, at this version: status, step, revision, time or the number of events.
    Head(Version),
    /// The cached state of this version; it is not used, and an append with a new one replaces it.
    Snapshot(Version),
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => out.write_str("the start or the definition was changed"),
            Self::Event(version) => write!(out, "event {version} was changed"),
            Self::Missing(version) => write!(out, "event {version} is missing"),
            Self::Surplus(version) => write!(out, "event {version} was added behind the head"),
            Self::Head(version) => write!(out, "the head at version {version} was changed"),
            Self::Snapshot(version) => write!(out, "the snapshot of version {version} was changed"),
        }
    }
}

/// Goes through one log, event by event.
pub(crate) struct Verifier<'a> {
    chain: &'a Chain,
    meta: &'a Meta,
    seal: Option<Hash>,
    previous: Hash,
    /// The hash that the head stands on.
    last: Option<Hash>,
    expected: Version,
    flaws: Vec<Flaw>,
}

impl<'a> Verifier<'a> {
    /// Begins with what stands in the session's own row, and the text of its definition.
    pub(crate) fn new(
        chain: &'a Chain,
        meta: &'a Meta,
        stored_root: Option<Hash>,
        seal: Option<Hash>,
        definition: Option<&[u8]>,
    ) -> Self {
        let root = chain.root(&Root {
            id: &meta.id,
            key: meta.key.as_deref(),
            owner: &meta.owner,
            workflow: &meta.workflow,
            goal: &meta.goal,
            definition_hash: &meta.definition,
            definition_text: definition.unwrap_or_default(),
            created: meta.created,
        });
        let is_sound = stored_root == Some(root) && definition.is_some();
        let flaws = if is_sound { Vec::new() } else { vec![Flaw::Start] };
        let previous = stored_root.unwrap_or(root);
        Self { chain, meta, seal, previous, last: None, expected: 1, flaws }
    }

    /// More would not be told.
    pub(crate) fn is_full(&self) -> bool {
        self.flaws.len() >= FLAWS_MAX
    }

    /// The next event: the hash that it has, and what it binds; none where that can be no event.
    pub(crate) fn event(
        &mut self,
        version: Version,
        stored: Option<Hash>,
        link: Option<&Link<'_>>,
    ) {
        let end = self.meta.version;
        let missing = self.expected..version.min(end + 1);
        self.flaws.extend(missing.take(FLAWS_MAX).map(Flaw::Missing));
        self.expected = version.saturating_add(1);
        if version > end || version == 0 {
            self.flaws.push(Flaw::Surplus(version));
            return;
        }
        let computed = link.map(|link| self.chain.link(&self.previous, link));
        if stored.is_none() || stored != computed {
            self.flaws.push(Flaw::Event(version));
        }
        self.previous = stored.unwrap_or_default();
        if version == end {
            self.last = Some(self.previous);
        }
    }

    /// After the last event, with what is wrong with the snapshot.
    pub(crate) fn end(mut self, snapshot: Option<Flaw>) -> Verified {
        let Meta { id, version, head, touched, .. } = self.meta;
        let missing = self.expected..=*version;
        let room = FLAWS_MAX.saturating_sub(self.flaws.len());
        self.flaws.extend(missing.take(room).map(Flaw::Missing));
        let sealed = self.last.map(|last| self.chain.seal(&last, id, *version, head, *touched));
        if self.last.is_some() && sealed != self.seal || *version == 0 {
            self.flaws.push(Flaw::Head(*version));
        }
        self.flaws.extend(snapshot);
        self.flaws.truncate(FLAWS_MAX);
        Verified { version: *version, flaws: self.flaws }
    }
}
