//! The key of this user on this machine: made on first use, readable by its owner alone, and never changed. Each use
//! gets a key of its own that is derived from it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use hmac::Mac as _;

use super::Signer;
use super::place::{KEY_VARIABLE, KeyPlace};
use crate::seal::hmac;

const BYTES: usize = 32;
/// How much of a file is read.
const TEXT_BYTES_MAX: u64 = 1024;

pub(crate) struct MasterKey([u8; BYTES]);

impl MasterKey {
    /// What the chains of events are made with.
    pub(crate) fn for_chain(&self) -> store::Key {
        store::Key::new(self.derived("chain of events"))
    }

    /// What is handed to clients and comes back is signed with this.
    pub(crate) fn signer(&self) -> Signer {
        Signer::new(self.derived("request state"))
    }

    pub(crate) fn for_handshakes(&self) -> [u8; BYTES] {
        self.derived("handshake")
    }

    /// What clients carry while an upstream waits for their users is sealed with this.
    pub(crate) fn for_questions(&self) -> [u8; BYTES] {
        self.derived("question of an upstream")
    }

    /// What says how far the store has come is sealed with this.
    pub(crate) fn for_anchor(&self) -> [u8; BYTES] {
        self.derived("anchor of the store")
    }

    fn derived(&self, purpose: &str) -> [u8; BYTES] {
        let mut mac = hmac(&self.0);
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// The key from where it is kept.
pub(super) fn at(place: &KeyPlace) -> io::Result<MasterKey> {
    match place {
        KeyPlace::File(path) => read_or_make(path),
        KeyPlace::Environment => parse(&std::env::var(KEY_VARIABLE).unwrap_or_default()),
    }
}

fn read_or_make(path: &Path) -> io::Result<MasterKey> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path)?;
            read(path)
        }
        read => read,
    }
}

fn read(path: &Path) -> io::Result<MasterKey> {
    let mut text = String::new();
    // A longer one is no key, whatever follows.
    regular_file::open(path)?.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
    parse(&text)
}

fn parse(text: &str) -> io::Result<MasterKey> {
    let digits = text.trim_end();
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "it is not 64 hexadecimal digits");
    if digits.len() != 2 * BYTES || !digits.is_ascii() {
        return Err(broken());
    }
    let mut key = [0; BYTES];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| broken())?;
    }
    Ok(MasterKey(key))
}

/// Several processes may do so at once: the first one's key is everybody's, and nobody reads half of it.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let mut key = [0; BYTES + 8];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let draft = path.with_extension(format!("new-{}", hex(&key[BYTES..])));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    let written = file
        .write_all(format!("{}\n", hex(&key[..BYTES])).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match written {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::File::open(folder)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_is_everybodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/key");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || read_or_make(&path).unwrap().0)
            })
            .collect();
        let keys: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(keys.iter().all(|key| *key == keys[0] && *key != [0; BYTES]));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_no_key_is_said_so_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for text in ["", "abc", &"g".repeat(64), &"é".repeat(32)] {
            fs::write(&path, text).unwrap();
            assert!(read_or_make(&path).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
