//! Types of functions and variables: parameters, results, `this`, `?` and `!`.

use oxc_ast::ast::*;
use oxc_span::{GetSpan, Span};

use super::Eraser;

impl<'a> Eraser<'a, '_> {
    pub(super) fn function(&mut self, it: &Function<'a>) {
        self.erase_parameters(it.type_parameters.as_deref());
        self.erase_annotation(it.return_type.as_deref());
        if let Some(this) = &it.this_param {
            // Together with the comma after it.
            let end = match self.tokens.at(this.span.end) {
                Some(comma) if comma.text == "," => comma.span.end,
                _ => this.span.end,
            };
            self.erase(Span::new(this.span.start, end));
        }
    }

    /// A line break may stand neither before the brackets of `async (…)` nor after those of `(…) =>`. Where the types
    /// leave one there, the bracket moves to its other side.
    pub(super) fn arrow(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(parameters) = &it.type_parameters {
            let moved = Span::new(parameters.span.start, it.params.span.start);
            if self.tokens.has_line_break(moved) {
                self.is_type(moved.start);
                self.edits.blank_after("(", moved);
                self.edits.blank(first_sign(it.params.span));
            } else {
                self.erase(parameters.span);
            }
        }
        if let Some(result) = &it.return_type {
            let moved = Span::new(it.params.span.end, result.span.end);
            if self.tokens.has_line_break(moved) {
                self.is_type(moved.start);
                self.edits.blank(last_sign(it.params.span));
                self.edits.blank_before(moved, ')');
            } else {
                self.erase(result.span);
            }
        }
    }

    pub(super) fn parameter(&mut self, it: &FormalParameter<'a>) {
        self.modifiers(Span::new(it.span.start, it.pattern.span().start));
        if it.optional {
            self.sign_after(it.pattern.span().end, "?");
        }
        self.erase_annotation(it.type_annotation.as_deref());
    }

    pub(super) fn declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.sign_after(it.id.span().end, "!");
        }
        self.erase_annotation(it.type_annotation.as_deref());
    }

    /// Erases a sign, if it is the next one.
    pub(super) fn sign_after(&mut self, offset: u32, text: &str) {
        if let Some(token) = self.tokens.at(offset).filter(|token| token.text == text) {
            self.erase(token.span);
        }
    }

    /// Erases `public`, `readonly` and the like.
    pub(super) fn modifiers(&mut self, span: Span) {
        for token in self.tokens.within(span).filter(|token| is_modifier(token.text)) {
            self.erase(token.span);
        }
    }
}

pub(super) fn is_modifier(text: &str) -> bool {
    matches!(
        text,
        "public" | "private" | "protected" | "readonly" | "override" | "abstract" | "declare"
    )
}

fn first_sign(span: Span) -> Span {
    Span::new(span.start, span.start + 1)
}

fn last_sign(span: Span) -> Span {
    Span::new(span.end - 1, span.end)
}
