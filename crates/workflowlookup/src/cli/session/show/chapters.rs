//! A story in chapters: each time that a step was worked on, with its tries and how it ended, and each going back.
//! Who reads a review wants steps and not events.

use engine::{Decision, Event, ImportOrigin, Submission};
use store::Version;

use crate::cli::session::story::{Story, Told};

pub(super) enum Chapter<'a> {
    Work(Work<'a>),
    Back {
        told: &'a Told,
        reason: &'a str,
    },
    /// A person has decided whether loops begin.
    Loop {
        told: &'a Told,
        decision: &'a Decision,
        is_approved: bool,
    },
    Import {
        told: &'a Told,
        origin: &'a ImportOrigin,
    },
}

/// One time that a step was worked on.
pub(super) struct Work<'a> {
    pub(super) step: &'a str,
    pub(super) title: &'a str,
    /// The tries that led to nothing.
    pub(super) failures: Vec<Failure<'a>>,
    pub(super) ending: Ending<'a>,
    pub(super) superseded_by: Option<Version>,
}

pub(super) struct Failure<'a> {
    pub(super) told: &'a Told,
    pub(super) output: &'a str,
    pub(super) why: Why<'a>,
}

pub(super) enum Why<'a> {
    Issues(&'a [String]),
    Rejected(&'a Decision),
    /// Handed in anew before anybody had decided.
    Replaced,
}

#[derive(Clone, Copy)]
pub(super) enum Ending<'a> {
    /// There is no good output yet.
    Open,
    /// A person has to confirm it.
    Waiting {
        told: &'a Told,
        output: &'a str,
    },
    Accepted {
        told: &'a Told,
        output: &'a str,
    },
    Approved {
        told: &'a Told,
        output: &'a str,
        decision: &'a Decision,
    },
}

pub(super) fn chapters(story: &Story) -> Vec<Chapter<'_>> {
    let mut chapters = Vec::new();
    let mut work: Option<Work<'_>> = None;
    for told in &story.events {
        if let Event::Started { .. } = told.event {
            continue;
        }
        if let Event::Rewound { reason, .. } = &told.event {
            chapters.extend(work.take().map(Chapter::Work));
            chapters.push(Chapter::Back { told, reason });
            continue;
        }
        let aside = match &told.event {
            Event::LoopApproved { decision } => {
                Some(Chapter::Loop { told, decision, is_approved: true })
            }
            Event::LoopDeclined { decision } => {
                Some(Chapter::Loop { told, decision, is_approved: false })
            }
            // Work on a step may go on after it.
            Event::Imported { origin } => Some(Chapter::Import { told, origin }),
            _ => None,
        };
        if let Some(aside) = aside {
            chapters.push(aside);
            continue;
        }
        let mut under_way = work.take().unwrap_or_else(|| Work::begun(told));
        if under_way.take_in(told) {
            chapters.push(Chapter::Work(under_way));
        } else {
            work = Some(under_way);
        }
    }
    chapters.extend(work.map(Chapter::Work));
    chapters
}

impl<'a> Work<'a> {
    fn begun(told: &'a Told) -> Self {
        let step = told.step.as_deref().unwrap_or_default();
        let (title, superseded_by) = (&*told.title, told.superseded_by);
        Self { step, title, failures: Vec::new(), ending: Ending::Open, superseded_by }
    }

    /// Says whether the step is done with this.
    fn take_in(&mut self, told: &'a Told) -> bool {
        match &told.event {
            Event::Accepted { submission: Submission { output, .. }, .. } => {
                self.ending = Ending::Accepted { told, output };
                return true;
            }
            Event::Approved { decision, .. } => {
                if let Ending::Waiting { output, .. } = self.ending {
                    self.ending = Ending::Approved { told, output, decision };
                }
                return true;
            }
            Event::Submitted { submission } => {
                self.replace();
                self.ending = Ending::Waiting { told, output: &submission.output };
            }
            Event::Returned { submission, issues, .. } => {
                self.replace();
                self.fail(told, &submission.output, Why::Issues(issues));
            }
            Event::Declined { decision } => {
                let output = match self.ending {
                    Ending::Waiting { output, .. } => output,
                    _ => "",
                };
                self.fail(told, output, Why::Rejected(decision));
            }
            // No work on a step; the caller has seen to them.
            Event::Started { .. }
            | Event::Rewound { .. }
            | Event::LoopApproved { .. }
            | Event::LoopDeclined { .. }
            | Event::Imported { .. } => {}
        }
        false
    }

    /// What waited, if anything, does not any more.
    fn replace(&mut self) {
        if let Ending::Waiting { told, output } = self.ending {
            self.failures.push(Failure { told, output, why: Why::Replaced });
        }
    }

    fn fail(&mut self, told: &'a Told, output: &'a str, why: Why<'a>) {
        self.failures.push(Failure { told, output, why });
        self.ending = Ending::Open;
    }
}
