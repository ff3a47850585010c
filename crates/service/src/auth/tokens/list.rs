//! The list of tokens as commands and administrators see it, wherever it is kept: in a file, or in a store that processes
//! on several machines share. It is changed as a whole, by one at a time.

use std::io;
use std::path::PathBuf;

use store::{Document, Store};

use super::{NAME_CHARS_MAX, Record, TOKENS_MAX, file, is_name, make};
use crate::access::Right;
use crate::app::App;
use crate::error::Refusal;
use crate::sessions::from_store;

/// What the list is called in a store.
const DOCUMENT: &str = "tokens";
/// How often we try again when somebody else has changed it.
const TRIES_MAX: usize = 16;

/// Where tokens are kept.
#[derive(Clone)]
pub enum TokenPlace {
    File(PathBuf),
    /// With the sessions.
    Store(App),
}

impl TokenPlace {
    /// What is there; none where nobody has made any. An error says why it cannot be used.
    pub(super) fn in_store(app: &App) -> Result<Option<Vec<Record>>, String> {
        match read_if_any(app) {
            Ok(read) => read.map(|(_, text)| file::parse(&text)).transpose(),
            Err(refusal) => Err(refusal.to_string()),
        }
    }
}

/// A version and a text.
fn read(store: &Store) -> Result<Option<(u64, String)>, Refusal> {
    let document = store.document(DOCUMENT).map_err(|error| from_store(&error))?;
    Ok(document.map(|Document { version, text }| (version, text)))
}

/// Whoever only looks makes no tables.
fn read_if_any(app: &App) -> Result<Option<(u64, String)>, Refusal> {
    match app.sessions().get_if_any()? {
        Some(open) => read(open.sessions.store()),
        None => Ok(None),
    }
}

fn store(app: &App) -> Result<Store, Refusal> {
    Ok(app.sessions().get()?.sessions.store().clone())
}

/// The tokens that there are.
#[derive(Debug)]
pub struct TokenList(TokenPlace);

impl TokenList {
    pub fn new(place: TokenPlace) -> Self {
        Self(place)
    }

    /// Whether anybody has made one here.
    pub fn is_there(&self) -> Result<bool, Refusal> {
        match &self.0 {
            TokenPlace::File(path) => Ok(path.exists()),
            TokenPlace::Store(app) => Ok(read_if_any(app)?.is_some()),
        }
    }

    /// Makes a token. It is in the answer, and nowhere else.
    pub fn make(
        &self,
        name: &str,
        right: Right,
        now: u64,
        until: Option<u64>,
    ) -> Result<(String, Record), Refusal> {
        if !is_name(name) {
            return Err(Refusal::InvalidParams {
                details: format!("`{name}` cannot be the name of a token"),
                hint: Some(format!(
                    "up to {NAME_CHARS_MAX} letters, digits, `.`, `_`, `-` and `@`, with a letter or digit in front"
                )),
            });
        }
        self.change(|records| {
            if records.iter().any(|record| *record.name == *name && !record.is_expired(now)) {
                return Err(Refusal::TokenExists { name: name.to_owned() });
            }
            records.retain(|record| *record.name != *name);
            if records.len() >= TOKENS_MAX {
                return Err(Refusal::InvalidParams {
                    details: format!("there are {TOKENS_MAX} tokens already"),
                    hint: Some("revoke some that `workflowlookup token list` shows".to_owned()),
                });
            }
            let (token, record) = make(name, right, now, until)?;
            records.push(record.clone());
            Ok((token, record))
        })
    }

    /// Ends a token.
    pub fn revoke(&self, name: &str) -> Result<(), Refusal> {
        let none = || Refusal::TokenNotFound { name: name.to_owned() };
        // Whoever only looks makes no list.
        if !self.list()?.iter().any(|record| *record.name == *name) {
            return Err(none());
        }
        self.change(|records| {
            let before = records.len();
            records.retain(|record| *record.name != *name);
            if records.len() == before { Err(none()) } else { Ok(()) }
        })
    }

    /// Every token, in the order in which they were made.
    pub fn list(&self) -> Result<Vec<Record>, Refusal> {
        match &self.0 {
            TokenPlace::File(path) => {
                let read = file::read(path).map_err(|why| self.unusable(&why))?;
                Ok(read.map(|(records, _)| records).unwrap_or_default())
            }
            TokenPlace::Store(app) => Ok(self.parsed(read_if_any(app)?)?.1),
        }
    }

    fn change<T>(
        &self,
        change: impl Fn(&mut Vec<Record>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let path = match &self.0 {
            TokenPlace::File(path) => path,
            TokenPlace::Store(app) => return self.change_shared(&store(app)?, change),
        };
        let cannot_write = |error: io::Error| Refusal::Store {
            details: format!("`{}` cannot be written: {error}", path.display()),
            hint: Some(
                "see that its folder is yours to write, or name another file with `--tokens FILE`"
                    .to_owned(),
            ),
        };
        // Two at once would both add to what was there, and the later one would win.
        let _lock = file::lock(path).map_err(cannot_write)?;
        let mut records = self.list()?;
        let changed = change(&mut records)?;
        file::write(path, records).map_err(cannot_write)?;
        Ok(changed)
    }

    /// The list in a store, and its version.
    fn parsed(&self, read: Option<(u64, String)>) -> Result<(u64, Vec<Record>), Refusal> {
        match read {
            Some((version, text)) => {
                let records = file::parse(&text).map_err(|why| self.unusable(&why))?;
                Ok((version, records))
            }
            None => Ok((0, Vec::new())),
        }
    }

    fn change_shared<T>(
        &self,
        store: &Store,
        change: impl Fn(&mut Vec<Record>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        for _ in 0..TRIES_MAX {
            let (version, mut records) = self.parsed(read(store)?)?;
            let changed = change(&mut records)?;
            let text = file::text(records).map_err(|error| self.unusable(&error.to_string()))?;
            let replaced = store.replace_document(DOCUMENT, Document { version, text });
            if replaced.map_err(|error| from_store(&error))? {
                return Ok(changed);
            }
        }
        Err(Refusal::Store {
            details: "others change the tokens all the time".to_owned(),
            hint: Some("nothing was changed; try again".to_owned()),
        })
    }

    fn unusable(&self, why: &str) -> Refusal {
        let place = match &self.0 {
            TokenPlace::File(path) => format!("`{}`", path.display()),
            TokenPlace::Store(_) => "the store".to_owned(),
        };
        Refusal::Store {
            details: format!("the tokens in {place} cannot be used: {why}"),
            hint: Some(
                "put a good copy back, or move it away and make new tokens; until then none is let in"
                    .to_owned(),
            ),
        }
    }
}

impl std::fmt::Debug for TokenPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => out.debug_tuple("File").field(path).finish(),
            Self::Store(_) => out.write_str("Store"),
        }
    }
}
