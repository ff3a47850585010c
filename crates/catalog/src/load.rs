//! Finding and reading the files of a source. Everything is bounded; a file that cannot be read is an
//! entry with a finding, and hides nothing else.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use workflow::limits::{FILE_BYTES_MAX, is_id};
use workflow::{Code, Finding, Format, Reading, Scrutiny, read, read_trusted};

use crate::own_id;
use crate::snapshot::{Entry, SourceReport, SourceState};
use crate::source::{Kind, Source};

/// How many workflow files one source may hold.
pub const FILES_MAX: usize = 20_000;
/// How deep the folders of a source may nest.
pub const FOLDER_DEPTH_MAX: usize = 16;
/// A file that changes while it is read is read again, at most this often.
const ATTEMPTS_MAX: usize = 3;
/// How long a watched file must be left alone before it is read…
const REST: Duration = Duration::from_millis(300);
/// …how long if there is nothing in it yet, which its writer will hardly leave so…
const REST_EMPTY: Duration = Duration::from_secs(2);
/// …and how long if it was seen to be closed.
const REST_CLOSED: Duration = Duration::from_millis(20);
/// Below this many files threads cost more than they bring.
const FILES_PER_THREAD_MIN: usize = 16;

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// What is known from the last load, and what must not be taken from it.
#[derive(Default)]
pub(crate) struct Known<'a> {
    /// By source and path.
    pub(crate) entries: HashMap<(usize, &'a Path), &'a Arc<Entry>>,
    /// Files that changed, whatever their stamps say, by their absolute paths.
    pub(crate) touched: HashSet<PathBuf>,
    /// Files that somebody is writing, by their absolute paths: their last state stands, and new ones
    /// are not there yet.
    pub(crate) unfinished: HashSet<PathBuf>,
    /// Somebody is watching: a file that changed this very moment may be half-written, and can wait.
    pub(crate) is_watched: bool,
    /// After how many milliseconds a file that was left alone because of that can be read; 0 for none.
    pub(crate) rest_ms: AtomicU64,
}

impl Known<'_> {
    /// Whether a file changed so shortly ago that its writer may not be done. What the system has told
    /// us to be closed needs hardly any rest.
    fn must_rest(&self, path: &Path, stamp: Stamp) -> bool {
        let rest = match stamp.length {
            _ if self.is_in(&self.touched, path) => REST_CLOSED,
            0 => REST_EMPTY,
            _ => REST,
        };
        let age = stamp.modified.and_then(|modified| modified.elapsed().ok());
        let left = age.and_then(|age| rest.checked_sub(age)).filter(|_| self.is_watched);
        if let Some(left) = left {
            // One more, so that it is really over then.
            let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX) + 1;
            self.rest_ms.fetch_max(left, Ordering::Relaxed);
        }
        left.is_some()
    }

    fn is_in(&self, set: &HashSet<PathBuf>, path: &Path) -> bool {
        !set.is_empty() && std::path::absolute(path).is_ok_and(|path| set.contains(&path))
    }
}

/// Loads all sources.
pub(crate) fn load(sources: &[Source], known: &Known<'_>) -> (Vec<SourceReport>, Vec<Arc<Entry>>) {
    let mut reports = Vec::with_capacity(sources.len());
    let mut entries = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let mut report =
            SourceReport { source: source.clone(), state: SourceState::Read, findings: Vec::new() };
        match source {
            Source::Bundled(definitions) => {
                entries.extend(definitions.iter().map(|(name, text)| {
                    if let Some(before) = known.entries.get(&(index, Path::new(name))) {
                        return Arc::clone(before);
                    }
                    let format = Format::of(name).unwrap_or(Format::Json);
                    // Tests hold the bundled ones to every rule, so that no start pays for it.
                    let reading = match read_trusted(text, format) {
                        Some(workflow) => {
                            let id = Some(workflow.id.clone());
                            Reading { workflow: Some(workflow), id, findings: Vec::new() }
                        }
                        None => read(text.as_bytes(), format, Scrutiny::Syntax),
                    };
                    Arc::new(entry(index, Path::new(name), None, reading, None))
                }));
            }
            Source::Folder { kind, path } => {
                let found = Finder::find(path, &mut report);
                entries.extend(read_all((index, *kind), &found, known));
            }
        }
        reports.push(report);
    }
    (reports, entries)
}

/// A file to read, or one that was refused before.
#[derive(Debug)]
pub(crate) enum Found {
    File(PathBuf, Stamp),
    Refused(PathBuf, Finding),
}

/// Everything in a folder that may be a workflow, and what is wrong with the folder.
pub(crate) fn find(folder: &Path) -> (Vec<Found>, Vec<Finding>) {
    let source = Source::Folder { kind: Kind::Option, path: folder.to_path_buf() };
    let mut report = SourceReport { source, state: SourceState::Read, findings: Vec::new() };
    let found = Finder::find(folder, &mut report);
    (found, report.findings)
}

