//! The definitions of one schema that others refer to, each with a name of its own.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::names;
use crate::schema::Node;
use crate::schema::shape::{Bounds, Others, Type, Walk};

/// More definitions of one schema than this are not written, and stand for anything.
const ALIASES_MAX: usize = 300;

pub(super) struct Aliases<'a> {
    list: Vec<Alias<'a>>,
}

struct Alias<'a> {
    reference: &'a str,
    name: String,
    of: Type<'a>,
}

impl<'a> Aliases<'a> {
    /// Everything that is referred to from the type, and from there on.
    pub(super) fn of(
        root: &'a Node,
        of: &Type<'a>,
        prefix: &str,
        bounds: Bounds,
        used: &mut HashSet<String>,
    ) -> Self {
        let mut list: Vec<Alias<'a>> = Vec::new();
        let mut known: HashSet<&'a str> = HashSet::new();
        let mut waiting = Vec::new();
        collect(of, &mut waiting);
        let mut next = 0;
        while let Some(&reference) = waiting.get(next) {
            next += 1;
            if !known.insert(reference) || list.len() == ALIASES_MAX {
                continue;
            }
            let Some(target) = root.target(reference) else { continue };
            let name = names::unused(&names::definition(prefix, reference), used);
            let of = Walk::new(root, bounds, &|_| true).of(target);
            collect(&of, &mut waiting);
            list.push(Alias { reference, name, of });
        }
        Self { list }
    }

    /// The name of what a reference leads to.
    pub(super) fn name(&self, reference: &str) -> &str {
        self.get(reference).map_or("unknown", |alias| &alias.name)
    }

    pub(super) fn write(&self, text: &mut String, print: &dyn Fn(&Type<'_>, &mut String)) {
        for alias in &self.list {
            let _ = write!(text, "export type {} = ", alias.name);
            // A type may refer to itself from inside of something, but not be itself.
            if self.is_itself(&alias.of, alias.reference) {
                text.push_str("unknown");
            } else {
                print(&alias.of, text);
            }
            text.push_str(";\n");
        }
    }

    fn get(&self, reference: &str) -> Option<&Alias<'a>> {
        self.list.iter().find(|alias| alias.reference == reference)
    }

    /// Whether the type leads to the reference without going into anything.
    fn is_itself(&self, of: &Type<'a>, reference: &str) -> bool {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut waiting = vec![of];
        while let Some(of) = waiting.pop() {
            match of {
                Type::Named(named) if *named == reference => return true,
                Type::Named(named) if seen.insert(named) => {
                    waiting.extend(self.get(named).map(|alias| &alias.of));
                }
                Type::Union(members) | Type::Intersection(members) => waiting.extend(members),
                _ => {}
            }
        }
        false
    }
}

/// The references in a type, in their order.
fn collect<'a>(of: &Type<'a>, references: &mut Vec<&'a str>) {
    match of {
        Type::Named(reference) => references.push(reference),
        Type::Array(item) => collect(item, references),
        Type::Tuple(tuple) => {
            tuple.items.iter().for_each(|item| collect(item, references));
            tuple.rest.iter().for_each(|rest| collect(rest, references));
        }
        Type::Object(object) => {
            object.properties.iter().for_each(|property| collect(&property.of, references));
            if let Others::Of(of) = &object.others {
                collect(of, references);
            }
        }
        Type::Union(members) | Type::Intersection(members) => {
            members.iter().for_each(|member| collect(member, references));
        }
        Type::Unknown
        | Type::Never
        | Type::Null
        | Type::Boolean
        | Type::Number
        | Type::Integer
        | Type::String
        | Type::Literal(_)
        | Type::Cut => {}
    }
}
