//! Text from a file or from standard input, read with a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use super::Failure;
use crate::error::Refusal;

/// The text of a file; `-` is standard input. `what` names it in messages.
pub(crate) fn read(path: &Path, what: &str, bytes_max: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        let read = io::stdin().lock().take(bytes_max + 1).read_to_end(&mut bytes);
        read.context("cannot read standard input")?;
    } else {
        let file = File::open(path);
        let read = file.and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
        read.map_err(|error| Refusal::InvalidParams {
            details: format!("the {what} `{}` cannot be read: {error}", path.display()),
            hint: Some("name a file, or `-` for standard input".to_owned()),
        })?;
    }
    if bytes.len() as u64 > bytes_max {
        return Err(refused(format!("the {what} is larger than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused(format!("the {what} is not UTF-8 text")))
}

fn refused(details: String) -> Failure {
    Refusal::InvalidParams { details, hint: None }.into()
}
