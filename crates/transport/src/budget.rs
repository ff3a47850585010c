//! What a principal may use in a minute: CPU time and bytes. Use is measured as it happens and drains over time. A
//! principal that is over its budget is told when it may come again. Anonymous access has no principal to share with,
//! and no budget.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use rustix::time::{ClockId, clock_gettime};

use crate::host::Principal;
use crate::limits::{INLINE_TIME_FREE, INLINE_TIME_MAX, INLINE_TIME_SHARE};

/// The time in which a whole budget drains.
const MINUTE: Duration = Duration::from_secs(60);

/// The budgets of all principals that have used something in the last minutes.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// Nanoseconds and bytes in a minute.
    limits: [u64; 2],
    used: Mutex<HashMap<Arc<str>, Usage>>,
    /// What the calls of principals have taken of the threads that read requests, in nanoseconds. Anonymous clients share
    /// one entry.
    inline: Mutex<InlineUsage>,
}

/// Nanoseconds, and when they were counted last.
type InlineUsage = HashMap<Option<Arc<str>>, (u64, Instant)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    CpuTime,
    Bytes,
}

#[derive(Debug, Clone, Copy)]
struct Usage {
    /// By [`Resource`].
    amounts: [u64; 2],
    at: Instant,
}

/// A principal has used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverBudget {
    pub(crate) resource: Resource,
    pub(crate) retry_after: Duration,
}

impl Budgets {
    /// What may be used in a minute.
    pub(crate) fn new(cpu_time: Duration, bytes: u64) -> Arc<Self> {
        let limits = [nanos(cpu_time), bytes].map(|limit| limit.max(1));
        Arc::new(Self { limits, used: Mutex::default(), inline: Mutex::default() })
    }

    /// Whether a principal may go on. What is in flight is never interrupted, so its use can exceed the budget.
    pub(crate) fn check(&self, principal: Option<&Principal>) -> Result<(), OverBudget> {
        let Some(principal) = principal else { return Ok(()) };
        let used = self.used().get(&principal.name).copied();
        let Some(used) = used.map(|used| self.drain(used, Instant::now())) else { return Ok(()) };
        for resource in [Resource::CpuTime, Resource::Bytes] {
            let (amount, limit) = (used.amounts[resource as usize], self.limits[resource as usize]);
            if amount >= limit {
                let retry_after = portion(nanos(MINUTE), amount - limit + 1, limit);
                let retry_after = Duration::from_nanos(retry_after);
                return Err(OverBudget { resource, retry_after });
            }
        }
        Ok(())
    }

    pub(crate) fn spend_bytes(&self, principal: Option<&Arc<str>>, bytes: usize) {
        self.spend(principal, Resource::Bytes, bytes as u64);
    }

    /// Runs work of a principal on this thread, and counts its CPU time.
    pub(crate) fn measure<T>(&self, principal: Option<&Arc<str>>, work: impl FnOnce() -> T) -> T {
        if principal.is_none() {
            return work();
        }
        let before = thread_time();
        let done = work();
        self.spend(principal, Resource::CpuTime, nanos(thread_time().saturating_sub(before)));
        done
    }

    /// The same for work on a thread that reads requests. Says how long it took.
    pub(crate) fn measure_inline<T>(
        &self,
        principal: Option<&Arc<str>>,
        work: impl FnOnce() -> T,
    ) -> (T, Duration) {
        let before = thread_time();
        let done = work();
        let time = thread_time().saturating_sub(before);
        self.spend(principal, Resource::CpuTime, nanos(time));
        if time > INLINE_TIME_FREE {
            let now = Instant::now();
            let mut inline = self.inline();
            let (used, at) = inline.entry(principal.cloned()).or_insert((0, now));
            (*used, *at) = (inline_left(*used, *at, now).saturating_add(nanos(time)), now);
        }
        (done, time)
    }

    /// Whether the calls of a principal have taken enough of the threads that read requests, for now.
    pub(crate) fn has_spent_inline_time(&self, principal: Option<&Arc<str>>) -> bool {
        let inline = self.inline();
        if inline.is_empty() {
            return false;
        }
        let used = inline.get(&principal.cloned());
        used.is_some_and(|(used, at)| {
            inline_left(*used, *at, Instant::now()) >= nanos(INLINE_TIME_MAX)
        })
    }

    /// Counts the bytes of a response: now, or as they are sent if it is a stream.
    pub(crate) fn meter(
        self: &Arc<Self>,
        principal: Option<&Principal>,
        response: Response,
    ) -> Response {
        let Some(principal) = principal else { return response };
        let principal = Arc::clone(&principal.name);
        match response.body().size_hint().exact() {
            Some(bytes) => {
                self.spend(Some(&principal), Resource::Bytes, bytes);
                response
            }
            None => {
                let budgets = Arc::clone(self);
                response.map(|body| Body::new(Metered { body, budgets, principal }))
            }
        }
    }

