//! How a loop runs: its kind, its bound and the variables that it binds.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::condition::Condition;
use crate::limits::{ITERATIONS_MAX, ITERATIONS_MIN, VARIABLE_PATTERN};
use crate::serial::{Fields, Whole, present};
use crate::shape::{choose, needs};

/// How a loop runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Fields<LoopFields>")]
pub struct Loop {
    pub kind: LoopKind,
    pub max_iterations: u32,
    pub iteration_var: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LoopKind {
    /// As long as the condition holds, looked at before each iteration.
    While { condition: Condition },
    /// As long as the condition does not hold, looked at before each iteration.
    Until { condition: Condition },
    /// A number of times.
    For { count: Count },
    /// Once for each item of a list in the context.
    ForEach { items: Box<str>, item_var: Option<Box<str>>, index_var: Option<Box<str>> },
}

/// How often a `for` loop runs: a number, or the name of a context variable that holds one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Count {
    Number(u32),
    Variable(Box<str>),
}

impl Loop {
    pub fn iteration_var(&self) -> &str {
        self.iteration_var.as_deref().unwrap_or("currentIteration")
    }

    /// The names that are bound inside the body.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let each = match &self.kind {
            LoopKind::ForEach { item_var, index_var, .. } => {
                Some([item_name(item_var), index_name(index_var)])
            }
            _ => None,
        };
        std::iter::once(self.iteration_var()).chain(each.into_iter().flatten())
    }
}

/// The name of a `forEach` loop's item.
pub fn item_name(item_var: &Option<Box<str>>) -> &str {
    item_var.as_deref().unwrap_or("currentItem")
}

/// The name of a `forEach` loop's index.
pub fn index_name(index_var: &Option<Box<str>>) -> &str {
    index_var.as_deref().unwrap_or("currentIndex")
}

// How a loop is written; the comments are what an editor shows.
/// How a loop runs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Loop", extend("allOf" = [
    needs(&["while", "until"], "condition"), needs(&["for"], "count"), needs(&["forEach"], "items"),
]))]
struct LoopFields {
    /// `while` and `until` look at a condition before each iteration, `for` counts, `forEach` takes
    /// the items of a list.
    r#type: LoopType,
    /// `while`: go on where this holds. `until`: go on where it does not.
    #[serde(default, deserialize_with = "present")]
    condition: Option<Condition>,
    /// `for`: how often, as a number or as the name of a context variable.
    #[serde(default, deserialize_with = "present")]
    count: Option<Count>,
    /// `forEach`: the context variable that holds the list.
    #[serde(default, deserialize_with = "present")]
    #[schemars(length(min = 1))]
    items: Option<Box<str>>,
    /// The bound: the loop ends after this many iterations, whatever its condition says.
    #[schemars(range(min = ITERATIONS_MIN, max = ITERATIONS_MAX))]
    max_iterations: Whole,
    /// The variable that holds the number of the iteration, from 1. `currentIteration` where absent.
    #[serde(default, deserialize_with = "present")]
    #[schemars(regex(pattern = VARIABLE_PATTERN))]
    iteration_var: Option<Box<str>>,
    /// `forEach`: the variable that holds the item. `currentItem` where absent.
    #[serde(default, deserialize_with = "present")]
    #[schemars(regex(pattern = VARIABLE_PATTERN))]
    item_var: Option<Box<str>>,
    /// `forEach`: the variable that holds the item's index, from 0. `currentIndex` where absent.
    #[serde(default, deserialize_with = "present")]
    #[schemars(regex(pattern = VARIABLE_PATTERN))]
    index_var: Option<Box<str>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum LoopType {
    While,
    Until,
    For,
    ForEach,
}

impl TryFrom<Fields<LoopFields>> for Loop {
    type Error = &'static str;

    fn try_from(Fields(mut fields): Fields<LoopFields>) -> Result<Self, Self::Error> {
        let kind = match fields.r#type {
            LoopType::While | LoopType::Until => {
                let condition = fields.condition.take().ok_or("the loop needs a `condition`")?;
                match fields.r#type {
                    LoopType::While => LoopKind::While { condition },
                    _ => LoopKind::Until { condition },
                }
            }
            LoopType::For => {
                LoopKind::For { count: fields.count.take().ok_or("the loop needs a `count`")? }
            }
            LoopType::ForEach => LoopKind::ForEach {
                items: fields.items.take().ok_or("the loop needs `items`")?,
                item_var: fields.item_var.take(),
                index_var: fields.index_var.take(),
            },
        };
        let is_used_up = fields.condition.is_none()
            && fields.count.is_none()
            && fields.items.is_none()
            && fields.item_var.is_none()
            && fields.index_var.is_none();
        if !is_used_up {
            return Err("a field that belongs to another kind of loop");
        }
        Ok(Self {
            kind,
            max_iterations: fields.max_iterations.0,
            iteration_var: fields.iteration_var,
        })
    }
}

impl Serialize for Loop {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut names = vec![("iterationVar", &self.iteration_var)];
        match &self.kind {
            LoopKind::While { condition } => {
                map.serialize_entry("type", "while")?;
                map.serialize_entry("condition", condition)?;
            }
            LoopKind::Until { condition } => {
                map.serialize_entry("type", "until")?;
                map.serialize_entry("condition", condition)?;
            }
            LoopKind::For { count } => {
                map.serialize_entry("type", "for")?;
                map.serialize_entry("count", count)?;
            }
            LoopKind::ForEach { items, item_var, index_var } => {
                map.serialize_entry("type", "forEach")?;
                map.serialize_entry("items", items)?;
                names.extend([("itemVar", item_var), ("indexVar", index_var)]);
            }
        }
        map.serialize_entry("maxIterations", &self.max_iterations)?;
        for (name, variable) in names {
            if let Some(variable) = variable {
                map.serialize_entry(name, variable)?;
            }
        }
        map.end()
    }
}

impl JsonSchema for Loop {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        LoopFields::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        LoopFields::json_schema(generator)
    }
}

impl JsonSchema for Count {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        choose(
            json!({"type": "string"}),
            schemars::json_schema!({"type": "string", "minLength": 1}),
            schemars::json_schema!({"type": "integer", "minimum": 0, "maximum": ITERATIONS_MAX}),
        )
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(Whole),
            Variable(Box<str>),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Number(Whole(count)) => Self::Number(count),
            Either::Variable(name) => Self::Variable(name),
        })
    }
}
