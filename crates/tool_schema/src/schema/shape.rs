//! The type that a schema describes. Signatures, generated types, samples and words of a command line are all made from this
//! one walk, so that they agree. Constraints that no type can say (`pattern`, `minimum`, `not`…) are left to whoever checks.
//!
//! A schema may be recursive, or grow without end when its references are followed: depth and count are bounded, and what
//! lies beyond is [`Type::Cut`].

use std::collections::HashSet;

use super::Node;

/// More members of a union than this, and it says only what they have in common.
const UNION_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type<'a> {
    /// Anything.
    Unknown,
    /// Nothing fits.
    Never,
    Null,
    Boolean,
    Number,
    Integer,
    String,
    /// This value alone.
    Literal(&'a Node),
    Array(Box<Type<'a>>),
    Tuple(Tuple<'a>),
    Object(Object<'a>),
    Union(Vec<Type<'a>>),
    Intersection(Vec<Type<'a>>),
    /// A definition that has a name of its own, by its reference.
    Named(&'a str),
    /// Beyond the bounds.
    Cut,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tuple<'a> {
    pub(crate) items: Vec<Type<'a>>,
    /// So many of them must be there.
    pub(crate) required: usize,
    pub(crate) rest: Option<Box<Type<'a>>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Object<'a> {
    /// Those that must be there first, otherwise as they were written.
    pub(crate) properties: Vec<Property<'a>>,
    pub(crate) others: Others<'a>,
}

/// What other properties there may be.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Others<'a> {
    /// None.
    No,
    /// Nothing is said, which allows all.
    #[default]
    Unsaid,
    Of(Box<Type<'a>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_required: bool,
    pub(crate) of: Type<'a>,
    /// What the schema says of it; nothing for one that is only required.
    pub(crate) node: &'a Node,
}

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many types, in all.
    pub(crate) count: usize,
    /// How many objects, arrays and references inside each other.
    pub(crate) depth: usize,
}

/// Follows a schema.
pub(crate) struct Walk<'a, 'n> {
    root: &'a Node,
    left: usize,
    depth_max: usize,
    /// References that are not followed, because they have a name.
    is_named: &'n dyn Fn(&str) -> bool,
    /// References that lead to where we are.
    open: Vec<&'a str>,
    /// Whether anything was beyond the bounds.
    pub(crate) is_cut: bool,
}

impl<'a, 'n> Walk<'a, 'n> {
    pub(crate) fn new(root: &'a Node, bounds: Bounds, is_named: &'n dyn Fn(&str) -> bool) -> Self {
        let Bounds { count, depth } = bounds;
        Self { root, left: count, depth_max: depth, is_named, open: Vec::new(), is_cut: false }
    }

    pub(crate) fn of(&mut self, node: &'a Node) -> Type<'a> {
        self.at(node, 0)
    }

    fn at(&mut self, node: &'a Node, depth: usize) -> Type<'a> {
        if self.left == 0 || depth > self.depth_max {
            return self.cut();
        }
        self.left -= 1;
        match node {
            Node::Bool(false) => return Type::Never,
            Node::Object(fields) if !fields.is_empty() => {}
            _ => return Type::Unknown,
        }
        if let Some(only) = node.get("const") {
            return Type::Literal(only);
        }
        if let Some(Node::List(options)) = node.get("enum") {
            return self.choices(node, options);
        }
        let mut parts = Vec::new();
        if let Some(reference) = node.text("$ref") {
            parts.push(self.reference(reference, depth));
        }
        parts.extend(self.own(node, depth));
        parts.extend(node.list("allOf").iter().map(|part| self.at(part, depth)));
        for keyword in ["anyOf", "oneOf"] {
            let forms = node.list(keyword);
            if !forms.is_empty() {
                let forms = forms.iter().take(UNION_MAX).map(|form| self.at(form, depth)).collect();
                parts.push(union(forms));
            }
        }
        let found = intersection(parts);
        // As OpenAPI before 3.1 has it.
        match node.get("nullable") {
            Some(Node::Bool(true)) => union(vec![found, Type::Null]),
            _ => found,
        }
    }

    fn cut(&mut self) -> Type<'a> {
        self.is_cut = true;
        Type::Cut
    }

    fn choices(&mut self, node: &'a Node, options: &'a [Node]) -> Type<'a> {
        if options.len() <= UNION_MAX.min(self.left) {
            self.left -= options.len();
            return union(options.iter().map(Type::Literal).collect());
        }
        self.is_cut = true;
        match node.text("type") {
            Some(name) => named(name).unwrap_or(Type::Unknown),
            None => Type::Unknown,
        }
    }

    fn reference(&mut self, reference: &'a str, depth: usize) -> Type<'a> {
        if (self.is_named)(reference) {
            return Type::Named(reference);
        }
        let Some(target) = self.root.target(reference) else { return Type::Unknown };
        if self.open.contains(&reference) {
            return self.cut();
        }
        self.open.push(reference);
        let found = self.at(target, depth + 1);
        self.open.pop();
        found
    }

    /// What `type` says, or the keywords that only one type has.
    fn own(&mut self, node: &'a Node, depth: usize) -> Option<Type<'a>> {
        match node.get("type") {
            Some(Node::Text(name)) => Some(self.typed(name, node, depth)),
            Some(Node::List(names)) => {
                let names = names.iter().filter_map(|name| match name {
                    Node::Text(name) => Some(name.as_str()),
                    _ => None,
                });
                Some(union(
                    names.take(UNION_MAX).map(|name| self.typed(name, node, depth)).collect(),
                ))
            }
            _ if ["properties", "additionalProperties"]
                .iter()
                .any(|key| node.get(key).is_some()) =>
            {
                Some(self.object(node, depth))
            }
            _ if ["items", "prefixItems"].iter().any(|key| node.get(key).is_some()) => {
                Some(self.array(node, depth))
            }
            _ => None,
        }
    }

    fn typed(&mut self, name: &str, node: &'a Node, depth: usize) -> Type<'a> {
        match name {
            "array" => self.array(node, depth),
            "object" => self.object(node, depth),
            name => named(name).unwrap_or(Type::Unknown),
        }
    }

    fn array(&mut self, node: &'a Node, depth: usize) -> Type<'a> {
        // Before 2020-12 the list of items was called `items`, and what follows them `additionalItems`.
        let (first, rest) = match node.get("items") {
            Some(Node::List(items)) => (items.as_slice(), node.get("additionalItems")),
            other => (node.list("prefixItems"), other),
        };
        let rest = rest.map(|rest| self.at(rest, depth + 1));
        if first.is_empty() {
            return Type::Array(Box::new(rest.unwrap_or(Type::Unknown)));
        }
        let items: Vec<Type<'a>> =
            first.iter().take(UNION_MAX).map(|item| self.at(item, depth + 1)).collect();
        let required = node.number("minItems").and_then(serde_json::Number::as_u64).unwrap_or(0);
        let required = usize::try_from(required).unwrap_or(usize::MAX).min(items.len());
        let rest = match rest.unwrap_or(Type::Unknown) {
            Type::Never => None,
            other => Some(Box::new(other)),
        };
        Type::Tuple(Tuple { items, required, rest })
    }

    fn object(&mut self, node: &'a Node, depth: usize) -> Type<'a> {
        let listed = node.list("required").iter().filter_map(|name| match name {
            Node::Text(name) => Some(name.as_str()),
            _ => None,
        });
        let required: HashSet<&'a str> = listed.clone().collect();
        let declared = node.get("properties").map_or(&[][..], Node::fields);
        let mut properties: Vec<Property<'a>> = Vec::new();
        for is_required in [true, false] {
            for (name, node) in declared {
                if required.contains(name.as_str()) != is_required {
                    continue;
                }
                if self.left == 0 {
                    self.is_cut = true;
                    break;
                }
                let of = self.at(node, depth + 1);
                properties.push(Property { name, is_required, of, node });
            }
        }
        for name in listed {
            if self.left > 0 && !properties.iter().any(|property| property.name == name) {
                self.left -= 1;
                let property =
                    Property { name, is_required: true, of: Type::Unknown, node: &Node::Null };
                properties.push(property);
            }
        }
        properties.sort_by_key(|property| !property.is_required);
        let patterns = node.get("patternProperties").map_or(&[][..], Node::fields);
        let mut others: Vec<Type<'a>> =
            patterns.iter().map(|(_, node)| self.at(node, depth + 1)).collect();
        let others = match node.get("additionalProperties") {
            Some(Node::Bool(false)) if others.is_empty() => Others::No,
            None | Some(Node::Bool(true)) if others.is_empty() => Others::Unsaid,
            additional => {
                others.extend(additional.map(|node| self.at(node, depth + 1)));
                Others::Of(Box::new(union(others)))
            }
        };
        Type::Object(Object { properties, others })
    }
}

/// The types that have a name and nothing in them.
fn named<'a>(name: &str) -> Option<Type<'a>> {
    Some(match name {
        "string" => Type::String,
        "number" => Type::Number,
        "integer" => Type::Integer,
        "boolean" => Type::Boolean,
        "null" => Type::Null,
        "array" => Type::Array(Box::new(Type::Unknown)),
        "object" => Type::Object(Object::default()),
        _ => return None,
    })
}

/// One of these, each once.
fn union(forms: Vec<Type<'_>>) -> Type<'_> {
    let mut members: Vec<Type<'_>> = Vec::new();
    for form in forms {
        let inner = match form {
            Type::Union(inner) => inner,
            Type::Never => continue,
            Type::Unknown => return Type::Unknown,
            other => vec![other],
        };
        for one in inner {
            if !members.contains(&one) {
                members.push(one);
            }
        }
    }
    match members.len() {
        0 => Type::Never,
        1 => members.remove(0),
        _ => Type::Union(members),
    }
}

/// All of these at once.
fn intersection(parts: Vec<Type<'_>>) -> Type<'_> {
    let mut members: Vec<Type<'_>> = Vec::new();
    for part in parts {
        let inner = match part {
            Type::Intersection(inner) => inner,
            Type::Unknown => continue,
            other => vec![other],
        };
        for one in inner {
            let other = members.iter_mut().find_map(|member| match member {
                Type::Object(object) => Some(object),
                _ => None,
            });
            match (one, other) {
                (Type::Object(object), Some(other)) => other.merge(object),
                (one, _) => {
                    if !members.contains(&one) {
                        members.push(one);
                    }
                }
            }
        }
    }
    // An object of which nothing is known adds nothing to what else is known.
    if members.len() > 1 {
        let says_nothing = Type::Object(Object::default());
        members.retain(|member| *member != says_nothing);
    }
    match members.len() {
        0 => Type::Unknown,
        1 => members.remove(0),
        _ => Type::Intersection(members),
    }
}

impl<'a> Object<'a> {
    fn merge(&mut self, other: Object<'a>) {
        for property in other.properties {
            match self.properties.iter_mut().find(|own| own.name == property.name) {
                None => self.properties.push(property),
                Some(own) => {
                    own.is_required |= property.is_required;
                    // One that is only required says nothing of the type.
                    if own.node == &Node::Null {
                        (own.of, own.node) = (property.of, property.node);
                    }
                }
            }
        }
        self.properties.sort_by_key(|property| !property.is_required);
        self.others = match (std::mem::take(&mut self.others), other.others) {
            (Others::No, _) | (_, Others::No) => Others::No,
            (Others::Unsaid, others) | (others, Others::Unsaid) => others,
            (Others::Of(one), Others::Of(other)) => {
                Others::Of(Box::new(intersection(vec![*one, *other])))
            }
        };
    }
}
