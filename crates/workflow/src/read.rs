//! From bytes to a workflow and its findings. A good JSON file is read once, typed, and costs no more.
//! Only where something is wrong (and for YAML) is the untyped tree built, for the places and for
//! the problems that typed reading hides behind the first.

use serde::Deserialize;

use crate::definition::{Body, Step, UnusableCriteria, Workflow};
use crate::finding::{Code, Finding, Severity};
use crate::limits::FILE_BYTES_MAX;
use crate::pointer::segments;
use crate::rules::{self, FINDINGS_MAX, Report};
use crate::serial::Fields;
use crate::shape;
use crate::tree::{At, Lines, Node, Unreadable, json_too_deep, parse_json, parse_yaml};

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

pub fn read(bytes: &[u8], format: Format, scrutiny: Scrutiny) -> Reading {
    if bytes.len() > FILE_BYTES_MAX {
        return Reading::refused(too_large());
    }
    let (bytes, has_mark) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if !is_utf_16(bytes) => text,
        Ok(_) => return Reading::refused(not_utf_8(bytes, 0)),
        Err(error) => return Reading::refused(not_utf_8(bytes, error.valid_up_to())),
    };
    let mut reading = match format {
        Format::Json => read_json(text, scrutiny),
        Format::Yaml => read_slowly(text, format, None, scrutiny),
    };
    if has_mark {
        let finding = Finding::on_file(
            Code::ByteOrderMark,
            "the file begins with a byte order mark",
            "save it as UTF-8 without one",
        );
        reading.findings.insert(0, finding);
    }
    reading
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

fn read_json(text: &str, scrutiny: Scrutiny) -> Reading {
    // Before anything recurses; and serde has a bound of its own, which is another than ours.
    if let Some(at) = json_too_deep(text) {
        return Reading::unreadable(Unreadable::too_deep(at..at + 1), &Lines::new(text));
    }
    let Ok(Fields(workflow)) = serde_json::from_str::<Fields<Workflow>>(text) else {
        return read_slowly(text, Format::Json, None, scrutiny);
    };
    let report = inspect(&workflow, Report::default(), scrutiny);
    if report.is_empty() {
        return Reading {
            id: Some(workflow.id.clone()),
            workflow: Some(workflow),
            findings: Vec::new(),
        };
    }
    read_slowly(text, Format::Json, Some((workflow, report)), scrutiny)
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
) -> Reading {
    let lines = Lines::new(text);
    let parsed = match format {
        Format::Json => parse_json(text),
        Format::Yaml => parse_yaml(text),
    };
    let tree = match parsed {
        Ok(tree) => tree,
        Err(problem) => return Reading::unreadable(problem, &lines),
    };
    let (workflow, report) = match inspected {
        Some((workflow, report)) => (Some(workflow), report),
        None => typed(&tree, scrutiny),
    };
    let duplicates = tree.duplicates();
    let has_more_errors = report.has_more_errors() || duplicates.len() > FINDINGS_MAX;
    let cut = [Severity::Error, Severity::Warning].map(|severity| {
        let has_more = severity == Severity::Error && duplicates.len() > FINDINGS_MAX;
        (severity, has_more || report.is_cut(severity))
    });
    let mut findings = place(report, &tree, &lines);
    findings.extend(duplicates.into_iter().take(FINDINGS_MAX).map(|duplicate| Finding {
        code: Code::DuplicateKey,
        file: None,
        place: Some(lines.place(&duplicate.range)),
        pointer: duplicate.pointer.into(),
        message: format!("the key `{}` stands earlier in this object", duplicate.key).into(),
        hint: Some("remove or rename one of them".into()),
    }));
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
    Reading { workflow, id, findings }
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
fn typed(tree: &Node, scrutiny: Scrutiny) -> (Option<Workflow>, Report) {
    let mut value = tree.value();
    let mut report = Report::default();
    let first = Fields::<Workflow>::deserialize(&value);
    let workflow = first.or_else(|_| {
        report.remember_words(&value);
        shape::mend(&mut value, &mut report);
        Fields::<Workflow>::deserialize(&value)
    });
    match workflow {
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
    }
}

fn place(report: Report, tree: &Node, lines: &Lines<'_>) -> Vec<Finding> {
    let placed = report.into_drafts().into_iter().map(|draft| {
        let range = tree.find(&draft.pointer, draft.at);
        Finding {
            code: draft.code,
            file: None,
            place: Some(lines.place(&lines.narrow(range, draft.part.as_deref()))),
            pointer: draft.pointer.into(),
            message: draft.message.into(),
            hint: draft.hint.map(Into::into),
        }
    });
    placed.collect()
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
