//! Sessions change while clients look at them: by their own calls, by another client, by somebody at the command line.
//! What has been written since the last look is told, whoever wrote it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp::{Changed, Connection};
use store::{Change, Mark, Status};

use super::session_resources;
use crate::app::App;
use crate::sessions::Open;

/// How often somebody looks who has to wait for a network, and how many looks are kept.
const LOOK: Duration = Duration::from_secs(1);
const SEEN_MAX: usize = 64;

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
            false => since(open, &mut mark),
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
                let changed = since(&open, &mut mark);
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

/// What was written since the last look, whoever wrote it.
pub(crate) fn since(open: &Open, mark: &mut Option<Mark>) -> Option<Changed> {
    let store = open.sessions.store();
    let Some(since) = mark.as_ref().or(open.opened_at.as_ref()) else {
        *mark = store.mark().ok();
        return None;
    };
    match store.changes(since) {
        Ok((now, changes)) => {
            *mark = Some(now);
            (!changes.is_empty()).then(|| changed(open, &changes))
        }
        Err(error) => {
            tracing::warn!("changes of sessions cannot be seen now: {error}");
            None
        }
    }
}

/// What this means for clients.
fn changed(open: &Open, changes: &[Change]) -> Changed {
    // A session is in the list from its beginning to its end, and again when somebody goes back.
    let is_listed = |change: &Change| {
        change.owner == open.user
            && (change.status == Status::Complete
                || ["started", "rewound"].contains(&&*change.kind))
    };
    // Somebody has decided, or nobody has to any more.
    let is_settled = |change: &&Change| {
        change.status != Status::Waiting
            && ["approved", "declined", "rewound"].contains(&&*change.kind)
    };
    let uris = |changes: &mut dyn Iterator<Item = &Change>| {
        let sessions: BTreeSet<&str> = changes.map(|change| &*change.session).collect();
        sessions.into_iter().map(session_resources::uri).collect()
    };
    Changed {
        resources: changes.iter().any(is_listed),
        uris: uris(&mut changes.iter()),
        settled: uris(&mut changes.iter().filter(is_settled)),
        ..Changed::default()
    }
}
