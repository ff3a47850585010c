//! The tables that the documents show: the claims, each with its limit, and what was measured behind
//! them, which depends on the machine.

use std::fmt::Write;
use std::path::Path;

pub struct Row {
    pub what: &'static str,
    /// Empty where the figure stands for itself.
    pub yardstick: &'static str,
    pub figure: f64,
    pub unit: Unit,
    pub limit: Limit,
}

#[derive(Clone, Copy)]
pub enum Unit {
    Ratio,
    Mebibytes,
    Kibibytes,
    Tokens,
    Milliseconds,
    MegabytesPerSecond,
}

#[derive(Clone, Copy)]
pub enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    pub fn holds(&self) -> bool {
        match self.limit {
            Limit::AtLeast(limit) => self.figure >= limit,
            Limit::AtMost(limit) => self.figure <= limit,
        }
    }
}

impl Unit {
    fn figure(self, figure: f64) -> String {
        match self {
            Self::Ratio => format!("{figure:.2}"),
            Self::Mebibytes => format!("{figure:.1} MiB"),
            Self::Kibibytes => format!("{figure:.1} KiB"),
            Self::Tokens => format!("{figure:.0} tokens"),
            Self::Milliseconds => format!("{figure:.2} ms"),
            Self::MegabytesPerSecond => format!("{figure:.0} MB/s"),
        }
    }
}

/// What was measured of each server, in absolute figures.
#[derive(Default)]
pub struct Details {
    servers: Vec<(&'static str, Detail)>,
    /// Microseconds for each durable step: one after the other, the bare insert, many at once, late.
    pub sessions: [f64; 4],
    /// Over HTTP: the name, requests per second, and the 99th percentile in milliseconds.
    pub http: Vec<(&'static str, f64, f64)>,
    /// In PostgreSQL: the name, appends per second, and the 99th percentile in milliseconds.
    pub postgres: Vec<(&'static str, f64, f64)>,
    /// Of the processor time that it and one replica take together.
    pub database_share: f64,
    /// Microseconds for a search among a million sessions.
    pub search_in_full: f64,
    /// Of other servers, a sentence each.
    pub upstreams: Vec<String>,
    /// Of the results of sessions, a row for each bundled workflow.
    pub session_tokens: Vec<String>,
    /// Of programs of agents, a sentence each.
    pub code: Vec<String>,
}

#[derive(Default)]
pub struct Detail {
    /// Calls per second.
    pub sequential: Option<f64>,
    /// Calls per second.
    pub pipelined: Option<f64>,
    /// MiB.
    pub peak: Option<f64>,
    /// Milliseconds.
    pub start: Option<f64>,
    /// MiB.
    pub idle: Option<f64>,
}

impl Details {
    pub fn of(&mut self, name: &'static str) -> &mut Detail {
        let at = self.servers.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.servers.push((name, Detail::default()));
            self.servers.len() - 1
        });
        &mut self.servers[at].1
    }
}

pub struct Report {
    pub files: usize,
    pub bytes: usize,
    pub rows: Vec<Row>,
    pub details: Details,
}

impl Report {
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    pub fn render(&self) -> String {
        let megabytes = self.bytes as f64 / 1e6;
        let mut text = format!("{} files, {megabytes:.1} MB, on {}.\n\n", self.files, machine());
        text.push_str("| what | compared with | figure | limit | |\n|---|---|---:|---:|---|\n");
        for row in &self.rows {
            let (word, limit) = match row.limit {
                Limit::AtLeast(limit) => ("at least", limit),
                Limit::AtMost(limit) => ("at most", limit),
            };
            let mark = if row.holds() { "holds" } else { "**missed**" };
            let (figure, limit) = (row.unit.figure(row.figure), row.unit.figure(limit));
            let Row { what, yardstick, .. } = row;
            writeln!(text, "| {what} | {yardstick} | {figure} | {word} {limit} | {mark} |")
                .expect("writing to a string");
        }
        text.push_str(
            "\nBehind the ratios, on this machine:\n\n\
             | server | sequential, calls/s | pipelined, calls/s | its most memory | start | idle memory |\n\
             |---|---:|---:|---:|---:|---:|\n",
        );
        for (name, detail) in &self.details.servers {
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            let rate = |rate: Option<f64>| or_none(rate.map(|rate| format!("{rate:.0}")));
            let size = |size: Option<f64>| or_none(size.map(|size| format!("{size:.1} MiB")));
            let (sequential, pipelined) = (rate(detail.sequential), rate(detail.pipelined));
            let (peak, idle) = (size(detail.peak), size(detail.idle));
            let start = or_none(detail.start.map(|time| format!("{time:.2} ms")));
            writeln!(text, "| {name} | {sequential} | {pipelined} | {peak} | {start} | {idle} |")
                .expect("writing to a string");
        }
        let [one, bare, at_once, late] = self.details.sessions;
        write!(
            text,
            "\nA durable step, from request to answer: one after the other {one:.0} µs, from step 1,000 on {late:.0} µs, \
             of 64 sessions at once {at_once:.0} µs each; the bare insert {bare:.0} µs.\n"
        )
        .expect("writing to a string");
        text.push_str("\nOver HTTP, 64 connections:\n\n| server | requests/s | 99th percentile |\n|---|---:|---:|\n");
        for (name, rate, slow) in &self.details.http {
            writeln!(text, "| {name} | {rate:.0} | {slow:.1} ms |").expect("writing to a string");
        }
        text.push_str("\nIn PostgreSQL, 64 agents:\n\n| who | appends/s | 99th percentile |\n|---|---:|---:|\n");
        for (name, rate, slow) in &self.details.postgres {
            writeln!(text, "| {name} | {rate:.0} | {slow:.1} ms |").expect("writing to a string");
        }
        write!(
            text,
            "\nOf the processor time that PostgreSQL and one replica take together, PostgreSQL takes {:.0} %. A search \
             among a million sessions takes {:.1} ms.\n",
            self.details.database_share * 100.0,
            self.details.search_in_full / 1000.0
        )
        .expect("writing to a string");
        text.push_str(
            "\nThe most tokens that a result of a session has beyond the authors' texts:\n\n\
             | workflow | results | the first, the larger of both | later `content` | later `structuredContent` | a rejection, beyond its issues | waiting for a person | a line to report |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for row in &self.details.session_tokens {
            writeln!(text, "{row}").expect("writing to a string");
        }
        let lists = [
            ("With other servers", &self.details.upstreams),
            ("Programs of agents", &self.details.code),
        ];
        for (heading, sentences) in lists {
            write!(text, "\n{heading}:\n\n").expect("writing to a string");
            for sentence in sentences {
                writeln!(text, "- {sentence}").expect("writing to a string");
            }
        }
        text
    }
}

pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Puts the tables between the marks in the document.
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
