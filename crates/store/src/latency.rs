//! How long something takes, counted in buckets: two additions for each time, no lock, and nothing that grows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Up to how long the times of each bucket are. One more bucket has whatever took longer.
const BOUNDS: [Duration; 16] = [
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

const BUCKETS: usize = BOUNDS.len() + 1;

/// Counts times while others look at it.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    /// Nanoseconds; they are enough for five centuries.
    sum: AtomicU64,
}

/// What a histogram had counted at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latency {
    /// Each bucket for itself, from the shortest times on; the last has what took longer than all bounds.
    pub counts: [u64; BUCKETS],
    pub sum: Duration,
}

impl Histogram {
    pub fn record(&self, time: Duration) {
        let bucket = BOUNDS.partition_point(|bound| *bound < time);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    /// How long this takes.
    pub fn time<T>(&self, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let value = run();
        self.record(begun.elapsed());
        value
    }

    /// A time that is counted while this looks may be in one of the two numbers already, and not in the other.
    pub fn snapshot(&self) -> Latency {
        let sum = Duration::from_nanos(self.sum.load(Ordering::Relaxed));
        let counts = std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed));
        Latency { counts, sum }
    }
}

impl Latency {
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many times were no longer than each bound.
    pub fn cumulated(&self) -> impl Iterator<Item = (Duration, u64)> {
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS.into_iter().zip(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        let micros = [0, 100, 101, 1_000, 10_000_000, 10_000_001, 3_600_000_000];
        for time in micros {
            histogram.record(Duration::from_micros(time));
        }
        let latency = histogram.snapshot();
        assert_eq!(latency.count(), 7);
        assert_eq!(latency.sum, Duration::from_micros(micros.iter().sum()));
        let cumulated: Vec<u64> = latency.cumulated().map(|(_, count)| count).collect();
        assert_eq!(cumulated, [2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5]);
        assert_eq!(latency.counts[BUCKETS - 1], 2, "what took longer than all bounds");
    }

    #[test]
    fn nothing_is_lost_where_many_count_at_once() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let histogram = &histogram;
                scope.spawn(move || {
                    (0..1_000).for_each(|_| histogram.record(Duration::from_millis(1 << thread)));
                });
            }
        });
        let latency = histogram.snapshot();
        assert_eq!((latency.count(), latency.sum), (4_000, Duration::from_secs(15)));
    }
}
