//! Metrics as Prometheus reads them: what a family is, in two lines, and its samples below. How labels are written is
//! said once, here.

use std::fmt::{Display, Write as _};
use std::time::Duration;

/// Writing to a string does not fail, so nothing here does.
#[derive(Debug, Default)]
pub struct Page(String);

/// One metric, whose samples follow.
#[derive(Debug)]
pub struct Family<'p> {
    page: &'p mut String,
    name: &'p str,
}

/// Labels with their values.
pub type Labels<'l> = [(&'l str, &'l str)];

impl Page {
    /// What only grows.
    pub fn counter<'p>(&'p mut self, name: &'p str, about: &str) -> Family<'p> {
        self.family(name, "counter", about)
    }

    /// What is there right now.
    pub fn gauge<'p>(&'p mut self, name: &'p str, about: &str) -> Family<'p> {
        self.family(name, "gauge", about)
    }

    /// How long something took, by how often it took no longer.
    pub fn histogram<'p>(&'p mut self, name: &'p str, about: &str) -> Family<'p> {
        self.family(name, "histogram", about)
    }

    pub fn into_text(self) -> String {
        self.0
    }

    fn family<'p>(&'p mut self, name: &'p str, kind: &str, about: &str) -> Family<'p> {
        let page = &mut self.0;
        let _ = write!(page, "# HELP {name} ");
        escape(page, about, &['\\', '\n']);
        let _ = writeln!(page, "\n# TYPE {name} {kind}");
        Family { page, name }
    }
}

impl Family<'_> {
    pub fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// The times of a histogram: how many were no longer than each bound, how many there were, and their sum.
    pub fn times(
        &mut self,
        labels: &Labels<'_>,
        cumulated: impl Iterator<Item = (Duration, u64)>,
        count: u64,
        sum: Duration,
    ) {
        for (bound, count) in cumulated {
            let bound = bound.as_secs_f64().to_string();
            self.line("_bucket", labels, Some(("le", &bound)), count);
        }
        self.line("_bucket", labels, Some(("le", "+Inf")), count);
        self.line("_sum", labels, None, sum.as_secs_f64());
        self.line("_count", labels, None, count);
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &Labels<'_>,
        last: Option<(&str, &str)>,
        value: impl Display,
    ) {
        let page = &mut *self.page;
        let _ = write!(page, "{}{suffix}", self.name);
        for (number, (name, value)) in labels.iter().copied().chain(last).enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(page, "{before}{name}=\"");
            escape(page, value, &['\\', '\n', '"']);
            page.push('"');
        }
        if !labels.is_empty() || last.is_some() {
            page.push('}');
        }
        let _ = writeln!(page, " {value}");
    }
}

fn escape(page: &mut String, text: &str, escaped: &[char]) {
    for letter in text.chars() {
        if escaped.contains(&letter) {
            page.push('\\');
        }
        page.push(if letter == '\n' && escaped.contains(&'\n') { 'n' } else { letter });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_prometheus_reads() {
        let mut page = Page::default();
        let mut family = page.counter("things_total", "Things,\nby \\ name.");
        family.sample(&[("name", "a \"b\"\n\\"), ("kind", "good")], 3);
        page.gauge("nothing", "Has no sample.");
        page.gauge("ready", "Whether.").sample(&[], 1);
        let cumulated = [(Duration::from_micros(100), 1), (Duration::from_secs(10), 2)];
        let sum = Duration::from_millis(61_500);
        page.histogram("times_seconds", "Times.").times(&[], cumulated.into_iter(), 3, sum);
        let labelled = [(Duration::from_millis(1), 0)].into_iter();
        page.histogram("more_seconds", "More.").times(&[("a", "b")], labelled, 0, Duration::ZERO);
        assert_eq!(
            page.into_text(),
            r#"# HELP things_total Things,\nby \\ name.
# TYPE things_total counter
things_total{name="a \"b\"\n\\",kind="good"} 3
# HELP nothing Has no sample.
# TYPE nothing gauge
# HELP ready Whether.
# TYPE ready gauge
ready 1
# HELP times_seconds Times.
# TYPE times_seconds histogram
times_seconds_bucket{le="0.0001"} 1
times_seconds_bucket{le="10"} 2
times_seconds_bucket{le="+Inf"} 3
times_seconds_sum 61.5
times_seconds_count 3
# HELP more_seconds More.
# TYPE more_seconds histogram
more_seconds_bucket{a="b",le="0.001"} 0
more_seconds_bucket{a="b",le="+Inf"} 0
more_seconds_sum{a="b"} 0
more_seconds_count{a="b"} 0
"#
        );
    }
}
