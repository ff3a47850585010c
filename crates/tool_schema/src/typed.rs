//! Words of a command line as the arguments of a tool: `title=Broken labels=bug,urgent limit=5 author.name=Ann`, each value
//! read as the type that the schema wants there. `key:=JSON` is taken as it is.
//!
//! - An array takes one word, cut at commas (`\,` is a comma), or several words with the same key. JSON is taken too.
//! - A property inside an object is `outer.inner`; a property whose name has a dot is found by its whole name first.
//! - Where a text and something else are both allowed, what is plainly something else (`5`, `true`, `null`) is that.
//! - In a key a backslash takes the meaning away from `=`, `.` and `:`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::exact::changed_number;
use crate::nearest::nearest_one;
use crate::schema::Node;
use crate::schema::print::{Style, inline};
use crate::schema::shape::{Bounds, Object, Others, Type, Walk};
use crate::tool::Json;

mod read;

/// How many types of a schema are looked at.
const BOUNDS: Bounds = Bounds { count: 5_000, depth: 16 };
/// How deeply keys lead into objects.
const STEPS_MAX: usize = 16;
/// The longest key.
const KEY_BYTES_MAX: usize = 1_024;
/// How many names are listed where none is near.
const LISTED_MAX: usize = 12;

/// What is wrong with a word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{word}` has no `=`; write `key=value`, or `key:=JSON`")]
    NoSign { word: String },
    #[error("`{word}` has no key before the `=`")]
    NoKey { word: String },
    #[error("what follows `{key}:=` is not JSON: {why}")]
    Json { key: String, why: String },
    #[error(
        "`{key}` has the number {number}, which cannot be sent as it is: it would become {becomes}; write fewer digits, \
         or a text where the tool takes one"
    )]
    Inexact { key: String, number: String, becomes: String },
    #[error("`{key}` is not known; {}", offer(.nearest.as_deref(), .known))]
    Unknown { key: String, nearest: Option<String>, known: Vec<String> },
    #[error("`{key}` wants {wanted}, and `{text}` is none{}", hint(.nearest.as_deref()))]
    Type { key: String, wanted: String, text: String, nearest: Option<String> },
    #[error(
        "`{key}` is an object; write `{key}.name=value` for each of its properties, or `{key}:=JSON`"
    )]
    WholeObject { key: String },
    #[error("`{key}` is given twice, and is no array")]
    Twice { key: String },
    #[error("`{key}` is inside of `{outer}`, which is no object")]
    NotAnObject { key: String, outer: String },
    #[error("a key of {0} bytes is too long")]
    LongKey(usize),
    #[error("`{key}` leads deeper than {STEPS_MAX} objects; write the outer one as JSON")]
    TooDeep { key: String },
}

fn offer(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!("did you mean `{nearest}`?"),
        (None, []) => "there are no properties".to_owned(),
        (None, known) => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("there are {}", known.join(", "))
        }
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

