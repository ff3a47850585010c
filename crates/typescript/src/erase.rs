//! The walk that finds what is only for types. Types themselves are never walked. One file for each kind of place where
//! they stand: expressions, functions, classes, enums, imports and exports.

mod class;
mod enums;
mod expression;
mod function;
mod modules;
mod parameter_properties;
pub(crate) mod statement;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use oxc_ast::ast::*;
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::Span;
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use crate::edits::Edits;
use crate::entry::Entry;
use crate::tokens::Tokens;
use crate::{Import, Language, Problem, VALUE_NAME};

/// What comes of a walk.
pub(crate) struct Erased {
    pub(crate) edits: Edits,
    pub(crate) imports: Vec<Import>,
    /// Where TypeScript is used first.
    pub(crate) first_type: Option<u32>,
}

/// What has to be changed so that a program runs, or what can not run here.
pub(crate) fn erase<'a>(
    source: &str,
    language: Language,
    program: &Program<'a>,
    tokens: Tokens<'_>,
    types: HashSet<&'a str>,
    entry: &Entry,
) -> Result<Erased, Problem> {
    let mut eraser = Eraser {
        source,
        tokens,
        edits: Edits::default(),
        first_type: None,
        refused: None,
        used: HashSet::new(),
        sources: Vec::new(),
        types,
        goes_on: None,
        functions: 0,
        scopes: Vec::new(),
        last_scope: 0,
        enums: HashMap::new(),
        around: None,
    };
    if let Some(value) = &entry.value {
        eraser.edits.insert(value.span.start, format!("export const {VALUE_NAME} = ("));
    }
    eraser.visit_program(program);
    if let Some(value) = &entry.value {
        eraser.edits.insert(
            value.expression_end,
            if value.span.end > value.expression_end { ")" } else { ");" },
        );
    }
    if entry.has_main {
        eraser.used.insert("main");
    }
    eraser.imports(program, language);
    if let Some(refused) = eraser.refused {
        return Err(Problem::at(
            source,
            refused.offset as usize,
            refused.message,
            Some(refused.help),
        ));
    }
    if entry.exports_main_late {
        eraser.edits.append_line("export { main };");
    }
    let imports = modules::placed(source, eraser.sources);
    Ok(Erased { edits: eraser.edits, imports, first_type: eraser.first_type })
}

struct Eraser<'a, 's> {
    source: &'s str,
    tokens: Tokens<'s>,
    edits: Edits,
    first_type: Option<u32>,
    /// The first thing that is not supported.
    refused: Option<Refused>,
    /// Names that stand for a value somewhere, whatever they are bound to there.
    used: HashSet<&'a str>,
    /// What is imported, and where that is said.
    sources: Vec<(u32, String)>,
    /// Where a cast ends that an operator comes after.
    goes_on: Option<u32>,
    /// Names that the top level knows as types and as nothing else.
    types: HashSet<&'a str>,
    /// How many functions are around.
    functions: u32,
    /// The numbers of the scopes around, innermost last.
    scopes: Vec<u32>,
    last_scope: u32,
    /// The members of every enum so far, by scope and name: an enum can be declared in parts.
    enums: HashMap<(u32, &'a str), HashSet<&'a str>>,
    around: Option<enums::Around<'a>>,
}

struct Refused {
    offset: u32,
    message: &'static str,
    help: &'static str,
}

impl Eraser<'_, '_> {
    /// Makes spaces of a part of an expression, a declaration or a class.
    fn erase(&mut self, span: Span) {
        self.is_type(span.start);
        self.edits.blank(span);
    }

    /// Makes an empty statement of a statement, so that the one before it ends where it did. In a class as well.
    fn erase_statement(&mut self, span: Span) {
        self.is_type(span.start);
        self.edits.blank_after(";", span);
    }

    fn erase_annotation(&mut self, annotation: Option<&TSTypeAnnotation<'_>>) {
        if let Some(annotation) = annotation {
            self.erase(annotation.span);
        }
    }

    fn erase_parameters(&mut self, parameters: Option<&TSTypeParameterDeclaration<'_>>) {
        if let Some(parameters) = parameters {
            self.erase(parameters.span);
        }
    }

    fn erase_arguments(&mut self, arguments: Option<&TSTypeParameterInstantiation<'_>>) {
        if let Some(arguments) = arguments {
            self.erase(arguments.span);
        }
    }

    fn is_type(&mut self, offset: u32) {
        self.first_type = Some(self.first_type.map_or(offset, |first| first.min(offset)));
    }

    fn refuse(&mut self, offset: u32, message: &'static str, help: &'static str) {
        if self.refused.as_ref().is_none_or(|refused| offset < refused.offset) {
            self.refused = Some(Refused { offset, message, help });
        }
    }

    fn text(&self, span: Span) -> &str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

impl<'a> VisitJs<'a> for Eraser<'a, '_> {
    fn enter_scope(&mut self, _: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.last_scope += 1;
        self.scopes.push(self.last_scope);
    }

    fn leave_scope(&mut self) {
        self.scopes.pop();
    }

    fn visit_hashbang(&mut self, it: &Hashbang<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        self.statement(it);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        if self.functions == 0 {
            let help = "put the program into `async function main() { … }`, or end it with the value alone";
            self.refuse(it.span.start, "`return` is only for functions", help);
        }
        walk_js::walk_return_statement(self, it);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        let help = "call the function on the class or the method instead";
        self.refuse(it.span.start, "decorators are not supported", help);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.used.insert(it.name.as_str());
        self.reference(it);
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.shorthand {
            self.shorthand(it);
        } else {
            walk_js::walk_object_property(self, it);
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.function(it);
        self.functions += 1;
        walk_js::walk_function(self, it, flags);
        self.functions -= 1;
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        self.parameter(it);
        walk_js::walk_formal_parameter(self, it);
    }

    fn visit_formal_parameter_rest(&mut self, it: &FormalParameterRest<'a>) {
        self.erase_annotation(it.type_annotation.as_deref());
        walk_js::walk_formal_parameter_rest(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.arrow(it);
        self.functions += 1;
        walk_js::walk_arrow_function_expression(self, it);
        self.functions -= 1;
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        self.declarator(it);
        walk_js::walk_variable_declarator(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &CatchParameter<'a>) {
        self.erase_annotation(it.type_annotation.as_deref());
        walk_js::walk_catch_parameter(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.class(it);
        walk_js::walk_class(self, it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        if self.element(it) {
            walk_js::walk_class_element(self, it);
        }
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.enumeration(it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.erase_arguments(it.type_arguments.as_deref());
        walk_js::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.erase_arguments(it.type_arguments.as_deref());
        walk_js::walk_new_expression(self, it);
    }

    fn visit_tagged_template_expression(&mut self, it: &TaggedTemplateExpression<'a>) {
        self.erase_arguments(it.type_arguments.as_deref());
        walk_js::walk_tagged_template_expression(self, it);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        self.binary(it);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.import_expression(it);
        walk_js::walk_import_expression(self, it);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.cast(&it.expression, it.span);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.cast(&it.expression, it.span);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.assertion(it);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.erase(Span::new(it.span.end - 1, it.span.end));
    }

    fn visit_ts_instantiation_expression(&mut self, it: &TSInstantiationExpression<'a>) {
        self.visit_expression(&it.expression);
        self.erase(it.type_arguments.span);
    }
}
