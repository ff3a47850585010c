//! Who is asked what an upstream wants to know. Over a pipe a question does not say to which call it belongs. It may
//! belong to any that is open, and also to one that was given up: the upstream may not have heard of that, or not care. So
//! it is asked only where all of these are one party's; nobody ever answers in another's place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mcp::client::RequestId;

use super::call_context::CallContext;
use crate::call::Party;

/// For so long an upstream may ask for the sake of what was given up.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);
/// So much of it is remembered. Where there was more, nobody is asked before it is over.
const GIVEN_UP_MAX: usize = 256;

pub(crate) enum Whom {
    /// By this call. Any of the others may be the one that the question belongs to, and waits for the answer too.
    Caller { by: Turn, beside: Vec<Arc<CallContext>> },
    /// These should know that there was a question.
    Nobody { why: &'static str, concerned: Vec<Arc<CallContext>> },
}

pub(crate) const CANNOT_ASK: &str = "this client cannot ask its user";
const UNCLEAR: &str = "it cannot be told whose call it belongs to, for others use the server too";

impl Whom {
    /// Where it is known whose question it is.
    pub(crate) fn just(context: &Arc<CallContext>) -> Self {
        match &context.asker {
            Some(_) => Self::Caller { by: Turn::of(context), beside: Vec::new() },
            None => Self::Nobody { why: CANNOT_ASK, concerned: vec![context.clone()] },
        }
    }

    /// Nobody waits for what it belongs to.
    pub(crate) fn gone() -> Self {
        Self::Nobody { why: "nobody waits for the call any more", concerned: Vec::new() }
    }
}

/// A question that a call asks.
pub(crate) struct Turn(Arc<CallContext>);

impl Turn {
    fn of(context: &Arc<CallContext>) -> Self {
        context.questions.fetch_add(1, Ordering::Relaxed);
        Self(context.clone())
    }

    pub(crate) fn context(&self) -> &Arc<CallContext> {
        &self.0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.questions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What was given up over one connection and has had no answer since.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    /// The oldest first.
    remembered: VecDeque<(Instant, RequestId, Party)>,
    /// When there was last more than can be remembered.
    crowded: Option<Instant>,
}

impl GivenUp {
    pub(crate) fn add(&mut self, id: RequestId, party: &Party, now: Instant) {
        self.forget_old(now);
        if self.remembered.len() >= GIVEN_UP_MAX {
            self.crowded = Some(now);
        } else {
            self.remembered.push_back((now, id, party.clone()));
        }
    }

    /// The upstream has answered it after all, and asks nothing more for its sake.
    pub(crate) fn answered(&mut self, id: RequestId) {
        self.remembered.retain(|(_, own, _)| *own != id);
    }

    /// Whom a question may be put to that does not say to which of these calls it belongs.
    pub(crate) fn whom(&mut self, open: Vec<(RequestId, &Arc<CallContext>)>, now: Instant) -> Whom {
        self.forget_old(now);
        let all = || open.iter().map(|(_, context)| (*context).clone());
        let mut parties = open
            .iter()
            .filter_map(|(_, context)| context.party.as_ref())
            .chain(self.remembered.iter().map(|(.., party)| party));
        let first = parties.next();
        let is_clear = self.crowded.is_none() && parties.all(|party| Some(party) == first);
        if open.is_empty() {
            return Whom::gone();
        }
        if !is_clear {
            return Whom::Nobody { why: UNCLEAR, concerned: all().collect() };
        }
        // Each asks its own where several ask at a time; else the last one is the likeliest.
        let likely = open.iter().filter(|(_, context)| context.asker.is_some()).min_by_key(
            |(id, context)| {
                let busy = context.questions.load(Ordering::Relaxed);
                // Ids grow.
                (busy, std::cmp::Reverse(*id))
            },
        );
        match likely {
            Some((_, by)) => {
                let beside = all().filter(|context| !Arc::ptr_eq(context, by)).collect();
                Whom::Caller { by: Turn::of(by), beside }
            }
            None => Whom::Nobody { why: CANNOT_ASK, concerned: all().collect() },
        }
    }

