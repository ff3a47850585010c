//! The page that is made from the table.

use std::fmt::Write as _;
use std::path::Path;

use crate::alone::Seen;
use crate::row::{Asked, MEMORY_KEPT_MAX, MEMORY_PEAK_MAX, Row, TOTAL};

const ABOUT: &str = "# Hostile servers\n\n\
    Made by the tests: what comes of calling servers that do not keep to the protocol, hang, crash, lie, or flood us. Each \
    row is a real server, a process or one over HTTP, that is called through the whole of the orchestrator.\n\n";

const COLUMNS: &str = "| a server that… | is asked for | within | took | what the caller sees | the call after it |\n\
    |---|---|---|---:|---|---|\n";

pub(crate) fn write(rows: &[Row], seen: &[Vec<(&'static str, Seen)>]) -> String {
    let mut page = ABOUT.to_owned();
    let mebibytes = |bytes: u64| bytes / 1024 / 1024;
    write!(
        page,
        "Of each row the tests check too:\n\n\
         - a good server beside it answers all the while;\n\
         - the call ends within its time limit, which is in the third column; progress extends it up to a total, here of \
         {} s;\n\
         - nothing is left after the end: no process, also none that the server has started, no file descriptor, no \
         thread;\n\
         - our process had at most {} MiB more during it than before, and {} MiB after it, which is what the allocator \
         keeps.\n\n\
         Where the two ways of speaking MCP differ, with a handshake (2025-11-25 and before) and without (2026-07-28), \
         each has a line. `…` stands for what is another one each time; how long it took is what it was when this page \
         was made, by a build without optimisations.\n\n",
        TOTAL.as_secs(),
        mebibytes(MEMORY_PEAK_MAX),
        mebibytes(MEMORY_KEPT_MAX),
    )
    .unwrap();
    page.push_str(COLUMNS);
    for (row, seen) in rows.iter().zip(seen) {
        let asked = match &row.asked {
            Asked::Tools => "its tools".to_owned(),
            Asked::Read(uri) => format!("the resource `{uri}`"),
            Asked::Call { tool, .. } => format!("`{tool}`"),
            Asked::Together { tool, times } => format!("`{tool}`, {times} times at once"),
        };
        let column =
            |text: fn(&Seen) -> &str| cell(seen.iter().map(|(era, seen)| (*era, text(seen))));
        writeln!(
            page,
            "| {} | {asked} | {} s | {} | {} | {} |",
            row.does,
            row.limit.as_secs(),
            took(seen),
            column(|seen| &seen.first),
            column(|seen| &seen.next),
        )
        .unwrap();
    }
    page
}

/// The longer of the two.
fn took(seen: &[(&'static str, Seen)]) -> String {
    let longest = seen.iter().map(|(_, seen)| seen.took).max().unwrap_or_default();
    match longest.as_millis() {
        0 => "< 1 ms".to_owned(),
        millis @ ..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", longest.as_secs_f64()),
    }
}

/// One text, or one for each way of speaking.
fn cell<'s>(seen: impl Iterator<Item = (&'static str, &'s str)>) -> String {
    let seen: Vec<_> = seen.collect();
    let texts: Vec<String> = match seen.as_slice() {
        [(_, first), rest @ ..] if rest.iter().all(|(_, text)| text == first) => {
            vec![escaped(first)]
        }
        seen => seen
            .iter()
            .map(|(era, text)| match *era {
                "modern" => format!("without a handshake: {}", escaped(text)),
                _ => format!("with a handshake: {}", escaped(text)),
            })
            .collect(),
    };
    texts.join("<br>")
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', "<br>")
}

pub(crate) fn assert_current(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hostile-servers.md");
    if std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    let (current, text) = (without_times(&current), without_times(text));
    let differs = current.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        current == text,
        "{} is stale: run `cargo xtask generate`; {differs:#?}",
        path.display()
    );
}

/// How long something took is another each time.
fn without_times(page: &str) -> String {
    let blanked = |line: &str| match line.splitn(6, '|').collect::<Vec<_>>().as_slice() {
        ["", does, asked, within, _, rest] => format!("|{does}|{asked}|{within}||{rest}\n"),
        _ => format!("{line}\n"),
    };
    page.lines().map(blanked).collect()
}
