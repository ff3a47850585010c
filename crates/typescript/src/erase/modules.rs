//! Imports and exports: types go, and so do imports of what stands nowhere for a value.

use oxc_ast::ast::*;
use oxc_span::{GetSpan, Span};

use super::Eraser;
use super::statement::is_type_specifier;
use crate::places::Reader;
use crate::{Import, Language};

impl<'a> Eraser<'a, '_> {
    /// The imports of a program whose names are all known to be used or not.
    pub(super) fn imports(&mut self, program: &Program<'a>, language: Language) {
        for it in &program.body {
            if let Statement::ImportDeclaration(it) = it
                && it.import_kind == ImportOrExportKind::Value
            {
                self.import(it, language);
            }
        }
    }

    fn import(&mut self, it: &ImportDeclaration<'a>, language: Language) {
        let Some(specifiers) = &it.specifiers else { return self.source(&it.source) };
        let is_erased = |specifier: &ImportDeclarationSpecifier<'a>| {
            let is_used = self.used.contains(specifier.local().name.as_str());
            is_type_specifier(specifier) || (language == Language::TypeScript && !is_used)
        };
        let erased: Vec<Span> =
            specifiers.iter().filter(|it| is_erased(it)).map(GetSpan::span).collect();
        if erased.len() == specifiers.len() && language == Language::TypeScript {
            return self.erase_statement(it.span);
        }
        for span in erased {
            self.erase_name(span);
        }
        self.source(&it.source);
    }

    /// Erases one of several names and the comma after it; before `* as x` the one before it.
    fn erase_name(&mut self, span: Span) {
        let is_namespace = self.tokens.at(span.start).is_some_and(|it| it.text == "*");
        let comma =
            if is_namespace { self.tokens.before(span.start) } else { self.tokens.at(span.end) };
        self.erase(span);
        if let Some(comma) = comma.filter(|token| token.text == ",") {
            self.erase(comma.span);
        }
    }

    /// `export { … }`
    pub(super) fn export_names(&mut self, it: &ExportNamedDeclaration<'a>) {
        for specifier in &it.specifiers {
            let local = specifier.local.name();
            let is_type = specifier.export_kind == ImportOrExportKind::Type
                || self.types.contains(local.as_str());
            if is_type {
                self.erase_name(specifier.span);
            } else {
                self.used.insert(local.as_str());
            }
        }
    }

    /// `export { … } from "…"`
    pub(super) fn export_from(&mut self, it: &ExportFromDeclaration<'a>) {
        let types = it.specifiers.iter().filter(|it| it.export_kind == ImportOrExportKind::Type);
        let erased: Vec<Span> = types.map(|it| it.span).collect();
        if !erased.is_empty() && erased.len() == it.specifiers.len() {
            return self.erase_statement(it.span);
        }
        for span in erased {
            self.erase_name(span);
        }
        self.source(&it.source);
    }

    /// `export * from "…"`
    pub(super) fn export_all(&mut self, it: &ExportAllDeclaration<'a>) {
        self.source(&it.source);
    }

    /// `import("…")`
    pub(super) fn import_expression(&mut self, it: &ImportExpression<'a>) {
        match &it.source {
            Expression::StringLiteral(literal) => self.source(literal),
            Expression::TemplateLiteral(literal) => {
                if let Some(text) = literal.single_quasi() {
                    self.sources.push((literal.span.start, text.to_string()));
                }
            }
            _ => {}
        }
    }

    fn source(&mut self, it: &StringLiteral<'a>) {
        self.sources.push((it.span.start, it.value.to_string()));
    }
}

/// With lines and columns, in the order of the source.
pub(super) fn placed(source: &str, mut sources: Vec<(u32, String)>) -> Vec<Import> {
    sources.sort_by_key(|(offset, _)| *offset);
    let mut reader = Reader::new(source);
    let place = |(offset, specifier): (u32, String)| {
        let (line, column) = reader.place(offset as usize);
        Import { specifier, line, column }
    };
    sources.into_iter().map(place).collect()
}
