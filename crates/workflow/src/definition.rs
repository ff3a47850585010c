//! A workflow as an author writes it. The comments on the fields are the descriptions in the
//! generated JSON Schema: they are what an editor shows. Limits that are about values rather than
//! shape are checked by `rules::limits`; the schema names the same constants.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::condition::Condition;
use crate::criteria::Criteria;
use crate::limits::*;
use crate::serial::{Fields, present};
use crate::shape::choose;

mod declaration;
mod derived;
mod looping;
mod results;
mod schema_words;

pub use declaration::{Declaration, Declarations, RESERVED_NAMES, ReportedVariable, ValueType};
pub(crate) use derived::Derived;
pub use looping::{Count, Loop, LoopKind, index_name, item_name};

/// A workflow: steps that an agent takes one after the other, each with a check of what it produced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workflow {
    /// Where an editor finds the schema of this file. Not used otherwise.
    #[serde(rename = "$schema", default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<str>>,
    /// The name by which agents ask for this workflow: lower-case letters, digits, `-` and `_`, with
    /// at most one dot inside.
    #[schemars(length(min = ID_MIN, max = ID_MAX), regex(pattern = ID_PATTERN))]
    pub id: Box<str>,
    /// The name for people.
    #[schemars(length(min = 1, max = NAME_MAX))]
    pub name: Box<str>,
    /// What this workflow accomplishes, and when to choose it.
    #[schemars(length(min = 1, max = DESCRIPTION_MAX))]
    pub description: Box<str>,
    /// The semantic version of this workflow, such as 1.0.0.
    #[schemars(regex(pattern = VERSION_PATTERN))]
    pub version: Box<str>,
    /// What kind of work it is, such as `development`. `general` where absent.
    #[serde(default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub category: Option<Box<str>>,
    /// The lowest version of workflowlookup that can run this workflow.
    #[serde(default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = VERSION_PATTERN))]
    pub min_server_version: Option<Box<str>>,
    /// What must be in place before the workflow starts.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(inner(length(min = 1)), extend("uniqueItems" = true))]
    pub preconditions: Box<[Box<str>]>,
    /// Questions to settle with the user before the first step.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(inner(length(min = 1)), extend("uniqueItems" = true))]
    pub clarification_prompts: Box<[Box<str>]>,
    /// Advice that holds through all steps.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(inner(length(min = 1)), extend("uniqueItems" = true))]
    pub meta_guidance: Box<[Box<str>]>,
    /// The context variables that conditions, loops, gates and templates use, by name. Steps
    /// report them; a value is checked whenever it is set.
    #[serde(default, skip_serializing_if = "Declarations::is_empty")]
    pub variables: Declarations,
    /// The steps, in order. Ids are unique across the whole tree.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
    /// What is derived from the rest on first use.
    #[serde(skip)]
    pub(crate) derived: Derived,
}

/// One entry of `steps` or of a loop's `body`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Fields<StepFields>")]
pub enum Step {
    Plain(Box<PlainStep>),
    Loop(Box<LoopStep>),
}

/// A step: something that the agent does and whose output is checked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, rename = "Step")]
pub struct PlainStep {
    /// The step's id, unique in the workflow.
    #[schemars(length(min = ID_MIN, max = ID_MAX), regex(pattern = ID_PATTERN))]
    pub id: Box<str>,
    /// The step in a few words.
    #[schemars(length(min = 1, max = TITLE_MAX))]
    pub title: Box<str>,
    /// What the agent shall do. `{{name}}` is filled from the context.
    #[schemars(length(min = 1, max = PROMPT_MAX))]
    pub prompt: Box<str>,
    /// Who the agent is while it works on this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub agent_role: Option<Box<str>>,
    /// Advice for this step, one thought each.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default, inner(length(min = 1)))]
    pub guidance: Box<[Box<str>]>,
    /// Whether the agent should ask for the files it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_for_files: Option<bool>,
    /// Whether a person must confirm: always, never, or where a condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_confirmation: Option<Confirmation>,
    /// The step runs only where this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_condition: Option<Condition>,
    /// What the output is checked for: one check, or a list of which all must pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_criteria: Option<Criteria>,
    /// The declared variables that must be reported with the output; `name?` may be left out.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default, extend("uniqueItems" = true))]
    pub reports: Box<[ReportedVariable]>,
    /// The kind of model that suits this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub model_hint: Option<Box<str>>,
    /// What is wrong with the criteria, if anything: the step runs, but its output cannot be checked.
    #[serde(skip)]
    pub unusable_criteria: Option<Box<UnusableCriteria>>,
}

