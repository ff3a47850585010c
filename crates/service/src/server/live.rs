//! Sessions change while clients look at them: by their own calls, by another client, by somebody at the command line.
//! What has been written since the last look is told, whoever wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use mcp::{Audience, Changed, Connection, Private};
use store::limits::PAGE_MAX;
use store::{Change, Mark, Status};

use super::session_resources;
use crate::access::Right;
use crate::app::App;
use crate::sessions::Open;

/// How many pages of changes one look takes in.
const PAGES_MAX: usize = 20;

/// What a look has shown.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) changed: Option<Changed>,
    /// There is something that may change while nobody calls.
    pub(crate) may_change: bool,
}

/// How long a client may have to wait for a look over a network. What takes longer is seen by the next look.
const A_MOMENT: Duration = Duration::from_millis(100);

/// Looks for a client, again and again.
pub(crate) fn looking(app: App) -> impl FnMut(&Connection) -> Looked {
    let mut looker = Looker::default();
    move |connection| look(&app, connection, &mut looker)
}

/// What was seen, and what is being looked at.
#[derive(Debug, Default)]
struct Looker {
    mark: Option<Mark>,
    under_way: Option<Receiver<(Option<Mark>, Option<Changed>)>>,
}

impl Looker {
    fn look(&mut self, open: &Arc<Open>) -> Option<Changed> {
        if !open.sessions.store().is_remote() {
            return since(open, &mut self.mark, Hearers::Local);
        }
        let begun = match self.under_way.take() {
            Some(under_way) => under_way.try_recv().map_err(|error| (error, under_way)),
            None => {
                let under_way = self.begin(open)?;
                let looked = under_way.recv_timeout(A_MOMENT);
                looked.map_err(|_| (TryRecvError::Empty, under_way))
            }
        };
        match begun {
            Ok((mark, changed)) => {
                self.mark = mark;
                changed
            }
            Err((TryRecvError::Empty, under_way)) => {
                self.under_way = Some(under_way);
                None
            }
            Err((TryRecvError::Disconnected, _)) => None,
        }
    }

    /// On a thread that may wait for as long as it takes.
    fn begin(&self, open: &Arc<Open>) -> Option<Receiver<(Option<Mark>, Option<Changed>)>> {
        let (sender, looked) = sync_channel(1);
        let (open, mut mark) = (Arc::clone(open), self.mark.clone());
        let thread = Builder::new().name("look".to_owned()).spawn(move || {
            let changed = since(&open, &mut mark, Hearers::Local);
            // Nobody wants to know any more only when the process ends.
            let _ = sender.send((mark, changed));
        });
        thread.is_ok().then_some(looked)
    }
}

fn look(app: &App, connection: &Connection, looker: &mut Looker) -> Looked {
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
        Some(open) => Looked { changed: looker.look(&open), may_change: true },
        None => Looked { changed: None, may_change: follows },
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
