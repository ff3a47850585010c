//! `regex`: a pattern matches somewhere in the output.

use super::Unusable;
use crate::compiled::{Compiled, Machine};

pub(super) fn passes(
    pattern: &str,
    flags: &str,
    output: &str,
    compiled: &Compiled,
) -> Result<bool, Unusable> {
    match compiled.pattern(pattern, flags).get() {
        Some(Machine::Pattern(Ok(matcher))) => matcher
            .is_match(output)
            .map_err(|gave_up| Unusable::Rule(format!("/{pattern}/{flags}: {gave_up}"))),
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
