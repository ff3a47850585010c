//! Sessions change while clients look at them: by their own calls, by another client, by somebody at the command line.
//! What has been written since the last look is told, whoever wrote it.

use std::collections::BTreeSet;

use mcp::{Changed, Connection};
use store::{Change, Mark, Status};

use super::session_resources;
use crate::app::App;
use crate::sessions::Open;

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
    move |connection| look(&app, connection, &mut mark)
}

fn look(app: &App, connection: &Connection, mark: &mut Option<Mark>) -> Looked {
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
        Some(open) => Looked { changed: since(&open, mark), may_change: true },
        None => Looked { changed: None, may_change: follows },
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
