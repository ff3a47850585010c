//! `execute_mcp_code`: a program that calls tools of other servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp::Outcome;
use mcp::content::About;
use orchestrator::Error;
use sandbox::{File, Program, UNNAMED};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::tool::{CALL_BYTES_MAX, handle};
use super::{Tool, ToolCall, bad, bounded};
use crate::error::Refusal;
use crate::server::upstreams::code::Ready;
use crate::server::upstreams::{Request, Upstreams, Work, refused};

const NAME: &str = "execute_mcp_code";

pub(super) const TOOL: Tool = Tool {
    arguments_bytes_max: Some(CALL_BYTES_MAX),
    ..Tool::for_upstreams(NAME, about, |it| handle(call(it)))
};

/// So many servers can be named.
const SERVERS_MAX: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    code: Option<String>,
    files: Option<BTreeMap<String, String>>,
    entrypoint: Option<String>,
    language: Option<Language>,
    allowed_mcp_ids: Vec<String>,
    #[serde(default, deserialize_with = "bounded")]
    input: Option<Box<RawValue>>,
    max_runtime_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    TypeScript,
    JavaScript,
}

fn about() -> About {
    About {
        title: "Run a program that calls tools",
        description: "Runs a TypeScript or JavaScript program in a sandbox: many calls and only what you return comes back. \
            `import * as github from \"mcp-clients/github\"` has an async function for each tool of a server \
            (describe_mcp with detail \"types\" shows them); each takes one object, returns the tool's data and throws where \
            the tool fails. `import * as workflows from \"workflowlookup\"` has workflow_list, workflow_status and others that \
            only look. Write `export async function main(input) { … }` and return JSON. No files, no network. The answer has \
            result, logs, calls, and error (kind, message, line) where it failed.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The program, in one file"},
                "files": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Or several, by name; they import each other as \"./name\"",
                },
                "entrypoint": {"type": "string", "description": "Which of files is run"},
                "language": {"type": "string", "enum": ["typescript", "javascript"]},
                "allowedMcpIds": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The servers that it may import",
                },
                "input": {"description": "What main is called with"},
                "maxRuntimeMs": {"type": "integer", "minimum": 1, "description": "Usually 10000, and no more where the server keeps to that"},
            },
            "required": ["allowedMcpIds"],
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true}),
        examples: None,
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, upstreams, raw, caller, who, context, .. } = call;
    let ready = match arguments.ready(&upstreams)? {
        Ok(ready) => ready,
        Err(outcome) => return Ok(outcome),
    };
    let arguments = serde_json::from_str(raw.get()).unwrap_or_default();
    let request = Request {
        app,
        name: NAME,
        work: Work::Program { ready: Box::new(ready), arguments },
        raw,
        caller,
        who,
    };
    Ok(upstreams.call(request, &context).await)
}

impl Arguments {
    /// What is to be run; or the answer where that cannot be.
    fn ready(self, upstreams: &Arc<Upstreams>) -> Result<Result<Ready, Outcome>, Refusal> {
        if self.allowed_mcp_ids.len() > SERVERS_MAX {
            return Err(bad(format!("`allowedMcpIds` has more than {SERVERS_MAX} ids")));
        }
        let registry = upstreams.registry();
        for id in &self.allowed_mcp_ids {
            if registry.get(id).is_none() {
                return Ok(Err(refused(&Error::no_server(id, &registry), registry.masks())));
            }
        }
        let mut limits = upstreams.code().limits;
        if let Some(ms) = self.max_runtime_ms {
            let time = Duration::from_millis(ms);
            if time.is_zero() || time > limits.time {
                let most = limits.time.as_millis();
                return Err(bad(format!("`maxRuntimeMs` is from 1 to {most} here, not {ms}")));
            }
            limits.time = time;
        }
        let allowed = self.allowed_mcp_ids.clone();
        let program = self.program()?;
        program.check().map_err(bad)?;
        Ok(Ok(Ready { program, limits, allowed }))
    }

    fn program(self) -> Result<Program, Refusal> {
        let Self { code, files, entrypoint, language, input, .. } = self;
        let is_plain = language == Some(Language::JavaScript);
        let file = |name: String, text: String| {
            let is_plain = is_plain || name.ends_with(".js") || name.ends_with(".mjs");
            File { name, text, is_plain }
        };
        match (code, files) {
            (Some(_), Some(_)) => {
                Err(bad("there are both `code` and `files`; give one".to_owned()))
            }
            (None, None) => Err(bad("there is neither `code` nor `files`".to_owned())),
            (Some(_), None) if entrypoint.is_some() => Err(bad(
                "`entrypoint` belongs to `files`; with `code` there is one file".to_owned(),
            )),
            (Some(code), None) => {
                let code = unfenced(code);
                let name = if is_plain { "program.js" } else { UNNAMED };
                let files = vec![file(name.to_owned(), code)];
                Ok(Program { files, entrypoint: name.to_owned(), input })
            }
            (None, Some(files)) => {
                let only = if files.len() == 1 { files.keys().next().cloned() } else { None };
                let Some(entrypoint) = entrypoint.or(only) else {
                    return Err(bad("`entrypoint` is missing: which of `files` is run".to_owned()));
                };
                let files = files.into_iter().map(|(name, text)| file(name, text)).collect();
                Ok(Program { files, entrypoint, input })
            }
        }
    }
}

/// A program that comes in a Markdown fence, as agents write them, without it. Its lines stay where they are.
fn unfenced(code: String) -> String {
    const FENCE: &str = "```";
    let Some((first, rest)) = code.trim_start().split_once('\n') else { return code };
    let Some((program, after)) = rest.rsplit_once(FENCE) else { return code };
    if !first.starts_with(FENCE) || !after.trim().is_empty() {
        return code;
    }
    let before = code.len() - code.trim_start().len();
    format!("{}\n{program}", &code[..before])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_taken_away() {
        let plain = |code: &str| unfenced(code.to_owned());
        assert_eq!(plain("```ts\n6 * 7\n```\n"), "\n6 * 7\n");
        assert_eq!(plain("\n```\nconst a = `x`;\n```"), "\n\nconst a = `x`;\n");
        for other in ["6 * 7", "`a`\n`b`", "```ts\n6", "f(```)\n```", ""] {
            assert_eq!(plain(other), other);
        }
    }
}
