//! How a store fares, for whoever watches it: how long its operations take, how often somebody else was first, and what
//! connections it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::backend::Done;
use crate::error::Error;
use crate::latency::{Histogram, Latency};
use crate::model::{Created, Event, Version};

/// Counted since the store was opened here. Times are as callers feel them, with what they wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    pub read: Latency,
    pub append: Latency,
    pub create: Latency,
    /// All that happens seldom.
    pub other: Latency,
    /// How often an append came too late, because somebody else was first.
    pub conflicts: u64,
    /// The bytes of all bodies that pages of events have brought into memory.
    pub event_bytes: u64,
    /// Where connections are lent.
    pub pool: Option<PoolFigures>,
}

/// The connections of a store right now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// How many there may be.
    pub max: usize,
    pub open: usize,
    pub idle: usize,
    /// How many callers wait for one.
    pub waiting: usize,
}

/// What is measured while a store works.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) read: Histogram,
    append: Histogram,
    create: Histogram,
    pub(crate) other: Histogram,
    conflicts: AtomicU64,
    event_bytes: AtomicU64,
}

impl Measured {
    pub(crate) fn figures(&self, pool: Option<PoolFigures>) -> Figures {
        Figures {
            read: self.read.snapshot(),
            append: self.append.snapshot(),
            create: self.create.snapshot(),
            other: self.other.snapshot(),
            conflicts: self.conflicts.load(Ordering::Relaxed),
            event_bytes: self.event_bytes.load(Ordering::Relaxed),
            pool,
        }
    }

    /// Counts what a page of events has brought into memory.
    pub(crate) fn page_read(&self, events: &[Event]) {
        let bytes: usize = events.iter().map(|event| event.body.len()).sum();
        self.event_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Tells the same, and how long it took from here.
    pub(crate) fn append(self: &Arc<Self>, done: Done<Version>) -> Done<Version> {
        let (measured, begun) = (Arc::clone(self), Instant::now());
        Box::new(move |appended| {
            measured.appended(begun, &appended);
            done(appended);
        })
    }

    pub(crate) fn appended_by(
        &self,
        append: impl FnOnce() -> Result<Version, Error>,
    ) -> Result<Version, Error> {
        let begun = Instant::now();
        let appended = append();
        self.appended(begun, &appended);
        appended
    }

    fn appended(&self, begun: Instant, appended: &Result<Version, Error>) {
        self.append.record(begun.elapsed());
        if matches!(appended, Err(Error::Conflict { .. })) {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells the same, and how long it took from here.
    pub(crate) fn create(self: &Arc<Self>, done: Done<Created>) -> Done<Created> {
        let (measured, begun) = (Arc::clone(self), Instant::now());
        Box::new(move |created| {
            measured.create.record(begun.elapsed());
            done(created);
        })
    }

    pub(crate) fn created_by(
        &self,
        create: impl FnOnce() -> Result<Created, Error>,
    ) -> Result<Created, Error> {
        self.create.time(create)
    }
}
