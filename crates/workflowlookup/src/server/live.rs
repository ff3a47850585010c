//! Sessions change while clients look at them: by their own calls, by another client, by somebody at the command line.
//! What has been written since the last look is told, whoever wrote it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp::{Audience, Changed, Connection, Private};
use store::limits::PAGE_MAX;
use store::{Change, Mark, Status};

use super::session_resources;
use crate::access::Right;
use crate::app::App;
use crate::sessions::Open;

/// How often somebody looks who has to wait for a network, and how many looks are kept.
const LOOK: Duration = Duration::from_secs(1);
const SEEN_MAX: usize = 64;

/// How many pages of changes one look takes in.
const PAGES_MAX: usize = 20;

/// What a look has shown.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) changed: Option<Changed>,
    /// There is something that may change while nobody calls.
    pub(crate) may_change: bool,
}

/// Looks for a client, again and again.
pub(crate) fn looking(app: App) -> impl FnMut(&Connection) -> Looked {
    let mut mark = None;
    let mut elsewhere = None;
    move |connection| {
        look(&app, connection, |open| match app.sessions().are_remote() {
            true => elsewhere.get_or_insert_with(|| Elsewhere::begin(open)).seen(),
            false => since(open, &mut mark, Hearers::Local),
        })
    }
}

fn look(
    app: &App,
    connection: &Connection,
    see: impl FnOnce(&Arc<Open>) -> Option<Changed>,
) -> Looked {
    let follows = connection.follows(session_resources::SCHEME);
    if !follows && !connection.hears_of_lists() {
        return Looked::default();
    }
    // Only who follows a session makes us look into a file that nothing else has opened.
    let open = match follows {
        true => app.sessions().get_if_any().ok().flatten(),
        false => app.sessions().opened(),
    };
    match open {
        Some(open) => Looked { changed: see(&open), may_change: true },
        None => Looked { changed: None, may_change: follows },
    }
}

/// Looks on a thread of its own, where a look has to wait for a network.
struct Elsewhere(Arc<Mutex<VecDeque<Changed>>>);

impl Elsewhere {
    /// Goes on until this is dropped.
    fn begin(open: &Arc<Open>) -> Self {
        let seen = Arc::<Mutex<VecDeque<Changed>>>::default();
        let (open, told) = (Arc::clone(open), Arc::downgrade(&seen));
        let looking = std::thread::Builder::new().name("looking".to_owned()).spawn(move || {
            let mut mark = None;
            while let Some(told) = told.upgrade() {
                let changed = since(&open, &mut mark, Hearers::Local);
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.extend(changed);
                // Whoever does not look for so long misses the oldest.
                while told.len() > SEEN_MAX {
                    told.pop_front();
                }
                drop(told);
                std::thread::sleep(LOOK);
            }
        });
        if let Err(error) = looking {
            tracing::warn!("changes of sessions will not be seen: {error}");
        }
        Self(seen)
    }

    fn seen(&self) -> Option<Changed> {
        self.0.try_lock().ok()?.pop_front()
    }
}

/// Who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearers {
    /// The local user, who may hear of everything.
    Local,
    /// Also principals, each of what they may see.
    Principals,
}

/// What was written since the last look, whoever wrote it.
pub(crate) fn since(open: &Open, mark: &mut Option<Mark>, hearers: Hearers) -> Option<Changed> {
    let store = open.sessions.store();
    let Some(since) = mark.as_ref().or(open.opened_at.as_ref()) else {
        *mark = store.mark().ok();
        return None;
    };
    let mut since = since.clone();
    let mut changes = Vec::new();
    for _ in 0..PAGES_MAX {
        match store.changes(&since) {
            Ok((now, page)) => {
                since = now;
                let is_last = page.len() < PAGE_MAX;
                changes.extend(page);
                if is_last {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!("changes of sessions cannot be seen now: {error}");
                break;
            }
        }
    }
    *mark = Some(since);
    (!changes.is_empty()).then(|| changed(open, &changes, hearers))
}

/// What this means for clients.
fn changed(open: &Open, changes: &[Change], hearers: Hearers) -> Changed {
    // Somebody has decided, or nobody has to any more.
    let is_settled = |change: &&Change| {
        change.status != Status::Waiting
            && ["approved", "declined", "rewound"].contains(&&*change.kind)
    };
    let settled: BTreeSet<&str> =
        changes.iter().filter(is_settled).map(|change| &*change.session).collect();
    let mut sessions: BTreeMap<&str, (&Change, bool)> = BTreeMap::new();
    for change in changes {
        // A session is in the list from its beginning to its end, and again when somebody goes back.
        let is_listed =
            change.status == Status::Complete || ["started", "rewound"].contains(&&*change.kind);
        sessions.entry(&change.session).or_insert((change, false)).1 |= is_listed;
    }
    Changed {
        private: sessions
            .into_values()
            .map(|(change, is_listed)| private(open, change, is_listed, hearers))
            .collect(),
        settled: settled.into_iter().map(session_resources::uri).collect(),
        ..Changed::default()
    }
}

/// A session that has changed, and who may hear of it now.
fn private(open: &Open, change: &Change, is_listed: bool, hearers: Hearers) -> Private {
    let heard_by = match hearers {
        Hearers::Local => Audience { unnamed: true, ..Audience::default() },
        Hearers::Principals => Audience {
            unnamed: true,
            principals: who_sees(open, change),
            scopes: vec![Right::Admin.name().into()],
        },
    };
    let listed_by = match is_listed {
        true => Audience { unnamed: change.owner == open.user, ..heard_by.clone() },
        false => Audience::default(),
    };
    Private { uri: session_resources::uri(&change.session), heard_by, listed_by }
}

/// The owner, and whom it is shared with at this moment. Where that cannot be seen, nobody else is told.
fn who_sees(open: &Open, change: &Change) -> Vec<Arc<str>> {
    let shared = || match &change.shared_with {
        Some(shared) => Ok(shared.clone()),
        None => open.sessions.store().shares(&change.session),
    };
    let shared = match shared() {
        // It is gone by now.
        Err(store::Error::NotFound) => Vec::new(),
        Err(error) => {
            tracing::warn!("whom a session is shared with cannot be seen now: {error}");
            Vec::new()
        }
        Ok(shared) => shared,
    };
    std::iter::once(&change.owner).chain(&shared).map(|name| Arc::from(&**name)).collect()
}
