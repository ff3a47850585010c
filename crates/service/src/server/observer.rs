//! Looks on while calls are carried out: counts each, says a line about it in the log, and makes a span of it where
//! traces are wanted. A call that nobody asks about costs an addition, and no look at the clock.

mod about;
mod calls;

use std::sync::Arc;
use std::time::Instant;

use mcp::{Call, Caller, Outcome, Transport};

use about::About;
pub(crate) use calls::Calls;
use calls::{Ended, code, ended};

use super::tools::TOOLS;
use super::traces::Tracer;

pub struct Observer {
    pub(crate) calls: Calls,
    pub tracer: Option<Tracer>,
    /// Somebody may ask how long calls take.
    is_timed: bool,
    /// Somebody reads what calls are about.
    is_told: bool,
}

impl Observer {
    /// To be made once the log has begun.
    pub fn new(tracer: Option<Tracer>, has_metrics: bool) -> Self {
        let is_told = tracer.is_some() || tracing::enabled!(tracing::Level::INFO);
        let calls = Calls::new(TOOLS.iter().map(|tool| tool.name));
        Self { calls, tracer, is_timed: is_told || has_metrics, is_told }
    }

    /// Calls come with what their requests say about themselves.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// A call is about to be carried out.
    pub(super) fn begin(self: &Arc<Self>, call: &Call, caller: &Caller, via: Transport) -> Watched {
        let begun = self.is_timed.then(Instant::now);
        let about = begun.filter(|_| self.is_told).map(|begun| {
            let tracer = self.tracer.as_ref();
            Box::new(About::new(call, caller, via, begun, tracer))
        });
        let is_settling = matches!(call, Call::Settle { .. } | Call::Forget { .. });
        let name = call.name();
        let under_way = Some(UnderWay { name, is_settling, begun, about });
        Watched { observer: Arc::clone(self), under_way }
    }

    fn end(&self, under_way: UnderWay, ended: Ended, outcome: Option<&Outcome>) {
        let UnderWay { name, begun, about, .. } = under_way;
        let now = begun.map(|_| Instant::now());
        let time = begun.zip(now).map(|(begun, now)| now.saturating_duration_since(begun));
        self.calls.count(name, ended, outcome.and_then(|outcome| code(outcome, None)), time);
        if let (Some(about), Some(now), Some(time)) = (about, now, time) {
            about.tell(self.tracer.as_ref(), ended, outcome, now, time);
        }
    }
}

/// A call that is being looked at. Dropped before its outcome is there, it was given up, or a panic ended it.
pub(super) struct Watched {
    observer: Arc<Observer>,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    name: &'static str,
    /// Nobody waits for its outcome, which says nothing.
    is_settling: bool,
    begun: Option<Instant>,
    about: Option<Box<About>>,
}

impl Watched {
    /// The call has come to this.
    pub(super) fn end(mut self, outcome: &Outcome) {
        if let Some(under_way) = self.under_way.take() {
            let ended = match ended(outcome) {
                Ended::Fault if under_way.is_settling => Ended::Ok,
                ended => ended,
            };
            self.observer.end(under_way, ended, Some(outcome));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            let ended = if std::thread::panicking() { Ended::Fault } else { Ended::Dropped };
            self.observer.end(under_way, ended, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::Pin;
    use std::task::{Context as TaskContext, Poll, Waker};

    use serde_json::value::RawValue;

    use super::*;

    const LINT: &str = "workflow_lint";

    fn observer() -> Arc<Observer> {
        Arc::new(Observer::new(None, true))
    }

    fn watched(
        observer: &Arc<Observer>,
        call: impl Future<Output = Outcome> + 'static,
    ) -> Pin<Box<dyn Future<Output = Outcome>>> {
        let arguments = RawValue::from_string("{}".to_owned()).unwrap();
        let lint = Call::Tool { name: LINT, arguments, is_method: false };
        let watched = observer.begin(&lint, &Caller::default(), Transport::Stdio);
        Box::pin(async move {
            let outcome = call.await;
            watched.end(&outcome);
            outcome
        })
    }

    fn poll(call: &mut Pin<Box<dyn Future<Output = Outcome>>>) -> Poll<Outcome> {
        call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()))
    }

    /// How calls of the tool have ended, and how many times were taken.
    fn counted(observer: &Observer) -> (Vec<(&'static str, u64)>, u64) {
        let count = observer.calls.all().find(|count| count.tool == Some(LINT)).unwrap();
        let ended = count.ended().filter(|(_, number)| *number > 0).collect();
        (ended, count.times().count())
    }

    #[test]
    fn each_call_is_counted_once_whenever_it_ends() {
        let observer = observer();
        assert!(poll(&mut watched(&observer, async { Outcome::Busy })).is_ready());
        assert_eq!(counted(&observer), (vec![("dropped", 1)], 1));

        // It waits for something.
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut later = watched(&observer, async { receiver.await.unwrap() });
        assert!(poll(&mut later).is_pending());
        assert_eq!(counted(&observer).1, 1, "not yet");
        sender.send(Outcome::Fault).unwrap();
        assert!(poll(&mut later).is_ready());
        assert_eq!(counted(&observer), (vec![("fault", 1), ("dropped", 1)], 2));
    }

    #[test]
    fn panic_is_a_fault() {
        let observer = observer();
        let mut broken = watched(&observer, async { panic!("the tool is broken") });
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut broken))).is_err());
        assert_eq!(counted(&observer), (vec![("fault", 1)], 1));
    }

    #[test]
    fn call_that_is_taken_back_is_dropped() {
        let observer = observer();
        let mut waiting = watched(&observer, pending());
        assert!(poll(&mut waiting).is_pending());
        drop(waiting);
        // One that never began.
        drop(watched(&observer, pending()));
        assert_eq!(counted(&observer), (vec![("dropped", 2)], 2));
    }

    /// Nobody waits for what comes of it, which therefore says nothing.
    #[test]
    fn an_answer_for_another_process_is_no_fault() {
        let observer = observer();
        let call = Call::Settle { answers: mcp::Answers::default() };
        let watched = observer.begin(&call, &Caller::default(), Transport::Http);
        watched.end(&Outcome::Fault);
        let count = observer.calls.all().find(|count| count.method == "settle").unwrap();
        assert_eq!(count.ended().next(), Some(("ok", 1)));
    }

    #[test]
    fn nobody_looks_at_the_clock_for_nobody() {
        let observer = Arc::new(Observer::new(None, false));
        assert!(poll(&mut watched(&observer, async { Outcome::Busy })).is_ready());
        assert_eq!(counted(&observer), (vec![("dropped", 1)], 0));
        assert!(!observer.is_told());
    }
}
