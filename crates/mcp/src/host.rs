//! What a host makes of a call: an outcome at once, work for a thread, or something that is begun here and finished
//! elsewhere. How it is run is the shell's business; these are only the words for it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::action::{Log, Outcome, Progress};
use crate::withdrawal::Withdrawal;

/// What came of a call.
pub enum Carried {
    Now(Outcome),
    /// It needs a thread for a while.
    Later(Work),
    /// It is begun here and finished elsewhere.
    Told(Begin),
}

pub type Work = Box<dyn FnOnce() -> Outcome + Send>;
pub type Begin = Box<dyn FnOnce(Finish) + Send>;

/// What a call under way has to say.
pub enum News {
    Progress(Progress),
    Log(Log),
    /// The client may let go for a while, and come back for the rest.
    HangUp,
    Done(Carried),
}

/// Takes what comes of a call that is finished elsewhere. Whoever drops it has failed.
pub struct Finish {
    tell: Option<Tell>,
    withdrawal: Withdrawal,
}

type Tell = Box<dyn Fn(News) + Send>;

impl Finish {
    pub fn new(tell: impl Fn(News) + Send + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), withdrawal: Withdrawal::default() }
    }

    /// By this whoever carries the call out learns that nobody waits for it any more.
    pub fn withdrawal(&self) -> Withdrawal {
        self.withdrawal.clone()
    }

    /// The same, but what comes of it passes through here first.
    pub fn through(mut self, pass: impl FnOnce(Carried) -> Carried + Send + 'static) -> Self {
        let (tell, pass) = (self.tell.take(), Cell::new(Some(pass)));
        let withdrawal = self.withdrawal.clone();
        let mut passed = Self::new(move |news| {
            let news = match (news, pass.take()) {
                (News::Done(carried), Some(pass)) => News::Done(pass(carried)),
                (news, unused) => {
                    pass.set(unused);
                    news
                }
            };
            if let Some(tell) = &tell {
                tell(news);
            }
        });
        passed.withdrawal = withdrawal;
        passed
    }

    pub fn progress(&self, progress: Progress) {
        self.tell(News::Progress(progress));
    }

    pub fn log(&self, log: Log) {
        self.tell(News::Log(log));
    }

    /// It will take some time: the client need not wait on the line, where it can come back for the rest.
    pub fn hang_up(&self) {
        self.tell(News::HangUp);
    }

    pub fn done(mut self, carried: impl Into<Carried>) {
        self.end(carried.into());
    }

    fn tell(&self, news: News) {
        if let Some(tell) = &self.tell {
            tell(news);
        }
    }

    fn end(&mut self, carried: Carried) {
        if let Some(tell) = self.tell.take() {
            tell(News::Done(carried));
        }
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        self.end(Outcome::Fault.into());
    }
}

impl From<Outcome> for Carried {
    fn from(outcome: Outcome) -> Self {
        Self::Now(outcome)
    }
}

/// A panic is ours, and ends this call only. The log has it from the hook.
pub fn guarded<T: From<Outcome>>(work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Outcome::Fault.into())
}

impl std::fmt::Debug for Carried {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(outcome) => out.debug_tuple("Now").field(outcome).finish(),
            Self::Later(_) => out.write_str("Later"),
            Self::Told(_) => out.write_str("Told"),
        }
    }
}

impl std::fmt::Debug for Finish {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Finish")
    }
}
