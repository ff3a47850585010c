//! Loads the catalogue beside the conversation and watches it from then on. What comes of it is told as news,
//! through a bounded queue; nothing here speaks with the client.

use std::io;
use std::sync::mpsc::SyncSender;

use catalog::{Snapshot, Watch};

use crate::app;
use crate::server::Host;
use crate::server::host::changed;
use crate::server::wake::Waker;

/// Loads the catalogue on a thread of its own, and watches it from then on.
pub(super) fn load(host: &Host, news: SyncSender<Loading>, waker: Waker) -> io::Result<()> {
    let tell = teller(news, waker);
    let (tell_loaded, tell_change) = (tell.clone(), tell.clone());
    let loading = host.app().loading(
        move |snapshot| {
            report(snapshot);
            tell_loaded(Loading::Loaded);
        },
        move |change| tell_change(Loading::Changed(changed(change))),
        host.upstreams().beside(),
    );
    let thread = std::thread::Builder::new().name("load".to_owned());
    thread.spawn(move || match guarded_loading(loading) {
        Ok(watch) => tell(Loading::Watching(watch)),
        Err(error) => tell(Loading::NotWatching(error)),
    })?;
    Ok(())
}

/// Somebody else has loaded the catalogue, and watches it: what changes comes with everything else.
pub(super) fn attach(news: SyncSender<Loading>, waker: Waker) {
    teller(news, waker)(Loading::Loaded);
}

fn teller(news: SyncSender<Loading>, waker: Waker) -> impl Fn(Loading) + Clone + Send + 'static {
    move |piece: Loading| {
        // We are gone only when the process ends.
        let _ = news.send(piece);
        waker.wake();
    }
}

pub(in crate::server) fn report(snapshot: &Snapshot) {
    for message in app::missing_folders(snapshot) {
        tracing::warn!("{message}");
    }
    for shadow in snapshot.untrusted() {
        tracing::warn!(
            id = %shadow.entry.id,
            file = %shadow.entry.path.display(),
            "workflow does not override another of its id: it is not trusted; `workflowlookup trust` shows it"
        );
    }
    let workflows = snapshot.workflows().count();
    let broken = snapshot.entries().len() - workflows;
    if broken > 0 {
        tracing::warn!(
            "workflows that cannot be used: {broken}; `workflowlookup sources` says why"
        );
    }
    tracing::info!(workflows, "the catalogue is loaded");
}

fn guarded_loading(loading: impl FnOnce() -> io::Result<Watch>) -> io::Result<Watch> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(loading));
    result.unwrap_or_else(|_| Err(io::Error::other("a panic, see the log")))
}

/// What other threads tell us.
pub(super) enum Loading {
    /// The catalogue is there.
    Loaded,
    /// From now on edits are seen…
    Watching(Watch),
    /// …or not.
    NotWatching(io::Error),
    Changed(mcp::Changed),
}
