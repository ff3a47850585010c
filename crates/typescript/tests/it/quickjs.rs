//! What programs come to in the engine that they are made for.

use rquickjs::loader::{BuiltinLoader, BuiltinResolver};
use rquickjs::{CatchResultExt, Context, Ctx, Module, Object, Promise, Runtime, Value};
use typescript::{Language, Role, Script, VALUE_NAME, strip};

use crate::programs;

/// What the programs import.
pub(crate) const LIBRARY: &str =
    "export const one = 1; export function twice(x) { return 2 * x } export default 'library';
export class Box { constructor(value) { this.value = value } }";

#[test]
fn programs_come_to_their_values() {
    come_to_their_values(str::to_owned);
}

#[test]
fn windows_line_breaks_change_nothing() {
    come_to_their_values(|source| source.replace('\n', "\r\n"));
}

/// Comments count as much as line breaks where statements end by themselves, and are blanked like anything else.
#[test]
fn comments_between_lines_change_nothing() {
    come_to_their_values(|source| {
        source.replace('\n', " // a comment; ( [ `\n/* and\n another */")
    });
}

fn come_to_their_values(change: impl Fn(&str) -> String) {
    let mut wrong = Vec::new();
    for sample in programs::all() {
        let value = match strip(&change(&sample.source), Language::TypeScript, Role::Entry) {
            Ok(script) => run(&script).unwrap_or_else(|error| format!("{error}\n{}", script.code)),
            Err(problem) => problem.to_string(),
        };
        if value != sample.value {
            wrong.push(format!("{}\n  expected {}\n  is {value}", sample.name, sample.value));
        }
    }
    assert!(wrong.is_empty(), "{} programs:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where the value of a program is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Main,
    Value,
    Default,
}

impl Kind {
    pub(crate) fn of(script: &Script) -> Kind {
        if script.has_main && !script.calls_main {
            Kind::Main
        } else if script.has_value {
            Kind::Value
        } else {
            Kind::Default
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Main => "main",
            Kind::Value => "value",
            Kind::Default => "default",
        }
    }
}

/// The value of a program as JSON, or its error.
pub(crate) fn run(script: &Script) -> Result<String, String> {
    let runtime = Runtime::new().unwrap();
    runtime.set_loader(
        BuiltinResolver::default().with_module("library"),
        BuiltinLoader::default().with_module("library", LIBRARY),
    );
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| value(&ctx, script).catch(&ctx).map_err(|error| error.to_string()))
}

fn value(ctx: &Ctx<'_>, script: &Script) -> rquickjs::Result<String> {
    let (module, loaded) = Module::declare(ctx.clone(), "program", script.code.as_str())?.eval()?;
    loaded.finish::<()>()?;
    let exports: Object<'_> = module.namespace()?;
    let value: Value<'_> = match Kind::of(script) {
        Kind::Main => exports.get::<_, rquickjs::Function<'_>>("main")?.call(())?,
        Kind::Value => exports.get(VALUE_NAME)?,
        Kind::Default => exports.get("default")?,
    };
    let value: Value<'_> = match value.clone().into_promise() {
        Some(promise) => Promise::finish(&promise)?,
        None => value,
    };
    Ok(ctx.json_stringify(value)?.map_or("undefined".to_owned(), |text| text.to_string().unwrap()))
}
