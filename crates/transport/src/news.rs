//! What the calls of one exchange say while they are carried out: a bounded queue, in which every outcome has a place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp::{BATCH_MAX, News};
use tokio::sync::mpsc;

use crate::limits::PIECES_MAX;

/// News are large, and a channel makes room for many: most exchanges have none.
type Queued<T> = (T, Box<News>);

/// `T` says which call it is.
#[derive(Clone)]
pub(crate) struct Sender<T> {
    queue: mpsc::Sender<Queued<T>>,
    /// How many wait that are no outcomes.
    pieces: Arc<AtomicUsize>,
}

pub(crate) struct Receiver<T> {
    queue: mpsc::Receiver<Queued<T>>,
    pieces: Arc<AtomicUsize>,
}

/// A body has at most [`BATCH_MAX`] calls, and each of them has one outcome at a time.
pub(crate) fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX + BATCH_MAX);
    let pieces = Arc::new(AtomicUsize::new(0));
    (Sender { queue: sender, pieces: Arc::clone(&pieces) }, Receiver { queue: receiver, pieces })
}

impl<T> Sender<T> {
    /// Never waits. Progress and logs are dropped while too many of them wait.
    pub(crate) fn send(&self, ticket: T, news: News) {
        if !matches!(news, News::Done(_)) && !self.has_room_for_piece() {
            return;
        }
        // There is room. Nobody listens if the exchange is over.
        let _ = self.queue.try_send((ticket, Box::new(news)));
    }

    fn has_room_for_piece(&self) -> bool {
        let more = |pieces| (pieces < PIECES_MAX).then_some(pieces + 1);
        self.pieces.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

impl<T> Receiver<T> {
    pub(crate) async fn recv(&mut self) -> Option<(T, News)> {
        let (ticket, news) = self.queue.recv().await?;
        if !matches!(*news, News::Done(_)) {
            self.pieces.fetch_sub(1, Ordering::Relaxed);
        }
        Some((ticket, *news))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use mcp::{Outcome, Progress};

    use super::*;

    fn progress() -> News {
        News::Progress(Progress { done: 1.0, total: None, message: None })
    }

    #[tokio::test]
    async fn outcomes_arrive_when_progress_fills_queue() {
        let (sender, mut receiver) = queue();
        for _ in 0..2 * PIECES_MAX {
            sender.send((), progress());
        }
        for _ in 0..BATCH_MAX {
            sender.send((), News::Done(Outcome::Busy.into()));
        }
        drop(sender);
        let (mut pieces, mut outcomes) = (0, 0);
        while let Some((_, news)) = receiver.recv().await {
            match news {
                News::Done(_) => outcomes += 1,
                _ => pieces += 1,
            }
        }
        assert_eq!((pieces, outcomes), (PIECES_MAX, BATCH_MAX));
    }

    #[tokio::test]
    async fn progress_is_told_again_once_some_was_read() {
        let (sender, mut receiver) = queue();
        for _ in 0..PIECES_MAX {
            sender.send((), progress());
        }
        receiver.recv().await.unwrap();
        for _ in 0..3 {
            sender.send((), progress());
        }
        assert_eq!(receiver.queue.len(), PIECES_MAX);
    }
}