struct Finder<'a> {
    root: PathBuf,
    found: Vec<Found>,
    report: &'a mut SourceReport,
    /// There are more files than we take.
    is_full: bool,
}

impl<'a> Finder<'a> {
    /// Everything in a folder that may be a workflow, in the order of paths.
    fn find(folder: &Path, report: &'a mut SourceReport) -> Vec<Found> {
        let root = match fs::canonicalize(folder) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                report.state = SourceState::Missing;
                return Vec::new();
            }
            Err(error) => {
                report.state = SourceState::Unreadable;
                report.findings.push(unreadable(folder, &error));
                return Vec::new();
            }
        };
        let mut finder = Self { root, found: Vec::new(), report, is_full: false };
        finder.folder(folder, 1);
        finder.found
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                if depth == 1 {
                    self.report.state = SourceState::Unreadable;
                }
                self.report.findings.push(unreadable(folder, &error));
                return;
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            // Hidden files are editors' and version control's.
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth >= FOLDER_DEPTH_MAX => {
                    let message = format!("folders nest more than {FOLDER_DEPTH_MAX} deep");
                    self.report.findings.push(too_many(&path, message));
                }
                Ok(kind) if kind.is_dir() => self.folder(&path, depth + 1),
                Ok(kind) if Format::of(&name.to_string_lossy()).is_none() => {
                    if kind.is_symlink() && path.is_dir() {
                        self.report.findings.extend(self.leads_out(&path));
                    }
                }
                Ok(kind) => {
                    if self.found.len() >= FILES_MAX {
                        if !self.is_full {
                            let message = format!("the source holds more than {FILES_MAX} files");
                            self.report.findings.push(too_many(&path, message));
                        }
                        self.is_full = true;
                        return;
                    }
                    let found = self.file(path, kind.is_symlink());
                    self.found.extend(found);
                }
                Err(error) => {
                    self.found.push(Found::Refused(path.clone(), unreadable(&path, &error)))
                }
            }
        }
    }

    /// The finding about a link whose target is not within the source.
    fn leads_out(&self, link: &Path) -> Option<Finding> {
        let target = fs::canonicalize(link).ok()?;
        let finding = Finding::on_file(
            Code::LinkOut,
            "the link leads out of its folder and was not followed",
            "copy what it leads to, or add that folder with `--workflows`",
        );
        (!target.starts_with(&self.root)).then(|| on(link, finding))
    }

    /// A regular file, possibly through a link that stays within the source. Anything else that looks
    /// like a workflow is refused here already, and again when it is opened.
    fn file(&self, path: PathBuf, is_link: bool) -> Option<Found> {
        if is_link {
            match fs::canonicalize(&path) {
                Ok(_) => {
                    if let Some(finding) = self.leads_out(&path) {
                        return Some(Found::Refused(path, finding));
                    }
                }
                Err(error) => return Some(Found::Refused(path.clone(), unreadable(&path, &error))),
            }
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Some(Found::File(path, Stamp::of(&metadata))),
            // A link to a folder inside the source: that folder is visited anyway.
            Ok(metadata) if metadata.is_dir() => None,
            Ok(_) => {
                let finding =
                    Finding::on_file(Code::Unreadable, "this is not a regular file", "remove it");
                Some(Found::Refused(path.clone(), on(&path, finding)))
            }
            // Gone since it was listed: then it is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Found::Refused(path.clone(), unreadable(&path, &error))),
        }
    }
}

