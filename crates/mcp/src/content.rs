//! What a server offers, in its own words: tools, resources, prompts. How each revision spells them is
//! decided here and nowhere else.

mod blocks;
mod foreign;

use serde_json::{Map, Value, json};

pub use self::blocks::{Block, Held, Message, ResourceContents, Role};
pub use self::foreign::{ForeignResource, ForeignResult};
use crate::revision::Traits;

/// A tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    /// Whether the tool's name is a method of its own too, in the product's first protocol.
    pub is_method: bool,
    /// Called when somebody lists the tools: a server that is not asked does without.
    pub about: fn() -> About,
}

/// A tool as its host describes it.
#[derive(Debug, Clone)]
pub struct About {
    pub title: &'static str,
    pub description: &'static str,
    pub input_schema: Value,
    /// What a machine gets, where it gets anything.
    pub output_schema: Option<Value>,
    pub annotations: Value,
    /// Shown where a revision has a place for them.
    pub examples: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub title: String,
    pub description: String,
    pub mime_type: &'static str,
}

/// A resource in a list.
#[derive(Debug, Clone, PartialEq)]
pub enum Listed {
    Own(Resource),
    /// Another server's.
    Foreign(ForeignResource),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTemplate {
    pub uri_template: String,
    pub name: String,
    pub title: String,
    pub description: String,
    pub mime_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    pub title: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: String,
    pub required: bool,
}

/// Part of a list, and where the next part begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
    /// It may be another in a moment, and is not to be kept.
    pub is_live: bool,
}

impl Tool {
    pub(crate) fn to_json(self, traits: &Traits) -> Value {
        let about = (self.about)();
        let mut tool = named(self.name, about.title, traits);
        tool.insert("description".to_owned(), json!(about.description));
        tool.insert("inputSchema".to_owned(), about.input_schema);
        if let Some(output_schema) = about.output_schema.filter(|_| traits.output_schema) {
            tool.insert("outputSchema".to_owned(), output_schema);
        }
        if traits.annotations {
            tool.insert("annotations".to_owned(), about.annotations);
        }
        if let Some(examples) = about.examples.filter(|_| traits.examples) {
            tool.insert("examples".to_owned(), examples);
        }
        Value::Object(tool)
    }
}

impl Resource {
    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        let mut resource = named(&self.name, &self.title, traits);
        resource.insert("uri".to_owned(), json!(self.uri));
        resource.insert("description".to_owned(), json!(self.description));
        resource.insert("mimeType".to_owned(), json!(self.mime_type));
        Value::Object(resource)
    }
}

impl Listed {
    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        match self {
            Self::Own(resource) => resource.to_json(traits),
            Self::Foreign(resource) => resource.to_json(traits),
        }
    }
}

impl From<Resource> for Listed {
    fn from(resource: Resource) -> Self {
        Self::Own(resource)
    }
}

impl ResourceTemplate {
    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        let mut template = named(&self.name, &self.title, traits);
        template.insert("uriTemplate".to_owned(), json!(self.uri_template));
        template.insert("description".to_owned(), json!(self.description));
        // Not all that it leads to need be of one type.
        if !self.mime_type.is_empty() {
            template.insert("mimeType".to_owned(), json!(self.mime_type));
        }
        Value::Object(template)
    }
}

impl Prompt {
    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        let arguments = self.arguments.iter().map(|argument| {
            json!({
                "name": argument.name,
                "description": argument.description,
                "required": argument.required,
            })
        });
        let arguments: Vec<Value> = arguments.collect();
        let mut prompt = named(&self.name, &self.title, traits);
        prompt.insert("description".to_owned(), json!(self.description));
        prompt.insert("arguments".to_owned(), json!(arguments));
        Value::Object(prompt)
    }
}

fn named(name: &str, title: &str, traits: &Traits) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(name));
    if traits.titles {
        object.insert("title".to_owned(), json!(title));
    }
    object
}
