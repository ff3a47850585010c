//! Servers that mean harm, or do it: what whoever calls them sees, and that nothing else comes of it. Each row of the table
//! is played in a process of its own, so that what it leaves behind is known: no process, no descriptor, no thread, and
//! little memory. A good server beside it answers all the while. The table is a page of the documents, made from what was
//! really seen.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "what it took is worth knowing")]
#![cfg(target_os = "linux")]

mod alone;
mod left;
mod page;
#[path = "../../../process_guard/tests/guard/processes.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod processes;
mod row;
mod rows;
mod seen;
mod web;
#[path = "../it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

/// Whatever a row does, its process is gone then.
const ROW_BOUND: std::time::Duration = std::time::Duration::from_secs(180);

#[test]
fn generated_table_of_hostile_servers() {
    let rows = rows::all();
    let (seen, took) = alone::play_all(&rows);
    page::assert_current(&page::write(&rows, &seen));
    // Not before: what fails is to be found.
    eprintln!("{took}");
}

/// Does nothing unless the test above has started it.
#[test]
fn a_row_in_a_process_of_its_own() {
    if let Some(alone) = alone::Alone::asked_for() {
        alone.play(&rows::all());
    }
}
