//! `call_mcp_tool`: one call of a tool of another server.

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::tool::{CALL_BYTES_MAX, handle};
use super::{LogDetails, Tool, ToolCall, bounded, server_schema};
use crate::error::Refusal;
use crate::server::upstreams::{CALL, Request, Target, Work};

pub(super) const TOOL: Tool = Tool {
    arguments_bytes_max: Some(CALL_BYTES_MAX),
    log_details: LogDetails::UpstreamInArguments,
    ..Tool::for_upstreams(CALL, about, |it| handle(call(it)))
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    server: String,
    tool: String,
    #[serde(default, deserialize_with = "bounded")]
    arguments: Option<Map<String, Value>>,
}

fn about() -> About {
    About {
        title: "Call a tool of another server",
        description: "Calls a tool of another MCP server and answers with its result. The arguments are checked first; \
            describe_mcp with detail \"schema\" shows them. Some calls your user has to confirm.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "server": server_schema(),
                "tool": {"type": "string"},
                "arguments": {"type": "object", "additionalProperties": true},
            },
            "required": ["server", "tool"],
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true}),
        examples: None,
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let Arguments { server, tool, arguments } = call.arguments()?;
    let target = Target { server, tool, arguments: arguments.unwrap_or_default() };
    let ToolCall { app, upstreams, raw, caller, who, context, .. } = call;
    let request = Request { app, name: CALL, work: Work::Call(target), raw, caller, who };
    Ok(upstreams.call(request, &context).await)
}
