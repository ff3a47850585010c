//! Waits for the end of a connection, and sees to it that it is a complete one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::channel::Channel;
use super::child::Kin;
use super::connection::Endings;
use super::failure::Failure;
use super::notices::Notices;
use super::stdio::PeerClosed;
use crate::wire::Secrets;

/// How long the last output of a child that has ended is waited for: somebody else may have its end of the pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// How long closing the wire may take.
const TIDYING: Duration = Duration::from_secs(8);

pub(super) struct Keeper {
    pub(super) channel: Arc<Channel>,
    /// Ends the tasks of the connection.
    pub(super) stop: CancellationToken,
    pub(super) closed: PeerClosed,
    pub(super) kin: Option<Kin>,
    pub(super) notices: Arc<Notices>,
    pub(super) secrets: Secrets,
    pub(super) endings: Endings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Politely,
    AtOnce,
    HungUp,
    /// It hears nothing any more.
    Deaf,
    /// It has forgotten our session.
    Forgetful,
}

impl Keeper {
    pub(super) async fn keep(self) {
        let Self { channel, stop, closed, mut kin, notices, secrets, endings } = self;
        let end = tokio::select! {
            biased;
            () = endings.at_once.cancelled() => End::AtOnce,
            () = endings.politely.cancelled() => End::Politely,
            () = closed.eof.cancelled() => End::HungUp,
            () = closed.broken_input.cancelled() => End::Deaf,
            () = closed.forgotten.cancelled() => {
                // Others hear for themselves that it has done nothing of theirs.
                sleep(LAST_OUTPUT).await;
                End::Forgetful
            }
            () = Kin::exited(kin.as_mut()) => {
                // What it said before is still to be heard.
                let _ = timeout(LAST_OUTPUT, closed.eof.cancelled()).await;
                End::HungUp
            }
        };
        endings.over.cancel();
        if end == End::Deaf {
            // It may still say what it knows.
            let _ = timeout(LAST_OUTPUT, closed.eof.cancelled()).await;
        }
        let why = match (end, kin.as_mut()) {
            (End::Politely, _) => "we closed it".to_owned(),
            (End::AtOnce, _) => "it did not show that it is alive, and was ended".to_owned(),
            (End::HungUp, Some(kin)) => kin.epitaph("closed its output").await,
            (End::Deaf, Some(kin)) => kin.epitaph("closed its input").await,
            (End::Forgetful, _) => "it has forgotten the session".to_owned(),
            (End::HungUp | End::Deaf, None) => "it hung up".to_owned(),
        };
        let why = secrets().hide(&why).into_owned();
        let (router, incident) = (&channel.router, channel.serial);
        router.close(|sent| Failure::Broken { why: why.clone(), sent, incident });
        tracing::debug!(server = router.server(), "the connection is over: {why}");
        stop.cancel();
        let put_away = async {
            match (kin, end) {
                (Some(kin), End::Politely) => kin.end().await,
                (Some(kin), End::AtOnce | End::HungUp | End::Deaf | End::Forgetful) => {
                    kin.end_at_once().await;
                }
                (None, _) => {}
            }
        };
        let let_go = async {
            if timeout(TIDYING, channel.close()).await.is_err() {
                tracing::warn!(
                    server = router.server(),
                    "what is left of the connection does not end"
                );
            }
        };
        tokio::join!(put_away, let_go);
        notices.gone();
        endings.done.cancel();
    }
}