/// Reads files on as many threads as there are cores, keeping their order.
fn read_all(source: (usize, Kind), found: &[Found], known: &Known<'_>) -> Vec<Arc<Entry>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(found.len() / FILES_PER_THREAD_MIN).max(1);
    if threads == 1 {
        return found.iter().filter_map(|found| read_one(source, found, known)).collect();
    }
    let turn = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        loop {
            let at = turn.fetch_add(1, Ordering::Relaxed);
            let Some(found) = found.get(at) else {
                return read;
            };
            read.extend(read_one(source, found, known).map(|entry| (at, entry)));
        }
    };
    let mut entries: Vec<(usize, Arc<Entry>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut entries = work();
        for other in others {
            match other.join() {
                Ok(read) => entries.extend(read),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        entries
    });
    entries.sort_by_key(|(at, _)| *at);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn read_one((source, kind): (usize, Kind), found: &Found, known: &Known<'_>) -> Option<Arc<Entry>> {
    let (path, stamp) = match found {
        Found::Refused(path, finding) => {
            let before = known.entries.get(&(source, path.as_path())).copied();
            if let Some(before) = before.filter(|before| *before.findings == [finding.clone()]) {
                return Some(Arc::clone(before));
            }
            let reading = Reading { workflow: None, id: None, findings: vec![finding.clone()] };
            return Some(Arc::new(entry(source, path, None, reading, None)));
        }
        Found::File(path, stamp) => (path, *stamp),
    };
    let before = known.entries.get(&(source, path.as_path())).copied();
    if known.is_in(&known.unfinished, path) {
        return before.cloned();
    }
    let is_fresh =
        before.filter(|before| before.stamp == Some(stamp) && !known.is_in(&known.touched, path));
    if let Some(before) = is_fresh {
        return Some(Arc::clone(before));
    }
    if known.must_rest(path, stamp) {
        return before.cloned();
    }
    let format = Format::of(&path.to_string_lossy()).unwrap_or(Format::Json);
    let (mut reading, content) = read_with(path, |bytes| read(bytes, format, Scrutiny::Syntax))?;
    if let Some((bytes, _)) = content.as_ref().filter(|_| reading.id.is_none()) {
        reading.id = own_id::find(bytes, format);
    }
    // The user's own files need nobody's consent.
    let digest = content.as_ref().filter(|_| kind != Kind::User);
    let digest = digest.map(|(bytes, _)| Sha256::digest(bytes).into());
    let stamp = content.map(|(_, stamp)| stamp);
    // What cannot be opened stays as it is reported, until something changes.
    let is_same = |before: &&Arc<Entry>| {
        stamp.is_none() && before.stamp.is_none() && *before.findings == *reading.findings
    };
    if let Some(before) = before.filter(is_same) {
        return Some(Arc::clone(before));
    }
    let last_id = before.filter(|before| !before.is_guess).map(|before| &*before.id);
    Some(Arc::new(Entry { digest, ..entry(source, path, last_id, reading, stamp) }))
}

/// A file's bytes, and the state in which they were read.
type Content = (Vec<u8>, Stamp);

/// Reads a file, with its content where there is any; `None` where it is gone.
pub(crate) fn read_with(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Reading,
) -> Option<(Reading, Option<Content>)> {
    let refused = |finding| Reading { workflow: None, id: None, findings: vec![finding] };
    match read_settled(path) {
        Ok((bytes, stamp)) => Some((read(&bytes), Some((bytes, stamp)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some((refused(unreadable(path, &error)), None)),
    }
}

/// Reads a file whose state is the same before and after; one that keeps changing is taken as it is.
fn read_settled(path: &Path) -> io::Result<(Vec<u8>, Stamp)> {
    let mut attempt = 1;
    loop {
        let file = regular_file::open(path)?;
        let before = Stamp::of(&file.metadata()?);
        let expected = usize::try_from(before.length).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(expected.min(FILE_BYTES_MAX) + 1);
        (&file).take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        let after = Stamp::of(&file.metadata()?);
        if before == after || attempt == ATTEMPTS_MAX {
            return Ok((bytes, after));
        }
        attempt += 1;
    }
}

/// The id is the file's own; else the one that it had when it could be read; else a guess.
fn entry(
    source: usize,
    path: &Path,
    last_id: Option<&str>,
    reading: Reading,
    stamp: Option<Stamp>,
) -> Entry {
    let own = reading.id.as_deref().filter(|id| is_id(id)).or(last_id);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    let id: Box<str> = match own {
        Some(id) => id.into(),
        None => stem.as_deref().unwrap_or_default().into(),
    };
    let is_guess = own.is_none();
    let findings = reading.findings.into_iter().map(|finding| on(path, finding));
    Entry {
        id,
        source,
        path: path.into(),
        workflow: reading.workflow,
        findings: findings.collect(),
        digest: None,
        is_guess,
        stamp,
    }
}

fn on(path: &Path, mut finding: Finding) -> Finding {
    finding.file = Some(path.display().to_string().into());
    finding
}

fn unreadable(path: &Path, error: &io::Error) -> Finding {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "allow yourself to read it",
        io::ErrorKind::NotFound => "the link leads to nothing: remove it",
        _ => "see whether it is there and can be opened",
    };
    on(path, Finding::on_file(Code::Unreadable, format!("cannot be read: {error}"), hint))
}

fn too_many(path: &Path, message: String) -> Finding {
    on(path, Finding::on_file(Code::TooManyFiles, message, "split the folder into several sources"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Only for a failure: nothing here waits.
    const WATCHDOG: Duration = Duration::from_secs(30);

    #[test]
    fn file_that_became_a_fifo_before_it_was_opened_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let (done, read) = mpsc::channel();
        // The check of its name was passed already.
        std::thread::spawn(move || {
            let syntax = |bytes: &[u8]| workflow::read(bytes, Format::Json, Scrutiny::Syntax);
            let _ = done.send(read_with(&path, syntax));
        });
        let (reading, content) = read.recv_timeout(WATCHDOG).unwrap().unwrap();
        assert_eq!(reading.findings[0].code, Code::Unreadable);
        assert_eq!(&*reading.findings[0].message, "cannot be read: it is not a regular file");
        assert!(content.is_none());
    }
}