    /// Forgets principals whose use has drained.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut used = self.used();
        used.retain(|_, usage| self.drain(*usage, now).amounts != [0; 2]);
        used.shrink_to_fit();
        drop(used);
        let mut inline = self.inline();
        inline.retain(|_, (used, at)| inline_left(*used, *at, now) > 0);
        inline.shrink_to_fit();
    }

    fn spend(&self, principal: Option<&Arc<str>>, resource: Resource, amount: u64) {
        let Some(principal) = principal.filter(|_| amount > 0) else { return };
        let now = Instant::now();
        let mut used = self.used();
        let fresh = Usage { amounts: [0; 2], at: now };
        let usage = match used.get_mut(principal) {
            Some(usage) => usage,
            None => used.entry(Arc::clone(principal)).or_insert(fresh),
        };
        *usage = self.drain(*usage, now);
        let spent = &mut usage.amounts[resource as usize];
        *spent = spent.saturating_add(amount);
    }

    fn drain(&self, used: Usage, now: Instant) -> Usage {
        let elapsed = nanos(now.saturating_duration_since(used.at));
        let mut drained = Usage { at: now, ..used };
        for (amount, limit) in drained.amounts.iter_mut().zip(self.limits) {
            *amount = amount.saturating_sub(portion(limit, elapsed, nanos(MINUTE)));
        }
        drained
    }

    fn inline(&self) -> MutexGuard<'_, InlineUsage> {
        self.inline.lock()
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Arc<str>, Usage>> {
        self.used.lock()
    }
}

/// What is left of the time that was used inline.
fn inline_left(used: u64, at: Instant, now: Instant) -> u64 {
    let elapsed = nanos(now.saturating_duration_since(at));
    used.saturating_sub(elapsed / u64::from(INLINE_TIME_SHARE))
}

/// `whole * part / of`, or as much as there is.
fn portion(whole: u64, part: u64, of: u64) -> u64 {
    let portion = u128::from(whole) * u128::from(part) / u128::from(of);
    u64::try_from(portion).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of this thread so far.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// A stream whose bytes count for a principal.
struct Metered {
    body: Body,
    budgets: Arc<Budgets>,
    principal: Arc<str>,
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.budgets.spend_bytes(Some(&self.principal), bytes);
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(name: &str) -> Principal {
        Principal { name: name.into(), scope: "".into(), until: None }
    }

    /// Makes the last minute pass by this much.
    fn pass(budgets: &Budgets, time: Duration) {
        budgets.used().values_mut().for_each(|usage| usage.at -= time);
    }

    #[test]
    fn budget_is_per_principal_and_drains() {
        let budgets = Budgets::new(MINUTE, 600);
        let [ann, bob] = ["ann", "bob"].map(principal);
        budgets.spend_bytes(Some(&ann.name), 1_200);
        let over = budgets.check(Some(&ann)).unwrap_err();
        assert_eq!(over.resource, Resource::Bytes);
        // 600 of the 1,200 bytes have to drain, ten in a second, and a little more.
        assert_eq!(over.retry_after.as_secs(), 60);
        assert_eq!(budgets.check(Some(&bob)), Ok(()), "others are not affected");
        assert_eq!(budgets.check(None), Ok(()));
        pass(&budgets, over.retry_after);
        assert_eq!(budgets.check(Some(&ann)), Ok(()));
        budgets.sweep();
        assert_eq!(budgets.used().len(), 1);
        pass(&budgets, MINUTE);
        budgets.sweep();
        assert!(budgets.used().is_empty(), "principals that use nothing are forgotten");
    }

    #[test]
    fn inline_time_is_per_principal_and_drains() {
        let budgets = Budgets::new(MINUTE, u64::MAX);
        let [ann, bob] = ["ann", "bob"].map(principal);
        let (ann, bob) = (Some(&ann.name), Some(&bob.name));
        let spin = |time: Duration| {
            let start = thread_time();
            while thread_time() - start < time {}
        };
        for _ in 0..1_000 {
            budgets.measure_inline(ann, || ());
        }
        assert!(budgets.inline().is_empty(), "cheap calls are not counted");
        let ((), time) = budgets.measure_inline(ann, || spin(INLINE_TIME_MAX * 2));
        assert!(time >= INLINE_TIME_MAX * 2);
        assert!(budgets.has_spent_inline_time(ann));
        assert!(!budgets.has_spent_inline_time(bob) && !budgets.has_spent_inline_time(None));
        let pass = |time| budgets.inline().values_mut().for_each(|(_, at)| *at -= time);
        pass(time * INLINE_TIME_SHARE - INLINE_TIME_MAX);
        assert!(!budgets.has_spent_inline_time(ann));
        pass(INLINE_TIME_MAX);
        budgets.sweep();
        assert!(budgets.inline().is_empty(), "principals that use nothing are forgotten");
    }

    #[test]
    fn cpu_time_is_measured_and_waiting_is_not() {
        let budgets = Budgets::new(Duration::from_nanos(1), u64::MAX);
        let ann = principal("ann");
        budgets.measure(Some(&ann.name), || {
            std::hint::black_box((0..100_000_u64).fold(0, u64::wrapping_add))
        });
        let over = budgets.check(Some(&ann)).unwrap_err();
        assert_eq!(over.resource, Resource::CpuTime);
    }
}
