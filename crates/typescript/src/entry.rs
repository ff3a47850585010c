//! What the file that is run offers: its `main`, its default, the value of its last expression.

mod calls;

use std::collections::HashSet;

use oxc_ast::ast::*;
use oxc_span::{GetSpan, Span};

use crate::erase::statement::{is_default_type, is_type};

#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) has_main: bool,
    /// Whether `main` has still to be exported.
    pub(crate) exports_main_late: bool,
    pub(crate) calls_main: bool,
    pub(crate) has_default: bool,
    pub(crate) value: Option<Value>,
}

/// The expression that a program ends with.
#[derive(Debug)]
pub(crate) struct Value {
    /// Of the statement.
    pub(crate) span: Span,
    pub(crate) expression_end: u32,
}

impl Entry {
    /// Of a file that is only imported.
    pub(crate) fn none(program: &Program<'_>, types: &HashSet<&str>) -> Entry {
        let has_default = program.body.iter().any(|it| is_default(it, types));
        Entry { has_default, ..Entry::default() }
    }

    pub(crate) fn of(program: &Program<'_>, types: &HashSet<&str>) -> Entry {
        let is_bound = program.body.iter().any(binds_main);
        let is_exported = program.body.iter().any(|it| exports_main(it, types));
        let has_main = is_bound || is_exported;
        Entry {
            has_main,
            exports_main_late: is_bound && !is_exported,
            calls_main: has_main && calls::calls_main(program),
            value: value(program, types),
            ..Entry::none(program, types)
        }
    }
}

/// The last statement that does something, if it is an expression. A text alone is one as well.
fn value(program: &Program<'_>, types: &HashSet<&str>) -> Option<Value> {
    let last = program.body.iter().rev().find(|it| !is_passive(it) && !is_default_type(it, types));
    match last {
        Some(Statement::ExpressionStatement(it)) => {
            Some(Value { span: it.span, expression_end: it.expression.span().end })
        }
        Some(_) => None,
        None => program
            .directives
            .last()
            .map(|it| Value { span: it.span, expression_end: it.expression.span.end }),
    }
}

/// Whether nothing happens where a statement stands.
fn is_passive(it: &Statement<'_>) -> bool {
    is_type(it)
        || matches!(
            it,
            Statement::EmptyStatement(_)
                | Statement::FunctionDeclaration(_)
                | Statement::ImportDeclaration(_)
                | Statement::ExportNamedDeclaration(_)
                | Statement::ExportFromDeclaration(_)
                | Statement::ExportAllDeclaration(_)
        )
}

fn is_default(it: &Statement<'_>, types: &HashSet<&str>) -> bool {
    match it {
        Statement::ExportDefaultDeclaration(_) => !is_type(it) && !is_default_type(it, types),
        it => exports(it, "default", types),
    }
}

fn exports_main(it: &Statement<'_>, types: &HashSet<&str>) -> bool {
    match it {
        Statement::ExportDeclaration(export) => !is_type(it) && declares_main(&export.declaration),
        it => exports(it, "main", types),
    }
}

fn binds_main(it: &Statement<'_>) -> bool {
    if is_type(it) {
        return false;
    }
    match it {
        Statement::ImportDeclaration(it) => {
            it.specifiers.iter().flatten().any(|specifier| match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(it) => {
                    it.import_kind == ImportOrExportKind::Value && it.local.name == "main"
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => it.local.name == "main",
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => false,
            })
        }
        Statement::ExportDeclaration(it) => declares_main(&it.declaration),
        Statement::ExportDefaultDeclaration(it) => match &it.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(it) => is_main(it),
            _ => false,
        },
        it => it.as_declaration().is_some_and(declares_main),
    }
}

fn declares_main(it: &Declaration<'_>) -> bool {
    match it {
        Declaration::FunctionDeclaration(it) => is_main(it),
        Declaration::VariableDeclaration(it) => it.declarations.iter().any(|declarator| {
            declarator.id.get_binding_identifiers().iter().any(|id| id.name == "main")
        }),
        _ => false,
    }
}

fn is_main(it: &Function<'_>) -> bool {
    it.id.as_ref().is_some_and(|id| id.name == "main")
}

/// Whether a list of exports has a name for a value.
fn exports(it: &Statement<'_>, name: &str, types: &HashSet<&str>) -> bool {
    if is_type(it) {
        return false;
    }
    let is_named = |it: &ExportSpecifier<'_>| {
        it.export_kind == ImportOrExportKind::Value && it.exported.name() == name
    };
    match it {
        Statement::ExportNamedDeclaration(it) => {
            let is_value = |it: &ExportSpecifier<'_>| !types.contains(it.local.name().as_str());
            it.specifiers.iter().any(|it| is_named(it) && is_value(it))
        }
        Statement::ExportFromDeclaration(it) => it.specifiers.iter().any(is_named),
        Statement::ExportAllDeclaration(it) => {
            it.exported.as_ref().is_some_and(|exported| exported.name() == name)
        }
        _ => false,
    }
}
