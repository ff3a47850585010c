//! What of a session's history a walk needs when it comes in the middle: how many steps are finished, and what was
//! handed in for the current one and not taken.

use engine::{Event, Origin, Submission};
use store::sessions::{Error, Session, Sessions};

use service::error::Refusal;
use service::sessions::refusal;

/// How many copies of copies are followed to their origin.
const ORIGINS_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Past {
    /// How many steps are finished, each time that they were; without those superseded by going back.
    pub(super) finished: usize,
    /// The last thing that happened, if an output was not taken.
    pub(super) returned: Option<Returned>,
}

#[derive(Debug, Clone)]
pub(super) struct Returned {
    pub(super) submission: Submission,
    pub(super) issues: Vec<String>,
    pub(super) suggestions: Vec<String>,
}

impl Past {
    pub(super) fn of(sessions: &Sessions, session: &Session) -> Result<Self, Refusal> {
        let read = |id: &str, to| Log::read(sessions, id, to);
        let log = read(&session.id, session.version);
        let log = log.map_err(|error| refusal(&session.id, error))?;
        let mut past = Self { finished: log.finished(), returned: log.returned };
        // A file may name anybody's session as the original of a copy.
        let mut origin = log.origin.filter(|_| session.state.imported.is_none());
        for _ in 0..ORIGINS_MAX {
            let Some(from) = origin else { break };
            match read(&from.session, from.version) {
                Ok(log) => {
                    past.finished += log.finished();
                    origin = log.origin;
                }
                // It may be gone since; the copy does not need it.
                Err(Error::NotFound) => break,
                Err(error) => return Err(refusal(&from.session, error)),
            }
        }
        Ok(past)
    }
}

#[derive(Debug, Default)]
struct Log {
    /// How many steps were finished after each event.
    counts: Vec<usize>,
    waiting: Option<Submission>,
    returned: Option<Returned>,
    origin: Option<Origin>,
}

impl Log {
    fn read(sessions: &Sessions, id: &str, to: store::Version) -> Result<Self, Error> {
        let mut log = Self::default();
        sessions.each_event(id, to, |_, _, event| log.apply(event))?;
        Ok(log)
    }

    fn finished(&self) -> usize {
        self.counts.last().copied().unwrap_or(0)
    }

    fn apply(&mut self, event: &Event) {
        let mut finished = self.finished();
        if let Event::Imported { .. } = event {
            self.counts.push(finished);
            return;
        }
        let waiting = self.waiting.take();
        self.returned = None;
        match event {
            Event::Started { forked_from, .. } => self.origin.clone_from(forked_from),
            Event::Accepted { .. } | Event::Approved { .. } => finished += 1,
            Event::Returned { submission, issues, suggestions } => {
                let (issues, suggestions) = (issues.clone(), suggestions.clone());
                self.returned =
                    Some(Returned { submission: submission.clone(), issues, suggestions });
            }
            Event::Submitted { submission } => self.waiting = Some(submission.clone()),
            Event::Declined { decision } => {
                let issues = vec![super::show::declined(decision.reason.as_deref())];
                self.returned = waiting.map(|submission| Returned {
                    submission,
                    issues,
                    suggestions: Vec::new(),
                });
            }
            Event::Rewound { version, .. } => {
                let version = usize::try_from(*version).unwrap_or(usize::MAX);
                let then = version.checked_sub(1).and_then(|at| self.counts.get(at));
                finished = then.copied().unwrap_or(0);
            }
            Event::LoopApproved { .. } | Event::LoopDeclined { .. } | Event::Imported { .. } => {}
        }
        self.counts.push(finished);
    }
}
