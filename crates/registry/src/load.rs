//! From files to one registry: each file is read by itself, and then they are put together, the first winning by id.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::draft::Draft;
use super::entry::Entry;
use super::finding::{Code, Finding};
use super::limits::SECRET_BYTES_MAX;
use super::masks::Masks;
use super::place::{Content, Kind, Places, on_file, read};
use super::read::{Format, Reader, Reading};
use super::trust::{self, read_trusted};

/// The upstreams that there are. A new state is a new value; entries that did not change are the same `Arc`s.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// Those that can be used, in the order of the files.
    pub entries: Vec<Arc<Entry>>,
    /// Everything that is wrong, in all files.
    pub findings: Vec<Finding>,
    /// Where was looked.
    pub files: Vec<RegistryFile>,
    /// What an earlier file hides.
    pub shadows: Vec<Shadow>,
    /// One higher with each change.
    pub generation: u64,
    masks: Arc<Masks>,
}

/// One file of a registry.
#[derive(Debug, Clone)]
pub struct RegistryFile {
    pub kind: Kind,
    pub path: PathBuf,
    pub state: State,
    /// Everything in it, also what cannot be used.
    pub servers: Vec<Listed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Absent,
    Read,
    /// It cannot be read.
    Broken,
    /// It cannot be read any more, and its last good state counts.
    Kept,
}

/// A server as a file lists it.
#[derive(Debug, Clone)]
pub struct Listed {
    pub draft: Draft,
    /// A JSON pointer to it in its file.
    pub pointer: String,
    pub standing: Standing,
    /// What is wrong with it, as far as one thing says it.
    pub trouble: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Used,
    Disabled,
    /// The findings say why.
    Unusable,
    /// Another file has this id.
    Hidden,
    /// Nobody has consented to it, so that it takes no effect: no id is taken by it either.
    Untrusted,
}

/// An id that stands in two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    pub id: String,
    /// The file that counts.
    pub by: PathBuf,
    pub hidden: PathBuf,
}

/// What was read of a file; nothing where there is none.
pub(super) type Loaded = Result<Option<(Content, Reading)>, Finding>;

impl Registry {
    /// Reads everything. What is wrong is told in the findings.
    pub fn load(places: &Places) -> Self {
        let parts = places.files().into_iter().map(|(kind, path)| {
            let loaded = load(kind, &path, places);
            Part::of(kind, path, loaded)
        });
        let parts: Vec<Part> = parts.collect();
        assemble(parts.iter(), None)
    }

    /// What was read from somewhere else than a file.
    pub fn of(reading: Reading) -> Self {
        let part = Part { kind: Kind::Named, path: PathBuf::new(), state: State::Read, reading };
        assemble(std::iter::once(&part), None)
    }

    pub fn get(&self, id: &str) -> Option<&Arc<Entry>> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Those that cannot be used before somebody mends them.
    pub fn unusable(&self) -> impl Iterator<Item = &Listed> {
        let servers = self.files.iter().flat_map(|file| &file.servers);
        servers.filter(|server| server.standing == Standing::Unusable)
    }

    /// Those that wait for a person's consent, each with its file.
    pub fn untrusted(&self) -> impl Iterator<Item = (&RegistryFile, &Listed)> {
        let servers =
            self.files.iter().flat_map(|file| file.servers.iter().map(move |one| (file, one)));
        servers.filter(|(_, server)| server.standing == Standing::Untrusted)
    }

