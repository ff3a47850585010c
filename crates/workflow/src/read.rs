//! From bytes to a workflow and its findings. A good JSON file is read once, typed, and costs no more.
//! Only where something is wrong (and for YAML) is the untyped tree built, for the places and for
//! the problems that typed reading hides behind the first.

use std::ops::Range;

use budget::{Budget, Exhausted};
use serde::Deserialize;

use crate::definition::{Body, Step, UnusableCriteria, Workflow};
use crate::finding::{Code, Finding, Severity, render};
use crate::limits::FILE_BYTES_MAX;
use crate::pointer::segments;
use crate::rules::{self, FINDINGS_MAX, Report};
use crate::serial::Fields;
use crate::shape;
use crate::tree::{At, Duplicate, Lines, Node, Unreadable, json_too_deep, parse_json, parse_yaml};

mod expansion;
mod places;

use places::{Cursor, POINTER_BYTES_LONG, Survey};

/// The steps for each byte of a text that is read typed, and of one that becomes a tree.
const TYPED_STEPS_PER_BYTE: u64 = 1;
const TREE_STEPS_PER_BYTE: u64 = 10;
/// The steps that excerpts of the text may take together: each looks at a whole line, and a file may be
/// a single one. The findings that are left are shown without.
const EXCERPT_STEPS_MAX: u64 = 5_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
}

impl Format {
    /// By the name's ending; `None` for a file that holds no workflow.
    pub fn of(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// How closely patterns and schemas are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scrutiny {
    /// Their syntax: what loading needs.
    Syntax,
    /// They are compiled too: what an author wants to know.
    Compile,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Where nothing keeps it from being used.
    pub workflow: Option<Workflow>,
    /// The id that the file gives itself, even where it cannot be used.
    pub id: Option<Box<str>>,
    /// Everything that is wrong, in the order of the text.
    pub findings: Vec<Finding>,
}

/// Reads a definition, within the budget of one call.
pub fn read(bytes: &[u8], format: Format, scrutiny: Scrutiny) -> Reading {
    let reading = Reading::from_bytes(bytes, format, scrutiny, &Budget::for_call());
    reading.unwrap_or_else(|why| {
        let hint = "split the workflow, or shorten its names";
        let message = format!("reading the file takes {why}");
        Reading::refused(Finding::on_file(Code::TooLarge, message, hint))
    })
}

/// Reads a definition that is known to be good, because a test says so: the rules are not looked at.
/// `None` where it is not even of the right shape.
pub fn read_trusted(text: &str, format: Format) -> Option<Workflow> {
    match format {
        Format::Json => serde_json::from_str(text).ok(),
        Format::Yaml => Workflow::deserialize(&parse_yaml(text).ok()?.value()).ok(),
    }
}

/// A file beyond [`FILE_BYTES_MAX`], for who finds that out before reading it.
pub fn too_large() -> Finding {
    Finding::on_file(
        Code::TooLarge,
        format!("the file is larger than {FILE_BYTES_MAX} bytes"),
        "split the workflow, or move long texts out of it",
    )
}

impl Reading {
    /// Reads a definition within a budget.
    pub fn from_bytes(
        bytes: &[u8],
        format: Format,
        scrutiny: Scrutiny,
        budget: &Budget,
    ) -> Result<Self, Exhausted> {
        if bytes.len() > FILE_BYTES_MAX {
            return Ok(Self::refused(too_large()));
        }
        let (bytes, has_mark) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => (rest, true),
            None => (bytes, false),
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if !is_utf_16(bytes) => text,
            Ok(_) => return Ok(Self::refused(not_utf_8(bytes, 0))),
            Err(error) => return Ok(Self::refused(not_utf_8(bytes, error.valid_up_to()))),
        };
        let mut reading = match format {
            Format::Json => read_json(text, scrutiny, budget)?,
            Format::Yaml => read_slowly(text, format, None, scrutiny, budget)?,
        };
        if has_mark {
            let finding = Finding::on_file(
                Code::ByteOrderMark,
                "the file begins with a byte order mark",
                "save it as UTF-8 without one",
            );
            reading.findings.insert(0, finding);
        }
        Ok(reading)
    }

    /// The findings as an author reads them. `text` is what was read.
    pub fn render(&self, text: &str, budget: &Budget) -> Result<Vec<String>, Exhausted> {
        let lines = Lines::new(text);
        let excerpts = Budget::with_steps(EXCERPT_STEPS_MAX.min(budget.remaining()));
        let mut rendered = Vec::with_capacity(self.findings.len());
        for finding in &self.findings {
            let source = finding.place.filter(|place| {
                let (start, end) = (lines.offset(place.line, 1), lines.offset(place.line + 1, 1));
                excerpts
                    .spend_scan(start)
                    .and_then(|()| excerpts.spend((end - start) as u64))
                    .is_ok()
            });
            let shown = render(finding, source.map(|_| text));
            budget.spend_output(shown.len())?;
            rendered.push(shown);
        }
        budget.spend(excerpts.steps() - excerpts.overspent())?;
        Ok(rendered)
    }

