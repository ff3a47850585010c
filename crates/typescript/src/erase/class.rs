//! Types of classes: modifiers, what is implemented, declared and abstract members.

use oxc_ast::ast::*;
use oxc_span::{GetSpan, Span};

use super::Eraser;
use super::function::is_modifier;

impl<'a> Eraser<'a, '_> {
    pub(super) fn class(&mut self, it: &Class<'a>) {
        if it.r#abstract
            && let Some(class) = self.tokens.find(it.span, "class")
            && let Some(keyword) = self.tokens.before(class.span.start)
            && keyword.text == "abstract"
        {
            self.erase(keyword.span);
        }
        self.erase_parameters(it.type_parameters.as_deref());
        if let Some(heritage) = &it.heritage {
            self.erase_arguments(heritage.type_arguments.as_deref());
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last())
            && let Some(keyword) = self.tokens.before(first.span.start)
        {
            self.erase(Span::new(keyword.span.start, last.span.end));
        }
        self.parameter_properties(it);
    }

    /// Whether something is left of it.
    pub(super) fn element(&mut self, it: &ClassElement<'a>) -> bool {
        match it {
            ClassElement::StaticBlock(_) => {}
            ClassElement::MethodDefinition(it) if it.value.body.is_some() => self.method(it),
            ClassElement::PropertyDefinition(it)
                if !it.declare && it.r#type == PropertyDefinitionType::PropertyDefinition =>
            {
                self.property(it);
            }
            ClassElement::AccessorProperty(it)
                if it.r#type == AccessorPropertyType::AccessorProperty =>
            {
                let help = "write a getter and a setter instead";
                self.refuse(it.span.start, "`accessor` fields are not supported", help);
            }
            ClassElement::MethodDefinition(_)
            | ClassElement::PropertyDefinition(_)
            | ClassElement::AccessorProperty(_)
            | ClassElement::TSIndexSignature(_) => {
                self.erase_statement(it.span());
                return false;
            }
        }
        true
    }

    fn method(&mut self, it: &MethodDefinition<'a>) {
        self.element_modifiers(it.span, it.key.span());
        if it.optional
            && let Some(sign) =
                self.tokens.find(Span::new(it.key.span().end, it.value.span.start), "?")
        {
            self.erase(sign.span);
        }
    }

    fn property(&mut self, it: &PropertyDefinition<'a>) {
        self.element_modifiers(it.span, it.key.span());
        let after_key = Span::new(it.key.span().end, it.span.end);
        let sign = match (it.optional, it.definite) {
            (true, _) => self.tokens.find(after_key, "?"),
            (_, true) => self.tokens.find(after_key, "!"),
            (false, false) => None,
        };
        let annotation = it.type_annotation.as_ref().map(|annotation| annotation.span);
        let mut erased = sign.map(|sign| sign.span).into_iter().chain(annotation);
        // `get: T` before a line with a method would be its getter.
        let is_prefix = !it.computed
            && it.value.is_none()
            && it.key.static_name().is_some_and(|name| {
                matches!(name.as_ref(), "get" | "set" | "static" | "accessor" | "async")
            });
        if is_prefix && let Some(span) = erased.next() {
            self.erase_statement(span);
        }
        for span in erased {
            self.erase(span);
        }
    }

    /// What stands before a name. It may have been all that told a member from the one on the line before it.
    fn element_modifiers(&mut self, span: Span, key: Span) {
        let before_key = Span::new(span.start, key.start);
        let mut tokens = self.tokens.within(before_key);
        let Some(first) = tokens.next().filter(|token| is_modifier(token.text)) else {
            return self.modifiers(before_key);
        };
        let left = tokens.find(|token| !is_modifier(token.text)).or(self.tokens.at(key.start));
        let is_hazard =
            left.is_some_and(|token| matches!(token.text, "[" | "*" | "in" | "instanceof"));
        if is_hazard {
            self.erase_statement(first.span);
        } else {
            self.erase(first.span);
        }
        self.modifiers(Span::new(first.span.end, key.start));
    }
}