impl Error {
    /// The key of a word that could not be taken apart any further.
    fn key(&self) -> Option<&str> {
        match self {
            Self::Json { key, .. } | Self::Inexact { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// What is wrong with a word, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Wrong {
    pub error: Error,
    /// A JSON pointer into the arguments, where the word has a key.
    pub pointer: Option<String>,
}

/// The arguments that the words say, or everything that is wrong with them.
pub fn arguments<W: AsRef<str>>(
    schema: &Json,
    words: &[W],
) -> Result<Map<String, Value>, Vec<Wrong>> {
    let node = Node::read(schema);
    let of = Walk::new(&node, BOUNDS, &|_| false).of(&node);
    let mut arguments = Map::new();
    let mut errors = Vec::new();
    for word in words {
        let word = word.as_ref();
        let added = match Word::split(word) {
            Ok(word) => word.add(&of, &mut arguments),
            Err(error) => {
                let pointer = error.key().map(|key| pointer(&steps(key)));
                Err(Wrong { error, pointer })
            }
        };
        errors.extend(added.err());
    }
    if errors.is_empty() { Ok(arguments) } else { Err(errors) }
}

/// The word that says a value; read back by the schema that it was made for, it is the same.
pub(crate) fn word(key: &str, value: &Value) -> String {
    let mut name = String::new();
    for (at, sign) in key.char_indices() {
        let is_last = at + sign.len_utf8() == key.len();
        if matches!(sign, '=' | '\\') || sign == ':' && is_last {
            name.push('\\');
        }
        name.push(sign);
    }
    let is_plain = |text: &str| {
        !text.is_empty()
            && !text.contains([',', '\\', '[', '{', '"'])
            && !text.contains(char::is_control)
    };
    match value {
        // What would do something to a terminal is said in JSON.
        Value::String(text) if !text.contains(char::is_control) => format!("{name}={text}"),
        Value::Bool(_) | Value::Number(_) => format!("{name}={value}"),
        Value::Array(items)
            if !items.is_empty()
                && items.iter().all(|item| item.as_str().is_some_and(is_plain)) =>
        {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            format!("{name}={}", items.join(","))
        }
        other => format!("{name}:={other}"),
    }
}

struct Word<'w> {
    /// With its backslashes.
    key: &'w str,
    given: Given<'w>,
}

enum Given<'w> {
    Text(&'w str),
    Json(Value),
}

impl<'w> Word<'w> {
    fn split(word: &'w str) -> Result<Self, Error> {
        let Some(at) = unescaped(word, '=') else {
            return Err(Error::NoSign { word: word.to_owned() });
        };
        let (before, text) = (&word[..at], &word[at + 1..]);
        if before.len() > KEY_BYTES_MAX {
            return Err(Error::LongKey(before.len()));
        }
        let is_json = before.ends_with(':') && !is_escaped(before, before.len() - 1);
        let key = if is_json { &before[..before.len() - 1] } else { before };
        if key.is_empty() {
            return Err(Error::NoKey { word: word.to_owned() });
        }
        if let (true, Some(changed)) = (is_json, changed_number(text)) {
            return Err(inexact(key, changed));
        }
        let given = match is_json {
            false => Given::Text(text),
            true => Given::Json(
                serde_json::from_str(text)
                    .map_err(|error| Error::Json { key: key.to_owned(), why: error.to_string() })?,
            ),
        };
        Ok(Self { key, given })
    }

    fn add(self, of: &Type<'_>, arguments: &mut Map<String, Value>) -> Result<(), Wrong> {
        let place = match self.place(of) {
            Ok(place) => place,
            Err(error) => {
                let steps = steps(self.key);
                return Err(Wrong { error, pointer: Some(pointer(&steps)) });
            }
        };
        let pointer = pointer(&place.steps);
        let added = self.put(&place, arguments);
        added.map_err(|error| Wrong { error, pointer: Some(pointer) })
    }

    fn put(self, place: &Place<'_, '_>, arguments: &mut Map<String, Value>) -> Result<(), Error> {
        let Some((last, outer)) = place.steps.split_last() else { return Ok(()) };
        let mut here = arguments;
        for (at, step) in outer.iter().enumerate() {
            let inner = here.entry(step.clone()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                let outer = place.steps[..=at].join(".");
                return Err(Error::NotAnObject { key: self.key.to_owned(), outer });
            };
            here = inner;
        }
        let text = match self.given {
            Given::Json(value) => return insert(self.key, here, last, value),
            Given::Text(text) => text,
        };
        let value = read::value(&place.of, text).ok_or_else(|| self.unreadable(&place.of, text))?;
        match (here.get_mut(last), value) {
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (_, value) => insert(self.key, here, last, value)?,
        }
        Ok(())
    }

    fn unreadable(&self, of: &Type<'_>, text: &str) -> Error {
        let key = self.key.to_owned();
        if read::is_only_object(of) {
            return Error::WholeObject { key };
        }
        if let Some(changed) = changed_number(text) {
            return inexact(self.key, changed);
        }
        let choices = read::choices(of);
        let nearest = nearest_one(text, choices.iter().map(String::as_str)).map(str::to_owned);
        Error::Type { key, wanted: inline(of, Style::Message), text: text.to_owned(), nearest }
    }

    /// Where the key leads. What can be one of several objects has the properties of all of them.
    fn place<'t, 'a>(&self, of: &'t Type<'a>) -> Result<Place<'t, 'a>, Error> {
        let (mut rest, mut of) = (self.key, vec![of]);
        let mut steps = Vec::new();
        while steps.len() < STEPS_MAX {
            let objects = objects(&of);
            // The whole rest, or the longest beginning of it that is a property.
            let dots = std::iter::successors(Some(rest.len()), |end| rest[..*end].rfind('.'));
            let found =
                dots.filter(|end| *end == rest.len() || !is_escaped(rest, *end)).find_map(|end| {
                    let name = plain(&rest[..end]);
                    let inner = named(&objects, &name);
                    (!inner.is_empty()).then_some((end, name, inner))
                });
            let end;
            (end, of) = match found {
                Some((end, name, inner)) => {
                    steps.push(name);
                    (end, inner)
                }
                None => {
                    let end = unescaped(rest, '.').unwrap_or(rest.len());
                    let name = plain(&rest[..end]);
                    let inner = match objects.as_slice() {
                        [] if of.iter().any(|of| read::takes_all(of)) => vec![&Type::Unknown],
                        [] => {
                            let outer = steps.join(".");
                            return Err(Error::NotAnObject { key: self.key.to_owned(), outer });
                        }
                        objects => self.other(objects, &name, &steps)?,
                    };
                    steps.push(name);
                    (end, inner)
                }
            };
            match rest.get(end + 1..) {
                None => return Ok(Place { steps, of: joined(&of) }),
                Some(inner) => rest = inner,
            }
        }
        Err(Error::TooDeep { key: self.key.to_owned() })
    }

    /// The types of a property that has no name in the schema, where there may be one.
    fn other<'t, 'a>(
        &self,
        objects: &[&'t Object<'a>],
        name: &str,
        steps: &[String],
    ) -> Result<Vec<&'t Type<'a>>, Error> {
        let named =
            || objects.iter().flat_map(|object| &object.properties).map(|property| property.name);
        let near = nearest_one(name, named());
        let full = |name: &str| {
            let mut path: Vec<&str> = steps.iter().map(String::as_str).collect();
            path.push(name);
            path.join(".")
        };
        let mut types: Vec<&'t Type<'a>> = Vec::new();
        for object in objects {
            match &object.others {
                Others::Of(of) => types.push(of),
                // Allowed because nobody said anything. A name that is nearly one of the others is a slip.
                Others::Unsaid if near.is_none() => types.push(&Type::Unknown),
                Others::Unsaid | Others::No => {}
            }
        }
        if !types.is_empty() {
            return Ok(types);
        }
        // What several objects have is told once.
        let mut known: Vec<&str> = Vec::new();
        for name in named() {
            if !known.contains(&name) && known.len() < LISTED_MAX {
                known.push(name);
            }
        }
        Err(Error::Unknown {
            key: full(name),
            nearest: near.map(full),
            known: known.into_iter().map(full).collect(),
        })
    }
}

fn inexact(key: &str, (number, becomes): (&str, String)) -> Error {
    Error::Inexact { key: key.to_owned(), number: number.to_owned(), becomes }
}

fn insert(key: &str, here: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Error> {
    if here.contains_key(name) {
        return Err(Error::Twice { key: key.to_owned() });
    }
    here.insert(name.to_owned(), value);
    Ok(())
}

struct Place<'t, 'a> {
    steps: Vec<String>,
    of: Cow<'t, Type<'a>>,
}

/// What can be any of these.
fn joined<'t, 'a>(types: &[&'t Type<'a>]) -> Cow<'t, Type<'a>> {
    let mut distinct: Vec<&'t Type<'a>> = Vec::new();
    for of in types {
        if !distinct.contains(of) {
            distinct.push(of);
        }
    }
    match distinct.as_slice() {
        [only] => Cow::Borrowed(only),
        several => Cow::Owned(Type::Union(several.iter().map(|&of| of.clone()).collect())),
    }
}

/// What the objects have under a name.
fn named<'t, 'a>(objects: &[&'t Object<'a>], name: &str) -> Vec<&'t Type<'a>> {
    let properties = objects.iter().flat_map(|object| &object.properties);
    properties.filter(|property| property.name == name).map(|property| &property.of).collect()
}

/// All objects that something may be.
fn objects<'t, 'a>(types: &[&'t Type<'a>]) -> Vec<&'t Object<'a>> {
    let mut objects = Vec::new();
    let mut waiting: Vec<&'t Type<'a>> = types.iter().rev().copied().collect();
    while let Some(of) = waiting.pop() {
        match of {
            Type::Object(object) => objects.push(object),
            Type::Union(members) | Type::Intersection(members) => {
                waiting.extend(members.iter().rev());
            }
            _ => {}
        }
    }
    objects
}

/// The steps of a key of which the schema knows nothing.
fn steps(key: &str) -> Vec<String> {
    let (mut steps, mut rest) = (Vec::new(), key);
    while let Some(at) = unescaped(rest, '.') {
        steps.push(plain(&rest[..at]));
        rest = &rest[at + 1..];
    }
    steps.push(plain(rest));
    steps
}

fn pointer(steps: &[String]) -> String {
    steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Where the first such sign is that keeps its meaning.
fn unescaped(text: &str, sign: char) -> Option<usize> {
    text.match_indices(sign).map(|(at, _)| at).find(|at| !is_escaped(text, *at))
}

/// Whether a backslash takes the meaning away from what is there. Two of them are one that does not.
fn is_escaped(text: &str, at: usize) -> bool {
    let backslashes = text.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Without the backslashes that take a meaning away.
fn plain(key: &str) -> String {
    let mut plain = String::with_capacity(key.len());
    let mut signs = key.chars().peekable();
    while let Some(sign) = signs.next() {
        let next = signs.next_if(|next| sign == '\\' && matches!(next, '=' | '.' | ':' | '\\'));
        plain.push(next.unwrap_or(sign));
    }
    plain
}

#[cfg(test)]
mod tests;