/// Why a step's output cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableCriteria {
    /// What is wrong, one sentence each.
    pub details: Vec<String>,
    /// Whether all of it is about malformed JSON Schemas.
    pub only_schemas: bool,
}

/// A loop: a body of steps that runs again and again, at most `maxIterations` times.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct LoopStep {
    /// The loop's id, unique in the workflow.
    #[schemars(length(min = ID_MIN, max = ID_MAX), regex(pattern = ID_PATTERN))]
    pub id: Box<str>,
    /// Says that this step is a loop.
    pub r#type: LoopMark,
    /// The loop in a few words.
    #[schemars(length(min = 1, max = TITLE_MAX))]
    pub title: Box<str>,
    /// How the loop runs.
    pub r#loop: Loop,
    /// The steps of one iteration, or the id of the one step that is repeated.
    pub body: Body,
    /// The loop starts only where this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_condition: Option<Condition>,
    /// Whether a person must confirm before the loop's first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_confirmation: Option<Confirmation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LoopMark {
    Loop,
}

/// `true`, `false`, or a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Confirmation {
    Always(bool),
    Where(Condition),
}

/// A loop's body: steps of its own, or the id of a step of the workflow, which then runs only here.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    Named(Box<str>),
    Steps(Vec<Step>),
}

impl Workflow {
    pub fn category(&self) -> &str {
        self.category.as_deref().unwrap_or(DEFAULT_CATEGORY)
    }

    /// Every step of the tree in file order: a loop, then the steps of its own body.
    pub fn each_step<'a>(&'a self, visit: &mut impl FnMut(&'a Step)) {
        fn walk<'a>(steps: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
            for step in steps {
                visit(step);
                walk(step.inline_body(), visit);
            }
        }
        walk(&self.steps, visit);
    }

    /// The step with this id, wherever it stands.
    pub fn step(&self, id: &str) -> Option<&Step> {
        fn find<'a>(steps: &'a [Step], id: &str) -> Option<&'a Step> {
            steps.iter().find_map(|step| {
                if step.id() == id {
                    return Some(step);
                }
                find(step.inline_body(), id)
            })
        }
        let inside = || self.steps.iter().find_map(|step| find(step.inline_body(), id));
        self.top_level(id).map(|index| &self.steps[index]).or_else(inside)
    }
}

impl PlainStep {
    /// Calls `visit` with every text in which slots are filled, and the name of its field.
    pub(crate) fn each_text<'a>(&'a self, visit: &mut dyn FnMut(&'static str, &'a str)) {
        visit("title", &self.title);
        visit("prompt", &self.prompt);
        if let Some(role) = &self.agent_role {
            visit("agentRole", role);
        }
        for text in &self.guidance {
            visit("guidance", text);
        }
    }
}

impl Step {
    pub fn id(&self) -> &str {
        match self {
            Self::Plain(step) => &step.id,
            Self::Loop(step) => &step.id,
        }
    }

    pub fn title(&self) -> &str {
        match self {
            Self::Plain(step) => &step.title,
            Self::Loop(step) => &step.title,
        }
    }

    /// Whether a text of the step can have a reference to the output of another step.
    pub fn may_refer_to_outputs(&self) -> bool {
        let refers = |text: &str| text.contains("{{") && text.contains("steps.");
        match self {
            Self::Plain(step) => {
                let texts = [&step.title, &step.prompt].into_iter().chain(&step.agent_role);
                texts.chain(&step.guidance).any(|text| refers(text))
            }
            Self::Loop(step) => refers(&step.title),
        }
    }

    pub fn run_condition(&self) -> Option<&Condition> {
        match self {
            Self::Plain(step) => step.run_condition.as_ref(),
            Self::Loop(step) => step.run_condition.as_ref(),
        }
    }

    pub fn require_confirmation(&self) -> Option<&Confirmation> {
        match self {
            Self::Plain(step) => step.require_confirmation.as_ref(),
            Self::Loop(step) => step.require_confirmation.as_ref(),
        }
    }

    /// The steps written inside a loop; none for a plain step or a body by name.
    pub fn inline_body(&self) -> &[Step] {
        match self {
            Self::Loop(step) => match &step.body {
                Body::Steps(steps) => steps,
                Body::Named(_) => &[],
            },
            Self::Plain(_) => &[],
        }
    }

