//! What the protocol's library must be told, in its own types. Servers are sloppy: what it does not strictly need is made up
//! where it is missing.

use rmcp::model::{
    CustomRequest, Implementation, InitializeResult, JsonRpcNotification, ListToolsResult,
    PingRequest, ProtocolVersion, RequestId, ServerCapabilities, ServerJsonRpcMessage,
    ServerNotification, ServerRequest, ServerResult, SubscriptionsListenResult, Tool,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use tool_schema::shallow;
use tool_schema::tool::TOOLS_MAX;

/// So much of a text is shown in a log.
const SHOWN_BYTES_MAX: usize = 500;
/// So much of a message's beginning or end is looked at for an id.
const GUESSED_BYTES: usize = 4096;

/// The answer to `initialize`.
pub(super) fn initialized(result: &RawValue) -> Result<InitializeResult, String> {
    if let Ok(result) = serde_json::from_str::<InitializeResult>(result.get()) {
        return Ok(result);
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields {
        protocol_version: ProtocolVersion,
        #[serde(default)]
        capabilities: Value,
        #[serde(default)]
        server_info: Value,
        #[serde(default)]
        instructions: Value,
    }
    let fields: Fields = serde_json::from_str(result.get())
        .map_err(|_| "its answer to `initialize` names no `protocolVersion`".to_owned())?;
    let text =
        |field: &str| fields.server_info.get(field).and_then(Value::as_str).unwrap_or_default();
    let implementation = Implementation::new(text("name"), text("version"));
    let capabilities = read::<ServerCapabilities>(fields.capabilities).unwrap_or_default();
    let mut result = InitializeResult::new(capabilities)
        .with_protocol_version(fields.protocol_version)
        .with_server_info(implementation);
    if let Value::String(instructions) = fields.instructions {
        result = result.with_instructions(instructions);
    }
    Ok(result)
}

/// The end of a subscription.
pub(super) fn listened(result: &RawValue) -> Result<ServerResult, String> {
    serde_json::from_str::<SubscriptionsListenResult>(result.get())
        .map(ServerResult::SubscriptionsListenResult)
        .map_err(|error| format!("its answer to `subscriptions/listen` cannot be read: {error}"))
}

/// The library sends some arguments as headers too, and learns from here which.
pub(super) fn listed_tools(result: &RawValue) -> ServerResult {
    #[derive(Deserialize)]
    struct Page<'p> {
        #[serde(borrow, default)]
        tools: Option<&'p RawValue>,
    }
    // Few servers want that.
    if !result.get().contains("x-mcp-header") {
        return ServerResult::ListToolsResult(ListToolsResult::default());
    }
    let page = serde_json::from_str::<Page<'_>>(result.get()).ok().and_then(|page| page.tools);
    let Some(page) = page.and_then(|tools| shallow::items(tools.get(), TOOLS_MAX)) else {
        return ServerResult::empty(());
    };
    let annotated = page.items.into_iter().filter(|tool| tool.get().contains("x-mcp-header"));
    let tools: Vec<Tool> =
        annotated.filter_map(|tool| serde_json::from_str(tool.get()).ok()).collect();
    ServerResult::ListToolsResult(ListToolsResult::with_all_items(tools))
}

/// What the upstream wants.
pub(super) fn request(
    id: RequestId,
    method: &str,
    params: Option<&RawValue>,
) -> ServerJsonRpcMessage {
    let request = if method == "ping" {
        ServerRequest::PingRequest(PingRequest {
            method: Default::default(),
            extensions: Default::default(),
        })
    } else {
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        ServerRequest::CustomRequest(CustomRequest::new(method, params))
    };
    ServerJsonRpcMessage::request(request, id)
}

/// What the upstream tells, where the library keeps track of it.
pub(super) fn notification(
    method: &str,
    params: Option<&RawValue>,
) -> Option<ServerJsonRpcMessage> {
    let params = params.map(|params| serde_json::from_str::<Value>(params.get()));
    let params = params.transpose().ok()?.unwrap_or_default();
    let notification = serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params});
    let notification: JsonRpcNotification<ServerNotification> = read(notification)?;
    Some(ServerJsonRpcMessage::Notification(notification))
}

/// The id in a message that is too long to be read: the first one that stands in this part of it.
pub(super) fn guess_id(part: &[u8]) -> Option<RequestId> {
    const KEY: &[u8] = b"\"id\"";
    let part = &part[..part.len().min(GUESSED_BYTES)];
    let at = part.windows(KEY.len()).position(|window| window == KEY)?;
    let rest = std::str::from_utf8(&part[at + KEY.len()..]);
    let rest = rest.unwrap_or_else(|error| {
        std::str::from_utf8(&part[at + KEY.len()..][..error.valid_up_to()]).unwrap_or_default()
    });
    let digits = rest.trim_start().strip_prefix(':')?.trim_start().trim_start_matches('"');
    let digits = digits.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok().map(RequestId::Number)
}

pub(super) fn shown(params: Option<&RawValue>) -> String {
    params.map(|params| cut(params.get())).unwrap_or_default()
}

pub(super) fn cut(text: &str) -> String {
    untrusted_text::cut(text, SHOWN_BYTES_MAX)
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_sloppy_handshake_is_taken() {
        let good = initialized(&raw(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}"#,
        ));
        assert_eq!(good.unwrap().server_info.name, "a");
        let sloppy = initialized(&raw(
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":5},"serverInfo":{"name":"b"},"instructions":"x"}"#,
        ));
        let sloppy = sloppy.unwrap();
        assert_eq!(
            (sloppy.server_info.name.as_str(), sloppy.instructions.as_deref()),
            ("b", Some("x"))
        );
        assert!(initialized(&raw("{}")).is_err());
        assert!(initialized(&raw("[]")).is_err());
    }

    #[test]
    fn ids_are_found_in_pieces_of_messages() {
        for (part, id) in [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"te"#, Some(17)),
            (r#"{"jsonrpc":"2.0", "id" : "5" ,"#, Some(5)),
            (r#"aaaaaaaa"}]},"id":3}"#, Some(3)),
            (r#"{"id":"#, None),
            (r#"{"id":x}"#, None),
            ("nothing", None),
        ] {
            assert_eq!(guess_id(part.as_bytes()), id.map(RequestId::Number), "{part}");
        }
    }
}