    fn refused(finding: Finding) -> Self {
        Self { workflow: None, id: None, findings: vec![finding] }
    }

    fn unreadable(problem: Unreadable, lines: &Lines<'_>) -> Self {
        let mut finding = Finding::on_file(problem.code, problem.message, "");
        finding.hint = problem.hint.map(Into::into);
        finding.place = Some(lines.place(&problem.range));
        Self::refused(finding)
    }
}

fn read_json(text: &str, scrutiny: Scrutiny, budget: &Budget) -> Result<Reading, Exhausted> {
    budget.spend(TYPED_STEPS_PER_BYTE * text.len() as u64)?;
    // Before anything recurses; and serde has a bound of its own, which is another than ours.
    if let Some(at) = json_too_deep(text) {
        return Ok(Reading::unreadable(Unreadable::too_deep(at..at + 1), &Lines::new(text)));
    }
    let Ok(Fields(workflow)) = serde_json::from_str::<Fields<Workflow>>(text) else {
        return read_slowly(text, Format::Json, None, scrutiny, budget);
    };
    if workflow.variables.iter().any(|(name, _)| name.len() > POINTER_BYTES_LONG) {
        // The rules would repeat the name in every finding about the variable. The tree tells how often.
        return read_slowly(text, Format::Json, None, scrutiny, budget);
    }
    let report = inspect(&workflow, Report::default(), scrutiny);
    if report.is_empty() {
        return Ok(Reading {
            id: Some(workflow.id.clone()),
            workflow: Some(workflow),
            findings: Vec::new(),
        });
    }
    read_slowly(text, Format::Json, Some((workflow, report)), scrutiny, budget)
}

fn inspect(workflow: &Workflow, mut report: Report, scrutiny: Scrutiny) -> Report {
    report.settle();
    rules::check(workflow, &mut report);
    if scrutiny == Scrutiny::Compile {
        rules::compile::check(workflow, &mut report);
    }
    report
}

/// Builds the tree, and takes what typed reading has found already, if it came to an end.
fn read_slowly(
    text: &str,
    format: Format,
    inspected: Option<(Workflow, Report)>,
    scrutiny: Scrutiny,
    budget: &Budget,
) -> Result<Reading, Exhausted> {
    budget.spend(TREE_STEPS_PER_BYTE * text.len() as u64)?;
    if let Some(finding) = (format == Format::Yaml).then(|| expansion::check(text)).flatten() {
        return Ok(Reading::refused(finding));
    }
    let lines = Lines::new(text);
    let parsed = match format {
        Format::Json => parse_json(text),
        Format::Yaml => parse_yaml(text),
    };
    let tree = match parsed {
        Ok(tree) => tree,
        Err(problem) => return Ok(Reading::unreadable(problem, &lines)),
    };
    let survey = Survey::take(&tree, budget)?;
    let (workflow, report) = match inspected {
        Some((workflow, report)) => (Some(workflow), report),
        None => typed(&tree, scrutiny, budget)?,
    };
    let duplicates = if survey.has_duplicates { tree.duplicates() } else { Vec::new() };
    let has_more_errors = report.has_more_errors() || duplicates.len() > FINDINGS_MAX;
    let cut = [Severity::Error, Severity::Warning].map(|severity| {
        let has_more = severity == Severity::Error && duplicates.len() > FINDINGS_MAX;
        (severity, has_more || report.is_cut(severity))
    });
    let mut found = place(report, &tree, &survey, &lines, budget)?;
    found.extend(duplicates.into_iter().take(FINDINGS_MAX).map(duplicate_key));
    found.sort_by_key(|(range, _)| range.start);
    let mut cursor = Cursor::new(text);
    let findings = found
        .into_iter()
        .map(|(range, finding)| Finding { place: Some(cursor.place(&range)), ..finding });
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by(|left, right| {
        (left.place, left.code, &left.pointer).cmp(&(right.place, right.code, &right.pointer))
    });
    for (severity, _) in cut.into_iter().filter(|(_, is_cut)| *is_cut) {
        say_more(&mut findings, severity);
    }
    let id = tree.value().get("id").and_then(|id| id.as_str()).map(Into::into);
    // Of an error that is not kept nobody knows whether it is only about some step's criteria.
    let is_usable = !has_more_errors && !findings.iter().any(Finding::blocks);
    let workflow = workflow.filter(|_| is_usable).map(|mut workflow| {
        mark_unusable_criteria(&mut workflow, &findings);
        fill_empty_messages(&mut workflow, &findings);
        workflow
    });
    Ok(Reading { workflow, id, findings })
}

/// Says at the last finding of a severity that it may not be the last.
fn say_more(findings: &mut [Finding], severity: Severity) {
    let mut last = findings.iter_mut().rev();
    if let Some(last) = last.find(|finding| finding.severity() == severity) {
        let hint = last.hint.as_deref().map(|hint| format!("{hint}; "));
        let more = format!("mend these first: there may be more {severity}s, which are not shown");
        last.hint = Some((hint.unwrap_or_default() + &more).into());
    }
}

