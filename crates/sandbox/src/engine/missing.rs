//! Functions that a module does not have: what a program's author may have meant. Names of tools are often written otherwise
//! than they are, with dashes or in the manner of JavaScript.

use super::state::State;
use crate::size;

/// So many names are told where none is near.
const NAMES_MAX: usize = 12;

/// What is said of an import without such a name. The engine has words of its own for it: `… 'name' in module 'specifier'`.
pub(super) fn export(state: &State, message: &str) -> Option<String> {
    let mut quoted = message.split('\'').skip(1).step_by(2);
    let (name, specifier) = (quoted.next()?, quoted.next()?);
    Some(format!("`{specifier}` has no `{name}`{}", meant(state, specifier, name)?))
}

/// What is said of something at this place that is no function.
pub(super) fn callee(state: &State, file: &str, line: u32, column: u32) -> Option<String> {
    let code = &state.scripts.get(file)?.code;
    let text = code.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let at = usize::try_from(column.checked_sub(1)?).ok()?;
    let (object, name) = member(text, at)?;
    let whole = size::message(&format!("`{object}.{name}` is not a function"));
    let specifier = namespace(code, &object);
    let meant = specifier.and_then(|specifier| meant(state, specifier, &name));
    Some(format!("{whole}{}", meant.unwrap_or_default()))
}

/// The names of a module that are like this one, or what there is. None where it is no module of the host's.
fn meant(state: &State, specifier: &str, name: &str) -> Option<String> {
    let modules = state.modules.borrow();
    let functions = modules.get(specifier)?;
    let like: Vec<&str> =
        functions.iter().map(String::as_str).filter(|own| plain(own) == plain(name)).collect();
    Some(match like.as_slice() {
        [] => {
            let names: Vec<&str> = functions.iter().take(NAMES_MAX).map(String::as_str).collect();
            let more = if functions.len() > NAMES_MAX { ", …" } else { "" };
            format!("; it has `{}`{more}", names.join("`, `"))
        }
        like => format!("; did you mean `{}`?", like.join("` or `")),
    })
}

/// The letters and digits of a name.
fn plain(name: &str) -> String {
    name.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// `object.name` or `object["name"]`, of which the engine names the last part in the one case and the first in the other.
fn member(line: &str, at: usize) -> Option<(String, String)> {
    let signs: Vec<char> = line.chars().collect();
    let is_part = |sign: &char| sign.is_alphanumeric() || matches!(sign, '_' | '$');
    let word = |from: usize| {
        signs
            .get(from..)
            .map(|rest| rest.iter().take_while(|sign| is_part(sign)).collect::<String>())
    };
    let first = word(at).filter(|word| !word.is_empty())?;
    if at > 0 && signs[at - 1] == '.' {
        let before = &signs[..at - 1];
        let length = before.iter().rev().take_while(|sign| is_part(sign)).count();
        let object: String = before[before.len() - length..].iter().collect();
        return (!object.is_empty()).then_some((object, first));
    }
    let rest: String = signs[at + first.chars().count()..].iter().collect();
    let rest = rest.strip_prefix('[')?;
    let quote = rest.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
    let (name, _) = rest[1..].split_once(quote)?;
    Some((first, name.to_owned()))
}

/// What was imported as this.
fn namespace<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("* as {name} from");
    let (_, rest) = code.split_once(&begin)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
    rest[1..].split_once(quote).map(|(specifier, _)| specifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_called_is_found_in_its_line() {
        let found = |line, at| member(line, at).map(|(object, name)| format!("{object}.{name}"));
        assert_eq!(found("await e.getSum({ a: 1 })", 8).unwrap(), "e.getSum");
        assert_eq!(found("x = e[\"get-sum\"](1)", 4).unwrap(), "e.get-sum");
        assert_eq!(found("a.b.c(5)", 4).unwrap(), "b.c");
        assert_eq!(found("f(1)", 0), None);
        assert_eq!(found("größe.ä(1)", 6).unwrap(), "größe.ä");
        assert_eq!(found("", 7), None);
        assert_eq!(namespace("import * as e from 'mcp-clients/x';", "e"), Some("mcp-clients/x"));
        assert_eq!(namespace("import e from 'x';", "e"), None);
    }
}
