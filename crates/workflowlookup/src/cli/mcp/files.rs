//! Files for what a terminal cannot show. None that is there is ever overwritten.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rustix::fs::{Access, access};

use crate::cli::Failure;

/// So many names are tried.
const NUMBER_MAX: u32 = 10_000;
/// The longest beginning of a name.
const STEM_CHARS_MAX: usize = 60;

/// What servers send is not always padded.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Kinds that are met, and how their files are called.
const EXTENSIONS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/avif", "avif"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("audio/aac", "aac"),
    ("audio/webm", "weba"),
    ("video/mp4", "mp4"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("application/json", "json"),
    ("text/plain", "txt"),
    ("text/html", "html"),
    ("text/csv", "csv"),
    ("text/markdown", "md"),
];

/// Where files go.
pub(super) struct Folder<'a> {
    /// The folder that was named; otherwise the current one.
    named: Option<&'a Path>,
    /// How names begin.
    stem: String,
    next: u32,
}

impl<'a> Folder<'a> {
    /// Makes the folder that was named, and sees that it can be written to: what was asked for once may not be done twice,
    /// so it is better known before.
    pub(super) fn open(named: Option<&'a Path>, stem: &str) -> Result<Self, Failure> {
        if let Some(folder) = named {
            let path = folder.display();
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder `{path}`"))?;
            access(folder, Access::WRITE_OK | Access::EXEC_OK)
                .with_context(|| format!("cannot write to the folder `{path}`"))?;
        }
        Ok(Self::new(named, stem))
    }

    fn new(named: Option<&'a Path>, stem: &str) -> Self {
        // A name of a stranger's leads nowhere else.
        let is_plain = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
        let stem = stem.chars().map(|letter| if is_plain(letter) { letter } else { '-' });
        let stem: String = stem.take(STEM_CHARS_MAX).collect();
        let stem = stem.trim_matches('-').to_owned();
        let stem = if stem.is_empty() { "file".to_owned() } else { stem };
        Self { named, stem, next: 1 }
    }

    /// Whether somebody has named a folder.
    pub(super) fn is_wanted(&self) -> bool {
        self.named.is_some()
    }

    /// Writes what is in base64, and says where; nothing where it is not.
    pub(super) fn save(
        &mut self,
        mime: Option<&str>,
        data: &str,
    ) -> Result<Option<PathBuf>, Failure> {
        let Some(bytes) = decoded(data) else { return Ok(None) };
        let extension = extension(mime);
        while self.next < NUMBER_MAX {
            let name = format!("{}-{}.{extension}", self.stem, self.next);
            self.next += 1;
            let path = self.named.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name));
            match write_new(&path, &bytes) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => {
                    let cannot = format!("cannot write `{}`", path.display());
                    return Err(anyhow::Error::new(error).context(cannot).into());
                }
                Ok(()) => return Ok(Some(path)),
            }
        }
        let full = format!("there are {NUMBER_MAX} files `{}-…` already", self.stem);
        Err(anyhow::anyhow!(full).into())
    }
}

/// The bytes of a text in base64.
pub(super) fn decoded(data: &str) -> Option<Vec<u8>> {
    match BASE64.decode(data) {
        Ok(bytes) => Some(bytes),
        // Some break it into lines.
        Err(_) => {
            let data: String = data.split_ascii_whitespace().collect();
            BASE64.decode(data).ok()
        }
    }
}

fn extension(mime: Option<&str>) -> &'static str {
    let mime = mime.unwrap_or_default();
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(known, _)| *known == mime);
    known.map_or("bin", |(_, extension)| extension)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_overwritten_and_no_name_leads_out() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("new");
        let mut files = Folder::open(Some(&folder), "../get tiny/image").unwrap();
        let path = files.save(Some("image/PNG; x=y"), "aGVsbG8").unwrap().unwrap();
        assert_eq!(path, folder.join("get-tiny-image-1.png"));
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        let mut files = Folder::new(Some(&folder), "../get tiny/image");
        let path = files.save(Some("image/png"), "aGVs\nbG8=").unwrap().unwrap();
        assert_eq!(path, folder.join("get-tiny-image-2.png"));
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        assert_eq!(files.save(None, "not base64!").unwrap(), None);
        assert_eq!(files.save(None, "").unwrap().unwrap(), folder.join("get-tiny-image-3.bin"));
        assert_eq!(Folder::new(None, "../..").stem, "file");
    }
}
