//! For tests only: an allocator that tells how much memory a function takes, on the thread that calls it.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: counting_allocator::CountingAllocator = counting_allocator::CountingAllocator;
//!
//! let (_, bytes) = counting_allocator::peak_bytes(|| vec![0_u8; 1000].len());
//! assert_eq!(bytes, 1000);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what each thread holds.
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    /// What this thread has allocated and not freed. Negative where it frees what others allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// What this thread has ever asked for.
    static REQUESTED: Cell<Requested> = const { Cell::new(Requested { count: 0, bytes: 0 }) };
}

/// Memory that was asked for, whether or not it was freed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested {
    pub count: u64,
    pub bytes: u64,
}

/// Calls a function, and tells what it asked for in all.
pub fn requested<T>(function: impl FnOnce() -> T) -> (T, Requested) {
    let before = REQUESTED.get();
    let result = function();
    let after = REQUESTED.get();
    let (count, bytes) = (after.count - before.count, after.bytes - before.bytes);
    (result, Requested { count, bytes })
}

/// Calls a function, and tells the most bytes that it held at any time.
pub fn peak_bytes<T>(function: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = function();
    (result, PEAK.get().saturating_sub(before).unsigned_abs())
}

fn count(bytes: isize) {
    if let Ok(size) = u64::try_from(bytes) {
        let _ = REQUESTED.try_with(|requested| {
            let Requested { count, bytes } = requested.get();
            requested.set(Requested { count: count + 1, bytes: bytes + size });
        });
    }
    // A thread that ends has no counters any more.
    let held = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        held.get()
    });
    if let Ok(held) = held {
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held)));
    }
}

// SAFETY: every call goes to the system's allocator as it is; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}
