//! A message that comes once and is waited for in more than one place. The receiver alone panics when it is asked again,
//! which happens where two messages arrive at the same moment and either wakes whoever waits.

use tokio::sync::oneshot::Receiver;

pub(super) struct Once<T> {
    receiver: Receiver<T>,
    received: Option<Option<T>>,
}

impl<T> Once<T> {
    pub(super) fn new(receiver: Receiver<T>) -> Self {
        Self { receiver, received: None }
    }

    /// Waits until it is there, or nobody is left to send it. Whoever gives up the wait loses nothing.
    pub(super) async fn wait(&mut self) -> &mut Option<T> {
        if self.received.is_none() {
            self.received = Some((&mut self.receiver).await.ok());
        }
        self.received.get_or_insert_default()
    }

    /// Whoever would send it learns that nobody wants it.
    pub(super) fn close(&mut self) {
        self.receiver.close();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_can_be_asked_again() {
        let (sender, receiver) = oneshot::channel();
        let mut once = Once::new(receiver);
        sender.send(7).unwrap();
        assert_eq!(*once.wait().await, Some(7));
        assert_eq!(once.wait().await.take(), Some(7));
        assert_eq!(*once.wait().await, None);
    }

    #[tokio::test]
    async fn and_again_when_nobody_sends_it() {
        let (sender, receiver) = oneshot::channel::<u8>();
        let mut once = Once::new(receiver);
        drop(sender);
        assert_eq!(*once.wait().await, None);
        assert_eq!(*once.wait().await, None);
    }
}
