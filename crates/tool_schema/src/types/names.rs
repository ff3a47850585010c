//! Names of tools and definitions as names of functions and types. A tool's name may have dashes, dots and slashes in it,
//! begin with a digit, or be a word that JavaScript keeps for itself.

use std::collections::HashSet;

use crate::schema::print::is_identifier;

/// The longest name of a type.
const ALIAS_CHARS_MAX: usize = 80;

/// What no function of a module can be called. `then` could be, but such a module is taken for a promise.
const RESERVED: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// A function's name for each tool, in their order, all different. A name that can stay as it is stays, whatever the others
/// are called.
pub fn function_names<'a>(tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let tools: Vec<&str> = tools.into_iter().collect();
    let is_good = |name: &str| is_identifier(name) && !RESERVED.contains(&name);
    let mut used: HashSet<String> =
        tools.iter().filter(|name| is_good(name)).map(|&name| name.to_owned()).collect();
    let mut taken: HashSet<&str> = HashSet::new();
    let names = tools.iter().map(|&tool| {
        // Servers do not list a name twice; if one does, the second is somebody else.
        if is_good(tool) && taken.insert(tool) {
            return tool.to_owned();
        }
        unused(&function(tool), &mut used)
    });
    names.collect()
}

/// What a server's module can be called in a program.
pub(super) fn variable(server: &str) -> String {
    function(server)
}

fn function(tool: &str) -> String {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '$';
    let mut name: String =
        tool.chars().map(|sign| if is_part(sign) { sign } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|sign: char| sign.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The beginning of the names of a function's types: `create_issue` and `Args` are `CreateIssueArgs`.
pub(super) fn alias(function: &str, role: &str) -> String {
    let name = pascal(function);
    let start = if name.starts_with(|sign: char| sign.is_ascii_digit()) { "T" } else { "" };
    format!("{start}{name}{role}")
}

/// A type's name for what a reference leads to: the last name on the way.
pub(super) fn definition(prefix: &str, reference: &str) -> String {
    let last =
        reference.rsplit('/').find(|step| step.contains(|sign: char| sign.is_ascii_alphabetic()));
    let mut name = format!("{prefix}{}", pascal(last.unwrap_or_default()));
    name.truncate(ALIAS_CHARS_MAX);
    name
}

/// The name, or else the name with a number, that is not used yet.
pub(super) fn unused(name: &str, used: &mut HashSet<String>) -> String {
    let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    // There are more numbers than names.
    names.find(|name| used.insert(name.clone())).unwrap_or_default()
}

fn pascal(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    let mut joined = String::new();
    for word in words {
        let mut signs = word.chars();
        joined.extend(signs.next().map(|first| first.to_ascii_uppercase()));
        joined.push_str(signs.as_str());
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_valid() {
        let tools = [
            "create_issue",
            "search-code",
            "repo/get.file",
            "2fa",
            "delete",
            "then",
            "get",
            "größe",
            "日本",
            "",
            "$",
            "a-b",
            "a_b",
            "a.b",
            "import",
            "import_",
            "x x",
        ];
        let expected = [
            "create_issue",
            "search_code",
            "repo_get_file",
            "_2fa",
            "delete_",
            "then_",
            "get",
            "gr__e",
            "__",
            "_",
            "$",
            "a_b_2",
            "a_b",
            "a_b_3",
            "import__2",
            "import_",
            "x_x",
        ];
        assert_eq!(function_names(tools), expected);
    }

    #[test]
    fn many_tools_of_one_name_are_named_quickly() {
        let names: Vec<String> = (0..2_000).map(|at| "é".repeat(at % 3 + 1)).collect();
        let found = function_names(names.iter().map(String::as_str));
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
    }

    #[test]
    fn types_are_named_after_their_function() {
        assert_eq!(alias("create_issue", "Args"), "CreateIssueArgs");
        assert_eq!(alias("_2fa", "Args"), "T2faArgs");
        assert_eq!(definition("CreateIssueArgs", "#/$defs/my-node"), "CreateIssueArgsMyNode");
        assert_eq!(definition("CreateIssueArgs", "#/properties/a/items/0"), "CreateIssueArgsItems");
        assert_eq!(definition("CreateIssueArgs", "#"), "CreateIssueArgs");
    }

    proptest! {
        #[test]
        fn all_names_are_valid_and_different(tools in prop::collection::hash_set("[a-c_.\\-é1 ]{0,3}", 0..40)) {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let names = function_names(tools.iter().copied());
            prop_assert_eq!(names.len(), tools.len());
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
            for (name, tool) in names.iter().zip(tools) {
                prop_assert!(is_identifier(name), "{}", name);
                if is_identifier(tool) {
                    prop_assert_eq!(name, tool);
                }
            }
        }
    }
}
