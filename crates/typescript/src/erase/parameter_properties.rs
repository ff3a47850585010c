//! `constructor(private x: T)`: a parameter that is a property as well. The class gets a field `x`, and the constructor
//! sets it, after `super(…)` if there is one.

use oxc_ast::ast::*;
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeFlags;

use super::Eraser;

impl<'a> Eraser<'a, '_> {
    pub(super) fn parameter_properties(&mut self, it: &Class<'a>) {
        let Some((constructor, body)) = it.body.body.iter().find_map(constructor) else { return };
        let parameters = constructor.params.items.iter().filter(|it| it.has_modifier());
        let names: Vec<&str> = parameters
            .filter_map(|it| it.pattern.get_identifier_name())
            .map(|name| name.as_str())
            .collect();
        if names.is_empty() {
            return;
        }
        let fields: String = names.iter().map(|name| format!(" {name};")).collect();
        self.edits.insert(it.body.span.start + 1, fields);
        let settings: String = names.iter().map(|name| format!(" this.{name} = {name};")).collect();
        let before = match &it.heritage {
            Some(_) => body.statements.iter().find(|it| is_super_call(it)).map(GetSpan::span),
            None => body.directives.last().map(|directive| directive.span),
        };
        match before {
            Some(span) if self.text(span).ends_with(';') => self.edits.insert(span.end, settings),
            Some(span) => self.edits.insert(span.end, format!(";{settings}")),
            None if it.heritage.is_none() => self.edits.insert(body.span.start + 1, settings),
            None => {
                let message = "a constructor with parameter properties does not call `super`";
                let help =
                    "call `super(…)` in a statement of its own, or set the properties yourself";
                self.refuse(constructor.span.start, message, help);
            }
        }
        self.refuse_early_uses(it, &names);
    }

    /// Fields get their values before the constructor sets the properties. The compiler says so as well.
    fn refuse_early_uses(&mut self, it: &Class<'a>, names: &[&str]) {
        let mut early = EarlyUse { names, offset: None };
        for element in &it.body.body {
            if let ClassElement::PropertyDefinition(it) = element
                && !it.r#static
                && let Some(value) = &it.value
            {
                early.visit_expression(value);
            }
        }
        if let Some(offset) = early.offset {
            let message = "a field uses a parameter property before the constructor has set it";
            self.refuse(offset, message, "give the field its value in the constructor");
        }
    }
}

fn constructor<'e, 'a>(
    it: &'e ClassElement<'a>,
) -> Option<(&'e Function<'a>, &'e FunctionBody<'a>)> {
    match it {
        ClassElement::MethodDefinition(it) if it.kind == MethodDefinitionKind::Constructor => {
            it.value.body.as_deref().map(|body| (&*it.value, body))
        }
        _ => None,
    }
}

fn is_super_call(it: &Statement<'_>) -> bool {
    match it {
        Statement::ExpressionStatement(it) => {
            it.expression.without_parentheses().is_super_call_expression()
        }
        _ => false,
    }
}

/// Where `this.x` stands outside of functions.
struct EarlyUse<'n> {
    names: &'n [&'n str],
    offset: Option<u32>,
}

impl<'a> VisitJs<'a> for EarlyUse<'_> {
    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if matches!(it.object, Expression::ThisExpression(_))
            && self.names.contains(&it.property.name.as_str())
        {
            self.offset.get_or_insert(it.span.start);
        }
        walk_js::walk_static_member_expression(self, it);
    }

    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_class(&mut self, _: &Class<'a>) {}
}
