//! `regex`: a pattern matches somewhere in the output.

use super::{Output, Unusable};
use crate::compiled::{Compiled, Machine};

pub(super) fn passes(
    pattern: &str,
    flags: &str,
    output: Output<'_>,
    compiled: &Compiled,
) -> Result<bool, Unusable> {
    match compiled.pattern(pattern, flags, output.budget)?.get() {
        Some(Machine::Pattern(Ok(matcher))) => Ok(matcher.is_match(output.text, output.budget)?),
        Some(Machine::Pattern(Err(error))) => {
            Err(Unusable::Rule(format!("/{pattern}/{flags} is malformed: {error}")))
        }
        _ => Err(Unusable::Rule(format!("/{pattern}/{flags} is not compiled"))),
    }
}

pub(super) fn advice(pattern: &str, flags: &str, wanted: bool) -> String {
    if wanted {
        format!("Make some part of the output match the pattern /{pattern}/{flags}.")
    } else {
        format!("Remove what matches the pattern /{pattern}/{flags}.")
    }
}
