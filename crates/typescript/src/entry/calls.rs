//! Whether a program calls its `main` while it is loaded. Who runs it has to know, for a second call would do everything
//! twice.

use std::collections::HashMap;

use oxc_ast::ast::*;
use oxc_ast_visit::{VisitJs, walk_js};

/// Follows calls of functions of the top level, and functions that are handed to a call, which may call them.
pub(super) fn calls_main(program: &Program<'_>) -> bool {
    let mut calls = Calls { functions: functions(program), waiting: Vec::new(), is_found: false };
    for it in &program.body {
        calls.visit_statement(it);
    }
    while let Some(body) = calls.waiting.pop() {
        if calls.is_found {
            break;
        }
        calls.enter(body);
    }
    calls.is_found
}

#[derive(Clone, Copy)]
enum Body<'p, 'a> {
    Function(&'p Function<'a>),
    Arrow(&'p ArrowFunctionExpression<'a>),
}

struct Calls<'p, 'a> {
    /// Those that were not called yet.
    functions: HashMap<&'a str, Body<'p, 'a>>,
    /// Those that were, and are still to be read.
    waiting: Vec<Body<'p, 'a>>,
    is_found: bool,
}

impl<'a> Calls<'_, 'a> {
    fn enter(&mut self, body: Body<'_, 'a>) {
        match body {
            Body::Function(it) => {
                self.visit_formal_parameters(&it.params);
                if let Some(body) = &it.body {
                    self.visit_function_body(body);
                }
            }
            Body::Arrow(it) => {
                self.visit_formal_parameters(&it.params);
                self.visit_arrow_function_body(&it.body);
            }
        }
    }

    /// Something that is called, or is handed to something that may call it.
    fn called(&mut self, it: &Expression<'a>) {
        match it.get_inner_expression() {
            Expression::Identifier(it) if it.name == "main" => self.is_found = true,
            Expression::Identifier(it) => {
                self.waiting.extend(self.functions.remove(it.name.as_str()));
            }
            Expression::FunctionExpression(it) => self.enter(Body::Function(it)),
            Expression::ArrowFunctionExpression(it) => self.enter(Body::Arrow(it)),
            it => self.visit_expression(it),
        }
    }

    fn arguments(&mut self, arguments: &[Argument<'a>]) {
        for argument in arguments {
            match argument.as_expression() {
                Some(it) => self.called(it),
                None => self.visit_argument(argument),
            }
        }
    }
}

impl<'a> VisitJs<'a> for Calls<'_, 'a> {
    fn visit_function(&mut self, _: &Function<'a>, _: oxc_syntax::scope::ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.called(&it.callee);
        self.arguments(&it.arguments);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.called(&it.callee);
        self.arguments(&it.arguments);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.r#static {
            walk_js::walk_property_definition(self, it);
        }
    }

    /// `if (import.meta.main) { … }` is for other hosts.
    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        if !asks_for_host(&it.test) {
            walk_js::walk_if_statement(self, it);
        }
    }

    fn visit_logical_expression(&mut self, it: &LogicalExpression<'a>) {
        if !asks_for_host(&it.left) {
            walk_js::walk_logical_expression(self, it);
        }
    }
}

fn asks_for_host(it: &Expression<'_>) -> bool {
    struct Meta(bool);
    impl<'a> VisitJs<'a> for Meta {
        fn visit_import_meta(&mut self, _: &ImportMeta) {
            self.0 = true;
        }
    }
    let mut meta = Meta(false);
    meta.visit_expression(it);
    meta.0
}

/// The functions of the top level, by name.
fn functions<'p, 'a>(program: &'p Program<'a>) -> HashMap<&'a str, Body<'p, 'a>> {
    let mut functions = HashMap::new();
    for it in &program.body {
        let declaration = match it {
            Statement::ExportDeclaration(it) => Some(&it.declaration),
            it => it.as_declaration(),
        };
        match declaration {
            Some(Declaration::FunctionDeclaration(it)) => {
                functions.extend(it.id.as_ref().map(|id| (id.name.as_str(), Body::Function(it))));
            }
            Some(Declaration::VariableDeclaration(it)) => {
                functions.extend(it.declarations.iter().filter_map(variable));
            }
            _ => {}
        }
    }
    functions
}

fn variable<'p, 'a>(it: &'p VariableDeclarator<'a>) -> Option<(&'a str, Body<'p, 'a>)> {
    let name = it.id.get_identifier_name()?;
    let body = match it.init.as_ref()?.get_inner_expression() {
        Expression::FunctionExpression(it) => Body::Function(it),
        Expression::ArrowFunctionExpression(it) => Body::Arrow(it),
        _ => return None,
    };
    Some((name.as_str(), body))
}