    fn forget_old(&mut self, now: Instant) {
        let is_old = |at: Instant| now.saturating_duration_since(at) > REMEMBERED;
        while self.remembered.front().is_some_and(|(at, ..)| is_old(*at)) {
            self.remembered.pop_front();
        }
        self.crowded = self.crowded.filter(|at| !is_old(*at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Answer, Asker, Form};
    use crate::upstream::deadline::Deadline;

    struct Somebody;

    impl Asker for Somebody {
        fn ask(&self, _: Form) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
            Box::pin(async { Answer::Cancelled })
        }
    }

    fn context(party: &Party, can_ask: bool) -> Arc<CallContext> {
        let deadline = Deadline::new(REMEMBERED, REMEMBERED);
        let asker = can_ask.then(|| Arc::new(Somebody) as Arc<dyn Asker>);
        Arc::new(CallContext { party: Some(party.clone()), asker, ..CallContext::new(deadline) })
    }

    /// The place of the call that asks.
    fn asked(
        given_up: &mut GivenUp,
        open: &[Arc<CallContext>],
        now: Instant,
    ) -> Result<usize, &'static str> {
        match given_up.whom((0..).zip(open).collect(), now) {
            Whom::Caller { by, beside } => {
                assert_eq!(beside.len(), open.len() - 1);
                Ok(open.iter().position(|context| Arc::ptr_eq(context, by.context())).unwrap())
            }
            Whom::Nobody { why, concerned } => {
                assert_eq!(concerned.len(), open.len());
                Err(why)
            }
        }
    }

    #[test]
    fn only_one_party_is_asked_and_by_a_call_that_can() {
        let (ann, bob) = (Party::named("ann"), Party::named("bob"));
        let (now, mut none) = (Instant::now(), GivenUp::default());
        let mut asked = |open: &[Arc<CallContext>]| asked(&mut none, open, now);
        assert_eq!(asked(&[context(&ann, true)]), Ok(0));
        assert_eq!(asked(&[context(&ann, false)]), Err(CANNOT_ASK));
        assert_eq!(asked(&[context(&ann, true), context(&ann, true)]), Ok(1), "the last");
        assert_eq!(asked(&[context(&ann, true), context(&ann, false)]), Ok(0));
        assert_eq!(asked(&[context(&ann, true), context(&bob, true)]), Err(UNCLEAR));
        assert_eq!(asked(&[context(&ann, false), context(&bob, true)]), Err(UNCLEAR));
        let alone = || context(&Party::alone(), true);
        assert_eq!(asked(&[alone(), alone()]), Err(UNCLEAR));
        assert!(asked(&[]).is_err());
    }

    #[test]
    fn calls_that_ask_at_a_time_ask_one_question_each() {
        let ann = Party::named("ann");
        let open: Vec<_> = (0..3).map(|_| context(&ann, true)).collect();
        let mut given_up = GivenUp::default();
        let turns: Vec<Whom> =
            (0..3).map(|_| given_up.whom((0..).zip(&open).collect(), Instant::now())).collect();
        assert!(open.iter().all(|context| context.questions.load(Ordering::Relaxed) == 1));
        drop(turns);
        assert!(open.iter().all(|context| context.questions.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn what_was_given_up_counts_until_it_is_answered_or_long_ago() {
        let (ann, bob) = (Party::named("ann"), Party::named("bob"));
        let (now, mut given_up) = (Instant::now(), GivenUp::default());
        let (anns, bobs) = ([context(&ann, true)], [context(&bob, true)]);
        given_up.add(7, &ann, now);
        assert_eq!(asked(&mut given_up, &anns, now), Ok(0));
        assert_eq!(asked(&mut given_up, &bobs, now), Err(UNCLEAR));
        given_up.answered(7);
        assert_eq!(asked(&mut given_up, &bobs, now), Ok(0));
        given_up.add(8, &ann, now);
        assert_eq!(asked(&mut given_up, &bobs, now + REMEMBERED), Err(UNCLEAR));
        let later = now + REMEMBERED + Duration::from_secs(1);
        assert_eq!(asked(&mut given_up, &bobs, later), Ok(0));
    }

    #[test]
    fn where_more_was_given_up_than_is_remembered_nobody_is_asked() {
        let ann = Party::named("ann");
        let (now, mut given_up) = (Instant::now(), GivenUp::default());
        let anns = [context(&ann, true)];
        for number in 0..GIVEN_UP_MAX as RequestId {
            given_up.add(number, &ann, now);
        }
        assert_eq!(asked(&mut given_up, &anns, now), Ok(0));
        given_up.add(RequestId::MAX, &ann, now);
        assert_eq!(asked(&mut given_up, &anns, now), Err(UNCLEAR));
        let later = now + REMEMBERED + Duration::from_secs(1);
        assert_eq!(asked(&mut given_up, &anns, later), Ok(0));
        assert!(given_up.remembered.is_empty());
    }
}
