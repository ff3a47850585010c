//! Text from a file or from standard input, read with a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use super::Failure;
use service::error::Refusal;

/// The text of a file; `-` is standard input. `what` names it in messages.
pub(crate) fn read(path: &Path, what: &str, bytes_max: u64) -> Result<String, Failure> {
    if path != Path::new("-") {
        return Ok(read_file(path, what, bytes_max, "name a file, or `-` for standard input")?);
    }
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(bytes_max + 1).read_to_end(&mut bytes);
    read.context("cannot read standard input")?;
    Ok(text_of(bytes, what, bytes_max)?)
}

/// The text of a file. The hint is for one that cannot be read.
pub(crate) fn read_file(
    path: &Path,
    what: &str,
    bytes_max: u64,
    hint: &str,
) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    read.map_err(|error| Refusal::InvalidParams {
        details: format!("the {what} `{}` cannot be read: {error}", path.display()),
        hint: Some(hint.to_owned()),
    })?;
    text_of(bytes, what, bytes_max)
}

fn text_of(bytes: Vec<u8>, what: &str, bytes_max: u64) -> Result<String, Refusal> {
    if bytes.len() as u64 > bytes_max {
        return Err(refused(format!("the {what} is larger than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused(format!("the {what} is not UTF-8 text")))
}

fn refused(details: String) -> Refusal {
    Refusal::InvalidParams { details, hint: None }
}
