//! Looks on while calls are carried out: counts each, says a line about it in the log, and makes a span of it where
//! traces are wanted. A call that nobody asks about costs an addition, and no look at the clock.

mod about;
mod calls;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use mcp::{Call, Caller, Carried, Outcome, Transport, guarded};

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
    pub(super) fn begin(&self, call: &Call, caller: &Caller, via: Transport) -> Watched<&Self> {
        let begun = self.is_timed.then(Instant::now);
        let about = begun.filter(|_| self.is_told).map(|begun| {
            let tracer = self.tracer.as_ref();
            Box::new(About::new(call, caller, via, begun, tracer))
        });
        let is_settling = matches!(call, Call::Settle { .. } | Call::Forget { .. });
        let name = call.name();
        Watched { observer: self, under_way: Some(UnderWay { name, is_settling, begun, about }) }
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
pub(super) struct Watched<O: Deref<Target = Observer>> {
    observer: O,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    name: &'static str,
    /// Nobody waits for its outcome, which says nothing.
    is_settling: bool,
    begun: Option<Instant>,
    about: Option<Box<About>>,
}

impl Watched<&Observer> {
    /// Looks at what comes of it, now or later.
    pub(super) fn over(mut self, observer: &Arc<Observer>, carried: Carried) -> Carried {
        if let Carried::Now(outcome) = &carried {
            self.end(outcome);
            return carried;
        }
        let under_way = self.under_way.take();
        Watched { observer: Arc::clone(observer), under_way }.until(carried)
    }
}

impl Watched<Arc<Observer>> {
    fn until(mut self, carried: Carried) -> Carried {
        match carried {
            Carried::Now(outcome) => {
                self.end(&outcome);
                Carried::Now(outcome)
            }
            Carried::Later(work) => Carried::Later(Box::new(move || {
                let outcome = guarded(work);
                self.end(&outcome);
                outcome
            })),
            Carried::Told(begin) => Carried::Told(Box::new(move |finish| {
                begin(finish.through(move |carried| self.until(carried)));
            })),
        }
    }
}

impl<O: Deref<Target = Observer>> Watched<O> {
    fn end(&mut self, outcome: &Outcome) {
        if let Some(under_way) = self.under_way.take() {
            let ended = match ended(outcome) {
                Ended::Fault if under_way.is_settling => Ended::Ok,
                ended => ended,
            };
            self.observer.end(under_way, ended, Some(outcome));
        }
    }
}

impl<O: Deref<Target = Observer>> Drop for Watched<O> {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            let ended = if std::thread::panicking() { Ended::Fault } else { Ended::Dropped };
            self.observer.end(under_way, ended, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use mcp::{Finish, News};
    use serde_json::value::RawValue;

    use super::*;

    const LINT: &str = "workflow_lint";

    fn observer() -> Arc<Observer> {
        Arc::new(Observer::new(None, true))
    }

    fn carry_out(observer: &Arc<Observer>, carried: impl FnOnce() -> Carried) -> Carried {
        let arguments = RawValue::from_string("{}".to_owned()).unwrap();
        let call = Call::Tool { name: LINT, arguments, is_method: false };
        let watched = observer.begin(&call, &Caller::default(), Transport::Stdio);
        let carried = carried();
        watched.over(observer, carried)
    }

    /// How calls of the tool have ended, and how many times were taken.
    fn counted(observer: &Observer) -> (Vec<(&'static str, u64)>, u64) {
        let count = observer.calls.all().find(|count| count.tool == Some(LINT)).unwrap();
        let ended = count.ended().filter(|(_, number)| *number > 0).collect();
        (ended, count.times().count())
    }

    fn busy() -> Carried {
        Outcome::Busy.into()
    }

    #[test]
    fn each_call_is_counted_once_whenever_it_ends() {
        let observer = observer();
        assert!(matches!(carry_out(&observer, busy), Carried::Now(Outcome::Busy)));
        assert_eq!(counted(&observer), (vec![("refused", 1)], 1));

        // By work that takes its time.
        let later = || Carried::Later(Box::new(|| Outcome::BadParams(String::new())));
        let Carried::Later(work) = carry_out(&observer, later) else { panic!("not later") };
        assert_eq!(counted(&observer).1, 1, "not yet");
        work();
        assert_eq!(counted(&observer), (vec![("refused", 2)], 2));

        // By somebody else, who leaves the rest to more work.
        let told = || -> Carried {
            let more = || Carried::Later(Box::new(|| Outcome::Fault));
            Carried::Told(Box::new(move |finish| finish.done(more())))
        };
        let Carried::Told(begin) = carry_out(&observer, told) else { panic!("not told") };
        let (sender, news) = channel();
        begin(Finish::new(move |piece| sender.send(piece).unwrap()));
        let News::Done(Carried::Later(work)) = news.recv().unwrap() else { panic!("not later") };
        assert_eq!(counted(&observer).1, 2, "not yet");
        work();
        assert_eq!(counted(&observer), (vec![("refused", 2), ("fault", 1)], 3));
    }

    #[test]
    fn a_panic_is_a_fault_wherever_it_comes() {
        let observer = observer();
        let at_once = AssertUnwindSafe(|| carry_out(&observer, || panic!("at once")));
        assert!(catch_unwind(at_once).is_err());
        let later = || Carried::Later(Box::new(|| panic!("later")));
        let Carried::Later(work) = carry_out(&observer, later) else { panic!("not later") };
        assert!(matches!(work(), Outcome::Fault));
        let told = || Carried::Told(Box::new(|_| panic!("told")));
        let Carried::Told(begin) = carry_out(&observer, told) else { panic!("not told") };
        let (sender, news) = channel();
        let finish = Finish::new(move |piece| sender.send(piece).unwrap());
        assert!(catch_unwind(AssertUnwindSafe(|| begin(finish))).is_err());
        assert!(matches!(news.recv().unwrap(), News::Done(Carried::Now(Outcome::Fault))));
        assert_eq!(counted(&observer), (vec![("fault", 3)], 3));
    }

    #[test]
    fn what_never_begins_is_dropped() {
        let observer = observer();
        drop(carry_out(&observer, || Carried::Later(Box::new(|| Outcome::Busy))));
        drop(carry_out(&observer, || Carried::Told(Box::new(|finish| finish.done(Outcome::Busy)))));
        assert_eq!(counted(&observer), (vec![("dropped", 2)], 2));
    }

    /// Nobody waits for what comes of it, which therefore says nothing.
    #[test]
    fn an_answer_for_another_process_is_no_fault() {
        let observer = observer();
        let call = Call::Settle { answers: mcp::Answers::default() };
        let watched = observer.begin(&call, &Caller::default(), Transport::Http);
        watched.over(&observer, Outcome::Fault.into());
        let count = observer.calls.all().find(|count| count.method == "settle").unwrap();
        assert_eq!(count.ended().next(), Some(("ok", 1)));
    }

    #[test]
    fn nobody_looks_at_the_clock_for_nobody() {
        let observer = Arc::new(Observer::new(None, false));
        carry_out(&observer, busy);
        assert_eq!(counted(&observer), (vec![("refused", 1)], 0));
        assert!(!observer.is_told());
    }
}
