//! The tools of one server as a TypeScript declaration: one typed function each, with what is said about it as comments, so
//! that an agent writes code against types. Made from the same walk as signatures. Every `$ref` becomes a type with a name,
//! so that recursive schemas are exact and nothing is written twice.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

use crate::schema::Node;
use crate::schema::print::{Printer, Style, plain};
use crate::schema::shape::{Bounds, Object, Others, Type, Walk};
use crate::tool::Tool;

mod aliases;
mod names;

use aliases::Aliases;
pub use names::function_names;

/// The longest declaration. Tools beyond it have a function without types.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// How much of one tool's schema is written.
const BOUNDS: Bounds = Bounds { count: 3_000, depth: 32 };
/// How much of a tool's description is kept.
const DESCRIPTION_CHARS_MAX: usize = 1_000;
/// What a tool returns that does not say.
const RESULT: &str = "unknown";

/// A declaration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types {
    pub text: String,
    /// For each tool, in their order, the name of its function.
    pub functions: Vec<String>,
    /// How many of them, the last ones, have no types, because there is too much.
    pub untyped: usize,
}

/// The declaration of some of a server's tools. Functions are `export function name(args): Promise<…>`, and their names depend
/// on what the others are called.
pub fn declaration(server: &str, specifier: &str, all: &[Tool], some: Range<usize>) -> Types {
    let tools = all.get(some.clone()).unwrap_or_default();
    let names = function_names(all.iter().map(|tool| tool.name.as_str()));
    let functions: Vec<String> = names.into_iter().skip(some.start).take(tools.len()).collect();
    let mut used: HashSet<String> =
        ["Promise", "Record", "Array", "Function"].map(str::to_owned).into();
    let mut text = format!(
        "// The tools of `{}`, for programs: import * as {} from \"{}\";\n",
        plain(server, 200),
        names::variable(server),
        plain(specifier, 300)
    );
    let mut untyped = 0;
    for (tool, function) in tools.iter().zip(&functions) {
        let declared =
            if untyped == 0 { declare(tool, function, &mut used) } else { String::new() };
        if untyped > 0 || text.len() + declared.len() > TEXT_BYTES_MAX {
            untyped += 1;
            let _ = writeln!(
                text,
                "export function {function}(args?: Record<string, unknown>): Promise<{RESULT}>;"
            );
        } else {
            text.push('\n');
            text.push_str(&declared);
        }
    }
    Types { text, functions, untyped }
}

fn declare(tool: &Tool, function: &str, used: &mut HashSet<String>) -> String {
    let input = Node::read(&tool.input_schema);
    let output = tool.output_schema.as_ref().map(Node::read);
    let mut text = String::new();

    let arguments = Part::new(&input, function, "Args", used);
    let result = output.as_ref().map(|output| Part::new(output, function, "Result", used));
    for part in [Some(&arguments), result.as_ref()].into_iter().flatten() {
        part.aliases.write(&mut text, &|of, text| part.print(of, text));
    }
    comment(tool, function, &mut text);
    let _ = write!(text, "export function {function}(");
    match &arguments.of {
        Type::Object(object)
            if object.properties.is_empty() && !matches!(object.others, Others::Of(_)) =>
        {
            text.push_str("args?: {}");
        }
        of => {
            text.push_str(if needs_nothing(of) { "args?: " } else { "args: " });
            arguments.print(of, &mut text);
        }
    }
    text.push_str("): Promise<");
    match &result {
        Some(result) => result.print(&result.of, &mut text),
        None => text.push_str(RESULT),
    }
    text.push_str(">;\n");
    text
}

/// Whether the tool can be called without arguments.
fn needs_nothing(of: &Type<'_>) -> bool {
    match of {
        Type::Object(Object { properties, .. }) => {
            !properties.iter().any(|property| property.is_required)
        }
        Type::Unknown | Type::Cut => true,
        Type::Union(members) => members.iter().any(needs_nothing),
        Type::Intersection(members) => members.iter().all(needs_nothing),
        _ => false,
    }
}

/// What goes in, or what comes out.
struct Part<'a> {
    of: Type<'a>,
    aliases: Aliases<'a>,
}

impl<'a> Part<'a> {
    fn new(node: &'a Node, function: &str, role: &str, used: &mut HashSet<String>) -> Self {
        let of = Walk::new(node, BOUNDS, &|_| true).of(node);
        let aliases = Aliases::of(node, &of, &names::alias(function, role), BOUNDS, used);
        Self { of, aliases }
    }