/// Reads the tree typed, mending its shape where that is needed.
fn typed(
    tree: &Node,
    scrutiny: Scrutiny,
    budget: &Budget,
) -> Result<(Option<Workflow>, Report), Exhausted> {
    let mut value = tree.value();
    let mut report = Report::default();
    let mut workflow = Fields::<Workflow>::deserialize(&value);
    if workflow.is_err() {
        report.remember_words(&value);
        shape::mend(&mut value, &mut report, budget)?;
        workflow = Fields::<Workflow>::deserialize(&value);
    }
    Ok(match workflow {
        Ok(Fields(workflow)) => {
            let report = inspect(&workflow, report, scrutiny);
            (Some(workflow), report)
        }
        Err(error) => {
            if !report.blocks() {
                // The schema and the types disagree. Better an unhelpful finding than none.
                report.add(Code::WrongType, &"", At::Value, error.to_string(), None);
            }
            (None, report)
        }
    })
}

/// The findings of a report, which have no place yet, and the bytes that they are about.
fn place(
    report: Report,
    tree: &Node,
    survey: &Survey,
    lines: &Lines<'_>,
    budget: &Budget,
) -> Result<Vec<(Range<usize>, Finding)>, Exhausted> {
    let placed = report.into_drafts().into_iter().map(|draft| {
        budget.spend(survey.steps_to_find())?;
        let mut range = tree.find(&draft.pointer, draft.at);
        if draft.part.is_some() {
            budget.spend_scan(range.len())?;
            range = lines.narrow(range, draft.part.as_deref());
        }
        let finding = Finding {
            code: draft.code,
            file: None,
            place: None,
            pointer: draft.pointer.into(),
            message: draft.message.into(),
            hint: draft.hint.map(Into::into),
        };
        Ok((range, finding))
    });
    placed.collect()
}

fn duplicate_key(duplicate: Duplicate) -> (Range<usize>, Finding) {
    let finding = Finding {
        code: Code::DuplicateKey,
        file: None,
        place: None,
        pointer: duplicate.pointer.into(),
        message: format!("the key `{}` stands earlier in this object", duplicate.key).into(),
        hint: Some("remove or rename one of them".into()),
    };
    (duplicate.range, finding)
}

/// ASCII in UTF-16 is every other byte a NUL, which is valid UTF-8 where the mark is missing.
fn is_utf_16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff")
        || bytes.iter().take(64).filter(|byte| **byte == 0).count() > 8
}

fn not_utf_8(bytes: &[u8], valid_up_to: usize) -> Finding {
    if is_utf_16(bytes) {
        return Finding::on_file(
            Code::Encoding,
            "the file is UTF-16, not UTF-8",
            "save it as UTF-8",
        );
    }
    let message = format!("the file is not UTF-8: byte {} is wrong", valid_up_to + 1);
    let mut finding = Finding::on_file(Code::Encoding, message, "save it as UTF-8");
    let good = String::from_utf8_lossy(&bytes[..valid_up_to]);
    finding.place = Some(Lines::new(&good).place(&(valid_up_to..valid_up_to + 1)));
    finding
}

/// Steps whose criteria have an error still run, but their output cannot be checked.
fn mark_unusable_criteria(workflow: &mut Workflow, findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| finding.is_error() && finding.is_in_criteria())
    {
        let way: Vec<String> = segments(&finding.pointer).collect();
        let Some(Step::Plain(step)) =
            step_at(&mut workflow.steps, way.get(1..).unwrap_or_default())
        else {
            continue;
        };
        let unusable = step.unusable_criteria.get_or_insert_with(|| {
            Box::new(UnusableCriteria { details: Vec::new(), only_schemas: true })
        });
        unusable.only_schemas &= finding.code == Code::BadSchema;
        unusable.details.push(finding.message.to_string());
    }
}

/// Gives the rules that lack a message one that is generated from the rule.
fn fill_empty_messages(workflow: &mut Workflow, findings: &[Finding]) {
    fn fill(steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Plain(step) => {
                    if let Some(criteria) = &mut step.validation_criteria {
                        criteria.fill_messages();
                    }
                }
                Step::Loop(step) => {
                    if let Body::Steps(steps) = &mut step.body {
                        fill(steps);
                    }
                }
            }
        }
    }
    if findings.iter().any(|finding| finding.code == Code::EmptyMessage) {
        fill(&mut workflow.steps);
    }
}

/// The step that a pointer into `steps` leads through last.
fn step_at<'a>(steps: &'a mut [Step], way: &[String]) -> Option<&'a mut Step> {
    let (index, rest) = way.split_first()?;
    let step = steps.get_mut(index.parse::<usize>().ok()?)?;
    let leads_on = rest.first().is_some_and(|segment| segment == "body");
    if !leads_on {
        return Some(step);
    }
    match step {
        Step::Loop(inner) => match &mut inner.body {
            Body::Steps(steps) => step_at(steps, &rest[1..]),
            Body::Named(_) => None,
        },
        Step::Plain(_) => None,
    }
}
