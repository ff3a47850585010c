//! Holds transcripts against schemas: the official ones of each revision, and those that our own tools declare.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::Said;

/// Names the directory with a `REVISION.json` for each revision. It is not part of this repository.
const DIRECTORY: &str = "WORKFLOWLOOKUP_MCP_SCHEMAS";

/// Methods of the product's first protocol. No revision knows them, so no schema is asked. It has two
/// liberties besides: `params` may be null, and `initialize` needs no `clientInfo`.
const DIALECT: [&str; 5] =
    ["workflow_list", "workflow_get", "workflow_next", "workflow_validate", "shutdown"];

const LATEST: &str = "2026-07-28";

/// What the official schemas call a request's method: `…Request` and `…Result`.
fn definition_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "Initialize",
        "ping" => "Ping",
        "tools/list" => "ListTools",
        "tools/call" => "CallTool",
        "resources/list" => "ListResources",
        "resources/templates/list" => "ListResourceTemplates",
        "resources/read" => "ReadResource",
        "resources/subscribe" => "Subscribe",
        "resources/unsubscribe" => "Unsubscribe",
        "prompts/list" => "ListPrompts",
        "prompts/get" => "GetPrompt",
        "completion/complete" => "Complete",
        "server/discover" => "Discover",
        "subscriptions/listen" => "SubscriptionsListen",
        "notifications/initialized" => "Initialized",
        "notifications/cancelled" => "Cancelled",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledged",
        "notifications/resources/list_changed" => "ResourceListChanged",
        "notifications/resources/updated" => "ResourceUpdated",
        "notifications/prompts/list_changed" => "PromptListChanged",
        _ => return None,
    })
}

/// Checks what went over the wire against the official schemas; returns what they find wrong.
pub(super) fn against_official_schemas(wire: &[Said]) -> String {
    let mut schemas = Schemas::default();
    let mut revision = "2024-11-05".to_owned();
    // Requests by their ids, with the revision they were made in.
    let mut asked: HashMap<String, (Value, String)> = HashMap::new();
    // What we asked, by id.
    let mut questions = Vec::new();
    for said in wire {
        let (message, is_ours) = match said {
            Said::ToServer(message) => (message, false),
            Said::ToClient(message) => (message, true),
        };
        let members = message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice);
        for message in members {
            let method = message["method"].as_str();
            if !is_ours && let Some(result) = message.get("result") {
                if !questions.contains(&message["id"].to_string()) {
                    continue;
                }
                schemas.check(&revision, "ElicitResult", result);
                schemas.check(&revision, "JSONRPCMessage", message);
                continue;
            }
            if !is_ours {
                let meta = &message["params"]["_meta"];
                let is_modern = meta.get("io.modelcontextprotocol/protocolVersion").is_some()
                    || method.is_some_and(|method| method == "server/discover");
                let revision = if is_modern { LATEST.to_owned() } else { revision.clone() };
                if message.get("id").is_some() {
                    // Judged once its answer shows whether it was meant to be a good one.
                    asked.insert(message["id"].to_string(), (message.clone(), revision));
                } else if let Some(name) = method.and_then(definition_of) {
                    schemas.check(&revision, &format!("{name}Notification"), message);
                }
                continue;
            }
            if method == Some("elicitation/create") {
                questions.push(message["id"].to_string());
                schemas.check(&revision, "ElicitRequest", message);
                schemas.check(&revision, "JSONRPCMessage", message);
                continue;
            }
            if let Some(method) = method {
                let name = definition_of(method).unwrap_or("a notification that nobody knows: ");
                let revision =
                    if method.contains("subscriptions") { LATEST } else { revision.as_str() };
                schemas.check(revision, &format!("{name}Notification"), message);
                schemas.check(revision, "JSONRPCMessage", message);
                continue;
            }
            let Some((request, mut made_in)) = asked.remove(&message["id"].to_string()) else {
                match message.get("id") {
                    // A message whose id could not be read is answered without one over HTTP, as the latest
                    // schema has it,
                    None => schemas.check(LATEST, "JSONRPCErrorResponse", message),
                    // and with null over stdio, as the first protocol has it and no schema allows.
                    Some(Value::Null) => {}
                    Some(_) => writeln!(schemas.wrong, "nobody asked: {message}").unwrap(),
                }
                continue;
            };
            let method = request["method"].as_str().unwrap_or_default();
            if DIALECT.contains(&method) && message.get("error").is_none() {
                continue;
            }
            if method == "initialize" && message.get("result").is_some() {
                message["result"]["protocolVersion"].as_str().unwrap().clone_into(&mut revision);
                made_in.clone_from(&revision);
            }
            schemas.check(&made_in, "JSONRPCMessage", message);
            if let Some(result) = message.get("result") {
                let name = definition_of(method).unwrap_or("a method that nobody knows: ");
                let is_free = request.get("params").is_some_and(|params| {
                    params.is_null() || name == "Initialize" && params.get("clientInfo").is_none()
                });
                if !is_free {
                    schemas.check(&made_in, &format!("{name}Request"), &request);
                    schemas.check(&made_in, "JSONRPCMessage", &request);
                }
                let is_empty = matches!(name, "Ping" | "Subscribe" | "Unsubscribe");
                let name = if is_empty { "Empty" } else { name };
                let asks = result["resultType"] == "input_required";
                let name = if asks { "InputRequired" } else { name };
                schemas.check(&made_in, &format!("{name}Result"), result);
            }
        }
    }
    schemas.wrong
}

