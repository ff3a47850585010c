//! Types in expressions: `as`, `satisfies`, `<T>x`, `f<T>`. What they held together or apart has to stay so without
//! them.

use oxc_ast::ast::*;
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::Eraser;

impl<'a> Eraser<'a, '_> {
    /// `x as T`, `x satisfies T`
    pub(super) fn cast(&mut self, expression: &Expression<'a>, span: Span) {
        if let Some(keyword) = self.tokens.at(expression.span().end) {
            self.erase_tail(Span::new(keyword.span.start, span.end));
        }
    }

    /// Erases what an expression ends with. A type ends a statement before a line on which the expression alone would
    /// go on: it would be called, be the tag of a template, be divided.
    fn erase_tail(&mut self, span: Span) {
        let is_hazard = self.tokens.at(span.end).is_some_and(|next| {
            let goes_on = match next.text {
                "(" | "[" | "`" => false,
                "/" | "+" | "-" => self.goes_on == Some(span.end),
                _ => true,
            };
            !goes_on && self.tokens.has_line_break(Span::new(span.end, next.span.start))
        });
        self.is_type(span.start);
        self.edits.blank_after(if is_hazard { ";" } else { "" }, span);
    }

    /// `<T>x`. In brackets, where `x` alone would be something else: after `return` and a line break, or a block.
    pub(super) fn assertion(&mut self, it: &TSTypeAssertion<'a>) {
        let erased = Span::new(it.span.start, it.expression.span().start);
        let begins_otherwise = self.tokens.at(erased.end).is_some_and(|first| {
            matches!(first.text, "{" | "function" | "class" | "async" | "let")
        });
        let needs_brackets = begins_otherwise || self.tokens.has_line_break(erased);
        self.is_type(erased.start);
        self.edits.blank_after(if needs_brackets { "(" } else { "" }, erased);
        self.visit_expression(&it.expression);
        if needs_brackets {
            self.edits.insert(it.expression.span().end, ")");
        }
    }

    /// `a ** b as T ** c` is `(a ** b) ** c`, and `-a as T ** b` is not without brackets. With every other operator that
    /// can come after it, a type holds nothing together.
    pub(super) fn binary(&mut self, it: &BinaryExpression<'a>) {
        let held = held_together(&it.left);
        let bracketed = held.filter(|inner| {
            it.operator == BinaryOperator::Exponential
                && matches!(
                    inner,
                    Expression::BinaryExpression(_)
                        | Expression::UnaryExpression(_)
                        | Expression::AwaitExpression(_)
                )
        });
        if let Some(inner) = bracketed {
            self.edits.insert(inner.span().start, "(");
        }
        if held.is_some() {
            self.goes_on = Some(it.left.span().end);
        }
        self.visit_expression(&it.left);
        if let Some(inner) = bracketed {
            self.edits.insert(inner.span().end, ")");
        }
        self.visit_expression(&it.right);
    }
}

/// What `as` or `satisfies` is about.
fn held_together<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e Expression<'a>> {
    let mut inner = match expression {
        Expression::TSAsExpression(it) => &it.expression,
        Expression::TSSatisfiesExpression(it) => &it.expression,
        _ => return None,
    };
    loop {
        inner = match inner {
            Expression::TSAsExpression(it) => &it.expression,
            Expression::TSSatisfiesExpression(it) => &it.expression,
            _ => return Some(inner),
        };
    }
}
