//! How large a program may be, and how large a stack it needs. Parsing and walking recurse once for every level of
//! nesting, without a bound of their own; but nothing is nested deeper than it has words and signs.

use crate::Problem;

/// The most words and signs of a program.
pub const TOKENS_MAX: usize = 60_000;
/// The largest program.
pub const SOURCE_BYTES_MAX: usize = 256 * 1024;

/// How many words and signs there may be times how deep they are nested. What may be a call with types or the head of
/// an arrow function is parsed once more for each level when it is not, which takes seconds beyond this.
const NESTING_MAX: usize = 6_000_000;

/// What is needed however shallow a program is.
const STACK_BYTES: usize = 256 * 1024;
/// What one word or sign can cost: more than twice the most that was measured, which is 1,802 bytes, for brackets in types
/// and without much optimisation.
const STACK_BYTES_PER_TOKEN: usize = 4 * 1024;

/// The stack that `strip` needs at most for this program.
pub fn stack_bytes(source: &str) -> Result<usize, Problem> {
    Ok(STACK_BYTES + measure(source)? * STACK_BYTES_PER_TOKEN)
}

/// How many words and signs a program has at most, or that it is too large.
pub(crate) fn measure(source: &str) -> Result<usize, Problem> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(refusal(format!("the program is larger than {} KiB", SOURCE_BYTES_MAX / 1024)));
    }
    let tokens = tokens(source);
    if tokens > TOKENS_MAX {
        return Err(refusal(format!("the program has more than {TOKENS_MAX} words and signs")));
    }
    if tokens * nesting(source) > NESTING_MAX {
        return Err(refusal("the program is nested too deep for its size".to_owned()));
    }
    Ok(tokens)
}

fn refusal(message: String) -> Problem {
    let help = "hand data in by `input`, or split the work into several programs";
    Problem { message, line: 1, column: 1, help: Some(help.to_owned()) }
}

/// Runs of letters and digits count once, and every other sign. Comments and strings are not told apart: what is
/// counted too much only makes a stack larger.
fn tokens(source: &str) -> usize {
    let mut tokens = 0;
    let mut is_in_word = false;
    for byte in source.bytes() {
        let is_word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 128..);
        let is_sign = !is_word && !byte.is_ascii_whitespace();
        tokens += usize::from(is_sign || (is_word && !is_in_word));
        is_in_word = is_word;
    }
    tokens
}

/// How many brackets are open at most. An angle bracket may be none: one that is not closed is forgotten at the end of
/// its statement and of the brackets around it. A guess, for strings and comments are not told apart here either.
fn nesting(source: &str) -> usize {
    let mut deepest = 0;
    // How many angle brackets are open within this bracket, within each of those around it, and in all.
    let mut here = 0;
    let mut around = Vec::new();
    let mut angles = 0;
    let mut last = b' ';
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => around.push(std::mem::take(&mut here)),
            b')' | b']' | b'}' => {
                angles -= here;
                here = around.pop().unwrap_or_default();
            }
            b';' => angles -= std::mem::take(&mut here),
            b'<' => {
                here += 1;
                angles += 1;
            }
            b'>' if last != b'=' && here > 0 => {
                here -= 1;
                angles -= 1;
            }
            _ => {}
        }
        deepest = deepest.max(around.len() + angles);
        last = byte;
    }
    deepest
}