/// Holds what tools answered against what `tools/list` says of it, in the same transcript; on the first
/// revision that goes for the tools as methods too.
pub(super) fn against_output_schemas(wire: &[Said]) -> String {
    let mut asked = HashMap::new();
    let mut schemas: HashMap<String, jsonschema::Validator> = HashMap::new();
    let mut wrong = String::new();
    for said in wire {
        let message = match said {
            Said::ToServer(message) => {
                asked.insert(message["id"].to_string(), message);
                continue;
            }
            Said::ToClient(message) => message,
        };
        let Some((request, result)) =
            asked.get(&message["id"].to_string()).copied().zip(message.get("result"))
        else {
            continue;
        };
        let method = request["method"].as_str().unwrap_or_default();
        for tool in result["tools"].as_array().into_iter().flatten() {
            if let Some(schema) = tool.get("outputSchema") {
                let name = tool["name"].as_str().unwrap().to_owned();
                schemas.insert(name, jsonschema::validator_for(schema).unwrap());
            }
        }
        let (name, output) = match method {
            "tools/call" => (request["params"]["name"].as_str(), result.get("structuredContent")),
            _ => (Some(method), Some(result)),
        };
        let schema = name.and_then(|name| schemas.get(name));
        let Some((schema, output)) = schema.zip(output) else { continue };
        for error in schema.iter_errors(output) {
            writeln!(wrong, "output of {method}: {error}\n  in {output}").unwrap();
        }
    }
    wrong
}

/// The official schemas, each definition compiled when it is first asked for.
#[derive(Default)]
struct Schemas {
    validators: HashMap<(String, String), jsonschema::Validator>,
    wrong: String,
}

impl Schemas {
    fn directory() -> PathBuf {
        let Some(directory) = std::env::var_os(DIRECTORY) else {
            panic!(
                "`{DIRECTORY}` names the directory with the official schemas; see CONTRIBUTING.md"
            );
        };
        PathBuf::from(directory)
    }

    fn check(&mut self, revision: &str, definition: &str, value: &Value) {
        let key = (revision.to_owned(), definition.to_owned());
        let validator = self.validators.entry(key).or_insert_with(|| {
            let path = Self::directory().join(format!("{revision}.json"));
            let text =
                fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut schema: Value = serde_json::from_slice(&text).unwrap();
            let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
            let known = schema[place].get(definition).is_some();
            assert!(known, "revision {revision} has no {definition}: {value}");
            schema["allOf"] = json!([{"$ref": format!("#/{place}/{definition}")}]);
            jsonschema::validator_for(&schema).unwrap()
        });
        for error in validator.iter_errors(value) {
            let place = error.instance_path().to_string();
            writeln!(self.wrong, "{revision} {definition} `{place}`: {error}\n  in {value}")
                .unwrap();
        }
    }
}
