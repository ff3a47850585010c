//! The table that the documents show.

use std::fmt::Write;
use std::path::Path;

pub struct Row {
    pub what: &'static str,
    pub yardstick: &'static str,
    pub ratio: f64,
    pub limit: f64,
}

impl Row {
    pub fn holds(&self) -> bool {
        self.ratio <= self.limit
    }
}

pub fn render(rows: &[Row], files: usize, bytes: usize) -> String {
    let mut text = format!(
        "{files} files, {:.1} MB, on {}.\n\n| what | compared with | ratio | at most | |\n|---|---|---:|---:|---|\n",
        bytes as f64 / 1e6,
        machine()
    );
    for row in rows {
        let mark = if row.holds() { "holds" } else { "**missed**" };
        writeln!(
            text,
            "| {} | {} | {:.2} | {:.1} | {mark} |",
            row.what, row.yardstick, row.ratio, row.limit
        )
        .expect("writing to a string");
    }
    text
}

/// Puts the table between the marks in the document.
pub fn write(table: &str) {
    const BEGIN: &str = "<!-- bench -->\n";
    const END: &str = "<!-- end of bench -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    let text = std::fs::read_to_string(&path).expect("docs/performance.md");
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the table begins");
    let (_, after) = rest.split_once(END).expect("the mark where the table ends");
    std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}"))
        .expect("writing the document");
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unnamed processor", |(_, model)| model);
    format!("{cores} cores of {model}, {}", std::env::consts::OS)
}
