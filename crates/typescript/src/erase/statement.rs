//! Statements that are only for types, and those that can not run here.

use std::collections::HashSet;

use oxc_ast::ast::*;
use oxc_ast_visit::walk_js;
use oxc_span::GetSpan;

use super::Eraser;

impl<'a> Eraser<'a, '_> {
    pub(super) fn statement(&mut self, it: &Statement<'a>) {
        if is_type(it) || is_default_type(it, &self.types) {
            return self.erase_statement(it.span());
        }
        match it {
            Statement::TSNamespaceDeclaration(it) => self.refuse_namespace(it),
            Statement::TSImportEqualsDeclaration(it) => self.refuse_import_equals(it),
            Statement::TSExportAssignment(it) => {
                self.refuse(it.span.start, "`export =` is not supported", "use `export default`");
            }
            // Once it is known which names are used.
            Statement::ImportDeclaration(_) => {}
            Statement::ExportNamedDeclaration(it) => self.export_names(it),
            Statement::ExportFromDeclaration(it) => self.export_from(it),
            Statement::ExportAllDeclaration(it) => self.export_all(it),
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::TSNamespaceDeclaration(it) => self.refuse_namespace(it),
                Declaration::TSImportEqualsDeclaration(it) => self.refuse_import_equals(it),
                Declaration::TSEnumDeclaration(it) => {
                    self.exported_enumeration(export.span.start, it)
                }
                _ => walk_js::walk_statement(self, it),
            },
            _ => walk_js::walk_statement(self, it),
        }
    }

    fn refuse_namespace(&mut self, it: &TSNamespaceDeclaration<'a>) {
        let help = "export functions and constants from a file, or make an object of them";
        self.refuse(it.span.start, "a `namespace` with values is not supported", help);
    }

    fn refuse_import_equals(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        let (message, help) = match it.module_reference {
            TSModuleReference::ExternalModuleReference(_) => {
                ("`import … = require(…)` is not supported", "use `import … from \"…\"` instead")
            }
            TSModuleReference::IdentifierReference(_) | TSModuleReference::QualifiedName(_) => (
                "`import … = …` is not supported",
                "use `const` for a value and `type` for a type instead",
            ),
        };
        self.refuse(it.span.start, message, help);
    }
}

/// `export default T`
pub(crate) fn is_default_type(it: &Statement<'_>, types: &HashSet<&str>) -> bool {
    let Statement::ExportDefaultDeclaration(export) = it else { return false };
    match &export.declaration {
        ExportDefaultDeclarationKind::Identifier(name) => types.contains(name.name.as_str()),
        _ => false,
    }
}

/// Whether nothing is left of a statement when it runs.
pub(crate) fn is_type(it: &Statement<'_>) -> bool {
    match it {
        Statement::ExportDeclaration(it) => is_type_declaration(&it.declaration),
        Statement::ExportDefaultDeclaration(it) => match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(it) => it.body.is_none(),
            ExportDefaultDeclarationKind::ClassDeclaration(it) => it.declare,
            _ => false,
        },
        Statement::ImportDeclaration(it) => it.import_kind == ImportOrExportKind::Type,
        Statement::ExportNamedDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
        Statement::ExportAllDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
        Statement::ExportFromDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
        Statement::TSNamespaceExportDeclaration(_) => true,
        it => it.as_declaration().is_some_and(is_type_declaration),
    }
}

fn is_type_declaration(it: &Declaration<'_>) -> bool {
    match it {
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSGlobalDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_) => true,
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare || is_type_namespace(it),
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind == ImportOrExportKind::Type,
    }
}

fn is_type_namespace(it: &TSNamespaceDeclaration<'_>) -> bool {
    match &it.body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(it) => is_type_namespace(it),
        TSNamespaceDeclarationBody::TSModuleBlock(it) => it.body.iter().all(is_type),
    }
}

/// The names that the top level knows as types and as nothing else. `declare` is about values.
pub(crate) fn type_names<'a>(program: &Program<'a>) -> HashSet<&'a str> {
    let mut types = HashSet::new();
    let mut values = HashSet::new();
    for it in &program.body {
        if let Statement::ImportDeclaration(import) = it {
            let is_type = import.import_kind == ImportOrExportKind::Type;
            for specifier in import.specifiers.iter().flatten() {
                let is_type = is_type || is_type_specifier(specifier);
                let names = if is_type { &mut types } else { &mut values };
                names.insert(specifier.local().name.as_str());
            }
        }
        let declaration = match it {
            Statement::ExportDeclaration(it) => Some(&it.declaration),
            it => it.as_declaration(),
        };
        if let Some(declaration) = declaration {
            declared(declaration, &mut types, &mut values);
        }
    }
    types.retain(|name| !values.contains(name));
    types
}

fn declared<'a>(it: &Declaration<'a>, types: &mut HashSet<&'a str>, values: &mut HashSet<&'a str>) {
    let is_type = is_type_declaration(it);
    match it {
        Declaration::TSTypeAliasDeclaration(it) => {
            types.insert(it.id.name.as_str());
        }
        Declaration::TSInterfaceDeclaration(it) => {
            types.insert(it.id.name.as_str());
        }
        Declaration::TSNamespaceDeclaration(it) if is_type && !it.declare => {
            types.insert(it.id.name.as_str());
        }
        Declaration::VariableDeclaration(it) => {
            for declarator in &it.declarations {
                values.extend(
                    declarator.id.get_binding_identifiers().iter().map(|id| id.name.as_str()),
                );
            }
        }
        it => values.extend(it.id().map(|id| id.name.as_str())),
    }
}

pub(super) fn is_type_specifier(it: &ImportDeclarationSpecifier<'_>) -> bool {
    match it {
        ImportDeclarationSpecifier::ImportSpecifier(it) => {
            it.import_kind == ImportOrExportKind::Type
        }
        ImportDeclarationSpecifier::ImportDefaultSpecifier(_)
        | ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => false,
    }
}
