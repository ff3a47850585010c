//! Results that were too large to hand over, kept whole for a while so that they can be read again: in files of a folder of
//! our own, which goes with us. The oldest go first where there are too many.

mod address;

use std::collections::VecDeque;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

pub use address::{Address, PART_BYTES, Part, SCHEME};
use tempfile::TempDir;

use crate::call::Party;

/// The longest sign in UTF-8.
const SIGN_BYTES_MAX: u64 = 4;
/// So many results are kept.
const RESULTS_MAX: usize = 256;

/// The whole of a result that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Under which it is read again: `mcp-kept:…`. Nobody can guess it.
    pub uri: String,
    /// How large it is, as JSON.
    pub bytes: usize,
}

impl Kept {
    /// Where one begins to read who cannot read all of it at once.
    pub fn first_part(&self) -> String {
        let address = Address::read(&self.uri);
        address.map_or_else(|| self.uri.clone(), |address| address.first().to_string())
    }
}

/// What is kept, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// Where the part behind it is, if it is one and there is more.
    pub next: Option<String>,
}

/// Where they are.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    limit: u64,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Made for the first one.
    folder: Option<TempDir>,
    files: VecDeque<File>,
    bytes: u64,
}

#[derive(Debug)]
struct File {
    id: String,
    /// Whose it is.
    party: Party,
    path: PathBuf,
    bytes: u64,
}

impl Store {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, inner: Arc::default() }
    }

    /// Keeps a text. Nothing where it is larger than all there is room for.
    pub(crate) async fn keep(&self, text: String, party: Party) -> io::Result<Option<Kept>> {
        let store = self.clone();
        let kept = tokio::task::spawn_blocking(move || store.keep_now(&text, party)).await;
        kept.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn keep_now(&self, text: &str, party: Party) -> io::Result<Option<Kept>> {
        let bytes = text.len() as u64;
        if bytes > self.limit {
            return Ok(None);
        }
        let id = id()?;
        let path = {
            let mut inner = self.inner.lock();
            let folder = match &mut inner.folder {
                Some(folder) => folder,
                none => {
                    none.insert(tempfile::Builder::new().prefix("workflowlookup-kept-").tempdir()?)
                }
            };
            folder.path().join(&id)
        };
        // The folder is nobody else's.
        std::fs::write(&path, text)?;
        let mut inner = self.inner.lock();
        inner.bytes += bytes;
        inner.files.push_back(File { id: id.clone(), party, path, bytes });
        while inner.bytes > self.limit || inner.files.len() > RESULTS_MAX {
            let Some(oldest) = inner.files.pop_front() else { break };
            inner.bytes -= oldest.bytes;
            let _ = std::fs::remove_file(oldest.path);
        }
        Ok(Some(Kept { uri: format!("{SCHEME}{id}"), bytes: text.len() }))
    }

    /// What is kept under an address: JSON, or a part of it. For others than whose it is, there is nothing; what was kept for
    /// somebody without a name is for whoever knows the address.
    pub(crate) async fn read(&self, uri: &str, reader: &Party) -> Option<Piece> {
        let address = Address::read(uri)?;
        let is_for = |file: &&File| file.party == *reader || !file.party.is_named();
        let (path, bytes) = {
            let inner = self.inner.lock();
            let file = inner.files.iter().find(|file| file.id == address.id).filter(is_for)?;
            (file.path.clone(), file.bytes)
        };
        let part = address.part;
        let read = move || match part {
            Some(part) => read_part(&path, part, bytes),
            None => std::fs::read_to_string(path),
        };
        let text = tokio::task::spawn_blocking(read).await.ok()?.ok()?;
        Some(Piece { text, next: address.next(bytes).map(|next| next.to_string()) })
    }
}

/// Some of a text, without all of it. A sign on the border belongs to the part in which it begins.
fn read_part(path: &Path, part: Part, bytes: u64) -> io::Result<String> {
    let begin = part.offset.min(bytes);
    let end = begin.saturating_add(part.length).min(bytes);
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut read = Vec::new();
    // Enough to see where the last sign ends.
    file.take(end - begin + SIGN_BYTES_MAX).read_to_end(&mut read)?;
    let border = |at: u64| {
        let mut at = (at - begin) as usize;
        while read.get(at).is_some_and(|byte| byte & 0xC0 == 0x80) {
            at += 1;
        }
        at
    };
    let text = read.get(border(begin)..border(end)).unwrap_or_default();
    String::from_utf8(text.to_vec()).map_err(io::Error::other)
}

fn id() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Party {
        Party::named("me")
    }

    async fn text(store: &Store, uri: &str) -> Option<String> {
        store.read(uri, &me()).await.map(|piece| piece.text)
    }

    #[tokio::test]
    async fn parts_are_the_whole() {
        let store = Store::new(10_000);
        let whole: String = "aä€😀".chars().cycle().take(200).collect();
        let kept = store.keep(whole.clone(), me()).await.unwrap().unwrap();
        for length in [1, 2, 3, 5, 64, 10_000] {
            let mut next = Some(format!("{}?offset=0&length={length}", kept.uri));
            let mut read = String::new();
            while let Some(uri) = next {
                let piece = store.read(&uri, &me()).await.unwrap();
                read += &piece.text;
                next = piece.next;
            }
            assert_eq!(read, whole, "{length}");
        }
        assert_eq!(text(&store, &kept.first_part()).await, Some(whole));
        let beyond = format!("{}?offset=99999&length=5", kept.uri);
        assert_eq!(
            store.read(&beyond, &me()).await,
            Some(Piece { text: String::new(), next: None })
        );
    }

    #[tokio::test]
    async fn the_oldest_goes_when_there_is_no_room() {
        let store = Store::new(100);
        let first = store.keep(format!("\"{}\"", "a".repeat(58)), me()).await.unwrap().unwrap();
        assert_eq!(text(&store, &first.uri).await, Some(format!("\"{}\"", "a".repeat(58))));
        let folder = store.inner.lock().folder.as_ref().unwrap().path().to_owned();
        let second = store.keep(format!("\"{}\"", "b".repeat(58)), me()).await.unwrap().unwrap();
        assert_ne!(first.uri, second.uri);
        assert_eq!(store.read(&first.uri, &me()).await, None);
        assert_eq!(text(&store, &second.uri).await, Some(format!("\"{}\"", "b".repeat(58))));
        assert_eq!(store.keep("x".repeat(101), me()).await.unwrap(), None);
        assert_eq!(store.read("mcp-kept:../../etc/passwd", &me()).await, None);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        drop(store);
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn only_whose_it_is_reads_it() {
        let store = Store::new(100);
        let kept = store.keep("1".to_owned(), Party::named("ann")).await.unwrap().unwrap();
        let read = store.read(&kept.uri, &Party::named("ann")).await;
        assert_eq!(read.map(|piece| piece.text).as_deref(), Some("1"));
        for stranger in [Party::named("bob"), Party::named(""), Party::alone()] {
            assert_eq!(store.read(&kept.uri, &stranger).await, None);
        }
        let kept = store.keep("2".to_owned(), Party::alone()).await.unwrap().unwrap();
        let read = store.read(&kept.uri, &Party::alone()).await;
        assert_eq!(read.map(|piece| piece.text).as_deref(), Some("2"));
    }
}