    fn print(&self, of: &Type<'_>, text: &mut String) {
        let name = |reference: &str| self.aliases.name(reference).to_owned();
        let mut printer = Printer::new(Style::File, &name);
        printer.print(of, 0);
        text.push_str(&printer.out);
    }
}

fn comment(tool: &Tool, function: &str, text: &mut String) {
    let mut lines: Vec<String> = Vec::new();
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let mut left = DESCRIPTION_CHARS_MAX;
    for line in description.trim().lines() {
        if left == 0 {
            break;
        }
        let line = plain(line, left);
        left -= line.chars().count().clamp(1, left);
        lines.push(line);
    }
    // Whole paragraphs stay apart, by one empty line.
    lines.dedup_by(|one, other| one.is_empty() && other.is_empty());
    if function != tool.name {
        lines.push(format!("Calls the tool `{}`.", plain(&tool.name, 300)));
    }
    match lines.as_slice() {
        [] => {}
        [only] => {
            let _ = writeln!(text, "/** {only} */");
        }
        lines => {
            text.push_str("/**\n");
            for line in lines {
                let _ = writeln!(text, "{}", format!(" * {line}").trim_end());
            }
            text.push_str(" */\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tool::{Json, Tools};

    fn tools() -> Vec<Tool> {
        let mut tools = Tools::default();
        let list = include_str!("../cases/schemas.json").trim_end().to_owned();
        tools.add_page(&serde_json::value::RawValue::from_string(list).unwrap());
        tools.tools
    }

    fn declare_all(server: &str, tools: &[Tool]) -> Types {
        declaration(server, &format!("mcp-clients/{server}"), tools, 0..tools.len())
    }

    #[test]
    fn a_name_is_the_same_beside_others_and_alone() {
        let named = |name: &str| Tool { name: name.to_owned(), ..tools().remove(0) };
        let all = [named("a_b"), named("a-b"), named("c")];
        let types = declaration("s-1", "mcp-clients/s-1", &all, 1..2);
        assert_eq!(types.functions, ["a_b_2"]);
        assert!(types.text.starts_with(
            "// The tools of `s-1`, for programs: import * as s_1 from \"mcp-clients/s-1\";\n"
        ));
        assert!(
            types.text.contains("Calls the tool `a-b`") && types.text.contains("function a_b_2(")
        );
    }

    #[test]
    fn every_tool_is_a_function() {
        let types = declare_all("server */ x", &tools());
        assert_eq!(types.untyped, 0);
        insta::assert_snapshot!(types.text);
    }

    #[test]
    fn declarations_are_bounded() {
        let wide: Value = (0..2_000)
            .map(|at| {
                (format!("property{at}"), json!({"type": "string", "description": "x".repeat(80)}))
            })
            .collect();
        let schema = Json::from(&json!({"type": "object", "properties": wide}));
        let tool = |at: usize| Tool {
            name: format!("tool{at}"),
            input_schema: schema.clone(),
            ..tools().remove(0)
        };
        let types = declare_all("server", &(0..40).map(tool).collect::<Vec<_>>());
        assert!(types.text.len() < TEXT_BYTES_MAX + 100_000, "{}", types.text.len());
        assert_eq!(types.functions.len(), 40);
        assert!(types.untyped > 30, "{}", types.untyped);
        assert!(types.text.contains("export function tool39("));
    }

    #[test]
    fn deep_nesting_takes_no_longer() {
        let mut deep = json!({"type": "string"});
        for _ in 0..30 {
            deep = json!({"type": "object", "properties": {"a_rather_long_name": deep, "another_long_name": {"type": "string"}}});
        }
        let tool = Tool { input_schema: Json::from(&deep), ..tools().remove(0) };
        let types = declare_all("server", &[tool]);
        assert_eq!(types.text.matches("another_long_name").count(), 30);
    }

    #[test]
    fn comments_end_where_they_should() {
        let mut tool = tools().remove(0);
        tool.description = Some("one */ two\n\n\n\u{0}three\u{2028}four".to_owned());
        let types = declare_all("server", &[tool]);
        assert_eq!(
            types.text.matches("*/").count(),
            types.text.matches("/**").count(),
            "{}",
            types.text
        );
        assert!(!types.text.contains('\u{2028}') && !types.text.contains('\0'));
    }
}