    /// The id of the step that a loop repeats, where its body is a name.
    pub fn named_body(&self) -> Option<&str> {
        match self {
            Self::Loop(step) => match &step.body {
                Body::Named(id) => Some(id),
                Body::Steps(_) => None,
            },
            Self::Plain(_) => None,
        }
    }
}

/// A step as it is written: everything that either kind may have, told apart after reading.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepFields {
    id: Box<str>,
    title: Box<str>,
    #[serde(default, deserialize_with = "present")]
    r#type: Option<LoopMark>,
    #[serde(default, deserialize_with = "present")]
    r#loop: Option<Loop>,
    #[serde(default, deserialize_with = "present")]
    body: Option<Body>,
    #[serde(default, deserialize_with = "present")]
    prompt: Option<Box<str>>,
    #[serde(default, deserialize_with = "present")]
    agent_role: Option<Box<str>>,
    #[serde(default, deserialize_with = "present")]
    guidance: Option<Box<[Box<str>]>>,
    #[serde(default, deserialize_with = "present")]
    ask_for_files: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    require_confirmation: Option<Confirmation>,
    #[serde(default, deserialize_with = "present")]
    run_condition: Option<Condition>,
    #[serde(default, deserialize_with = "present")]
    validation_criteria: Option<Criteria>,
    #[serde(default, deserialize_with = "present")]
    reports: Option<Box<[ReportedVariable]>>,
    #[serde(default, deserialize_with = "present")]
    model_hint: Option<Box<str>>,
}

impl TryFrom<Fields<StepFields>> for Step {
    type Error = &'static str;

    fn try_from(Fields(fields): Fields<StepFields>) -> Result<Self, Self::Error> {
        let Some(mark) = fields.r#type else {
            if fields.r#loop.is_some() || fields.body.is_some() {
                return Err("a loop step needs `type`: \"loop\"");
            }
            return Ok(Self::Plain(Box::new(PlainStep {
                id: fields.id,
                title: fields.title,
                prompt: fields.prompt.ok_or("a step needs a `prompt`")?,
                agent_role: fields.agent_role,
                guidance: fields.guidance.unwrap_or_default(),
                ask_for_files: fields.ask_for_files,
                require_confirmation: fields.require_confirmation,
                run_condition: fields.run_condition,
                validation_criteria: fields.validation_criteria,
                reports: fields.reports.unwrap_or_default(),
                model_hint: fields.model_hint,
                unusable_criteria: None,
            })));
        };
        let is_plain = fields.prompt.is_some()
            || fields.agent_role.is_some()
            || fields.guidance.is_some()
            || fields.ask_for_files.is_some()
            || fields.validation_criteria.is_some()
            || fields.reports.is_some()
            || fields.model_hint.is_some();
        if is_plain {
            return Err("a loop step has no field of a plain step");
        }
        Ok(Self::Loop(Box::new(LoopStep {
            id: fields.id,
            r#type: mark,
            title: fields.title,
            r#loop: fields.r#loop.ok_or("a loop step needs a `loop`")?,
            body: fields.body.ok_or("a loop step needs a `body`")?,
            run_condition: fields.run_condition,
            require_confirmation: fields.require_confirmation,
        })))
    }
}

impl JsonSchema for Step {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StepOrLoop".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let looping = generator.subschema_for::<LoopStep>();
        let plain = generator.subschema_for::<PlainStep>();
        // Whoever writes `loop` or `body` means a loop, even where `type` is forgotten.
        let test = json!({"anyOf": [
            {"required": ["type"], "properties": {"type": {"const": "loop"}}},
            {"required": ["loop"]},
            {"required": ["body"]},
        ]});
        choose(test, looping, plain)
    }
}

impl JsonSchema for Confirmation {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Confirmation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let condition = generator.subschema_for::<Condition>();
        choose(json!({"type": "object"}), condition, schemars::json_schema!({"type": "boolean"}))
    }
}

impl JsonSchema for Body {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Body".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let step = generator.subschema_for::<Step>();
        choose(
            json!({"type": "string"}),
            schemars::json_schema!({"type": "string"}),
            schemars::json_schema!({"type": "array", "items": step, "minItems": 1}),
        )
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Body;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a step's id or a list of steps")
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<Body, E> {
                Ok(Body::Named(id.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Body, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(items))
                    .map(Body::Steps)
            }
        }

        deserializer.deserialize_any(Either)
    }
}