    /// Whether no file names a server that can be used, or could be once it is trusted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.untrusted().next().is_none()
    }

    /// The server that a finding is about, where it is about one.
    pub fn server_of(&self, finding: &Finding) -> Option<&Listed> {
        let file = self.files.iter().find(|file| {
            finding.file.as_deref().is_some_and(|path| *path == *file.path.display().to_string())
        })?;
        file.servers.iter().find(|server| {
            let inside = finding.pointer.strip_prefix(server.pointer.as_str());
            !server.pointer.is_empty()
                && inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Everything secret in it.
    pub fn masks(&self) -> &Arc<Masks> {
        &self.masks
    }

    /// The ids of those that are new, other than they were, or gone.
    pub fn changed_since(&self, earlier: &Self) -> Vec<String> {
        let by_id = |registry: &Self| -> BTreeMap<String, Arc<Entry>> {
            registry.entries.iter().map(|entry| (entry.id.clone(), Arc::clone(entry))).collect()
        };
        let (old, new) = (by_id(earlier), by_id(self));
        let changed = new.iter().filter(|(id, entry)| old.get(*id).is_none_or(|old| old != *entry));
        let gone = old.keys().filter(|id| !new.contains_key(*id));
        changed.map(|(id, _)| id.clone()).chain(gone.cloned()).collect()
    }
}

impl RegistryFile {
    /// The command by which a person trusts it.
    pub fn trust_command(&self) -> String {
        trust::command(self.kind, &self.path)
    }
}

/// A file, and what it comes to.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) path: PathBuf,
    pub(super) state: State,
    pub(super) reading: Reading,
}

impl Part {
    pub(super) fn of(kind: Kind, path: PathBuf, loaded: Loaded) -> Self {
        let (state, reading) = match loaded {
            Ok(Some((content, mut reading))) => {
                if content.is_exposed {
                    let message = "everybody on this machine may change it, and so what is started";
                    let hint = "`chmod o-w` it";
                    let finding = on_file(Code::Exposed, &path, message.to_owned(), hint);
                    reading.findings.push(finding);
                }
                (if reading.is_whole { State::Read } else { State::Broken }, reading)
            }
            // One that was asked for should be there.
            Ok(None) if kind == Kind::Named => {
                let hint = "see whether the path is right";
                let finding =
                    on_file(Code::Unreadable, &path, "there is no such file".to_owned(), hint);
                (State::Absent, Reading { findings: vec![finding], ..Reading::default() })
            }
            Ok(None) => (State::Absent, Reading::default()),
            Err(finding) => {
                (State::Broken, Reading { findings: vec![finding], ..Reading::default() })
            }
        };
        Self { kind, path, state, reading }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.state == other.state
            && self.reading.findings == other.reading.findings
            && self.reading.is_same(&other.reading)
    }
}

pub(super) fn load(kind: Kind, path: &Path, places: &Places) -> Loaded {
    let Some(content) = read(path)? else { return Ok(None) };
    let base = std::path::absolute(path).ok();
    let base = base.as_deref().and_then(Path::parent);
    let file = path.display().to_string();
    let variables = &places.variables;
    let reader = Reader { file: Some(&file), format: Format::of(path), base, variables };
    let trust = places.trust(kind, path, &content.text);
    let reading = read_trusted(&reader, &content.text, &trust);
    Ok(Some((content, reading)))
}

/// Puts files together. What did not change since the earlier state is shared with it.
pub(super) fn assemble<'p>(
    parts: impl Iterator<Item = &'p Part>,
    earlier: Option<&Registry>,
) -> Registry {
    let mut registry = Registry::default();
    // An id is taken by the first file that has it, whether it can be used there or not: a mistake must not lead to
    // another server of the same name.
    let mut taken: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut secret_bytes = 0;
    for part in parts {
        let mut servers = Vec::new();
        let mut own: Vec<String> = Vec::new();
        for server in &part.reading.servers {
            let draft = server.draft.clone();
            let mut trouble = server.trouble.clone();
            let standing = match (taken.get(&draft.id), &server.entry) {
                _ if !server.is_trusted && !draft.is_disabled => Standing::Untrusted,
                (Some(by), _) => {
                    let (by, hidden) = (by.clone(), part.path.clone());
                    registry.shadows.push(Shadow { id: draft.id.clone(), by, hidden });
                    Standing::Hidden
                }
                (None, Some(entry)) if !fits(entry, &mut secret_bytes) => {
                    let message = format!("`{}` has more secrets than can be hidden", entry.id);
                    let hint = "keep large secrets in files, and name those";
                    trouble = Some(message.as_str().into());
                    registry.findings.push(on_file(Code::TooLarge, &part.path, message, hint));
                    Standing::Unusable
                }
                (None, Some(entry)) => {
                    let same = earlier.and_then(|earlier| earlier.get(&entry.id));
                    let same = same.filter(|same| ***same == *entry).cloned();
                    registry.entries.push(same.unwrap_or_else(|| Arc::new(entry.clone())));
                    Standing::Used
                }
                (None, None) if draft.is_disabled => Standing::Disabled,
                (None, None) => Standing::Unusable,
            };
            if server.is_trusted {
                own.push(draft.id.clone());
            }
            servers.push(Listed { draft, pointer: server.pointer.clone(), standing, trouble });
        }
        taken.extend(own.into_iter().filter(|id| !id.is_empty()).map(|id| (id, part.path.clone())));
        registry.findings.extend(part.reading.findings.iter().cloned());
        let (kind, path) = (part.kind, part.path.clone());
        registry.files.push(RegistryFile { kind, path, state: part.state, servers });
    }
    let secrets = registry.entries.iter().flat_map(|entry| entry.connect.secrets());
    let former = earlier.map(|earlier| Arc::clone(&earlier.masks)).unwrap_or_default();
    let masks = Masks::new(secrets.map(str::to_owned).chain(former.secrets().cloned()));
    registry.masks = if masks == *former { former } else { Arc::new(masks) };
    registry
}

/// Whether all that is secret can be looked for.
fn fits(entry: &Entry, bytes: &mut usize) -> bool {
    *bytes += entry.connect.secrets().map(str::len).sum::<usize>();
    *bytes <= SECRET_BYTES_MAX
}
