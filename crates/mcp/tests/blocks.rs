//! Everything that tools, prompts and resources can say, in the words of each revision. Messages are held against the
//! official schemas where those are at hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads the official schemas")]
#![allow(dead_code, reason = "tests share what they need, and not all need all of it")]

#[path = "support/peer.rs"]
mod peer;
#[path = "support/schemas.rs"]
mod schemas;

use mcp::content::{
    About, Block, Held, Message, Resource, ResourceContents, ResourceTemplate, Role, Tool,
};
use mcp::{Outcome, Server};
use peer::{Client, REVISIONS, messages};
use schemas::{check_messages_of, valid};
use serde_json::{Value, json};

fn server() -> Server {
    let about = || About {
        title: "Says",
        description: "Says something",
        input_schema: json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$anchor": "a"}}}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    let tool = Tool { name: "says", is_method: false, about };
    Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool])
}

fn client(revision: &'static str) -> Client {
    Client::new(server(), revision, json!({}))
}

fn contents(held: Held) -> ResourceContents {
    ResourceContents { uri: "test://a".to_owned(), mime_type: "a/b", held }
}

fn blocks() -> Vec<Block> {
    let link = Resource {
        uri: "test://b".to_owned(),
        name: "b".to_owned(),
        title: "The other".to_owned(),
        description: "Somewhere else".to_owned(),
        mime_type: "a/b",
    };
    vec![
        Block::text("a \"text\""),
        Block::Image { bytes: vec![1, 2, 255], mime_type: "image/png" },
        Block::Audio { bytes: vec![7], mime_type: "audio/wav" },
        Block::Embedded(contents(Held::Text("held".to_owned()))),
        Block::Embedded(contents(Held::Bytes(vec![0]))),
        Block::Link(link),
    ]
}

/// How a revision spells them.
fn spelled(revision: &str) -> Vec<Value> {
    let audio = match revision {
        "2024-11-05" => {
            json!({"type": "text", "text": "(a sound of type audio/wav, for newer clients)"})
        }
        _ => json!({"type": "audio", "data": "Bw==", "mimeType": "audio/wav"}),
    };
    let link = match revision {
        "2024-11-05" | "2025-03-26" => json!({"type": "text", "text": "The other: test://b"}),
        _ => json!({
            "type": "resource_link", "uri": "test://b", "name": "b", "title": "The other",
            "description": "Somewhere else", "mimeType": "a/b",
        }),
    };
    let resource = |name: &str, held: &str| {
        let contents = json!({"uri": "test://a", "mimeType": "a/b", name: held});
        json!({"type": "resource", "resource": contents})
    };
    vec![
        json!({"type": "text", "text": "a \"text\""}),
        json!({"type": "image", "data": "AQL/", "mimeType": "image/png"}),
        audio,
        resource("text", "held"),
        resource("blob", "AA=="),
        link,
    ]
}

#[test]
fn a_tool_can_say_anything() {
    for revision in REVISIONS {
        let mut client = client(revision);
        let structured = Some(json!({"a": 1}));
        let outcome = Outcome::Blocks { blocks: blocks(), structured, is_error: false };
        let reply = client.outcome("tools/call", json!({"name": "says"}), outcome);
        let result = &reply["result"];
        assert_eq!(result["content"], json!(spelled(revision)), "{revision}");
        assert_eq!(result.get("isError"), None);
        let has_structured = !["2024-11-05", "2025-03-26"].contains(&revision);
        let expected = has_structured.then(|| json!({"a": 1}));
        assert_eq!(result.get("structuredContent"), expected.as_ref(), "{revision}");
        assert_eq!(result.get("resultType").is_some(), client.is_modern());
        valid(revision, "CallToolResult", result);
    }
}

#[test]
fn an_error_of_a_tool_is_a_result_that_says_so() {
    for revision in REVISIONS {
        let blocks = vec![Block::text("it went wrong")];
        let structured = Some(json!({"never": "shown"}));
        let outcome = Outcome::Blocks { blocks, structured, is_error: true };
        let reply = client(revision).outcome("tools/call", json!({"name": "says"}), outcome);
        let result = &reply["result"];
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "it went wrong");
        // Clients hold it against the tool's schema even then.
        assert_eq!(result.get("structuredContent"), None);
        valid(revision, "CallToolResult", result);
    }
}

#[test]
fn a_prompt_can_say_anything_in_several_turns() {
    for revision in REVISIONS {
        let mut said: Vec<Message> = blocks().into_iter().map(Message::user).collect();
        said.push(Message { role: Role::Assistant, block: Block::text("I see") });
        let outcome = Outcome::Prompt { description: "A talk".to_owned(), messages: said };
        let reply = client(revision).outcome("prompts/get", json!({"name": "talk"}), outcome);
        let mut expected: Vec<Value> = spelled(revision)
            .into_iter()
            .map(|block| json!({"role": "user", "content": block}))
            .collect();
        let last = json!({"type": "text", "text": "I see"});
        expected.push(json!({"role": "assistant", "content": last}));
        assert_eq!(reply["result"]["messages"], json!(expected), "{revision}");
        valid(revision, "GetPromptResult", &reply["result"]);
    }
}

#[test]
fn a_resource_holds_a_text_or_bytes() {
    for revision in REVISIONS {
        for (held, name, value) in [
            (Held::Text("held".to_owned()), "text", "held"),
            (Held::Bytes(vec![0, 1]), "blob", "AAE="),
        ] {
            let outcome = Outcome::Resource { contents: contents(held), is_live: true };
            let reply =
                client(revision).outcome("resources/read", json!({"uri": "test://a"}), outcome);
            let expected = json!([{"uri": "test://a", "mimeType": "a/b", name: value}]);
            assert_eq!(reply["result"]["contents"], expected, "{revision}");
            valid(revision, "ReadResourceResult", &reply["result"]);
        }
    }
}

#[test]
fn a_resource_that_is_not_there_is_named() {
    for revision in REVISIONS {
        let mut client = client(revision);
        let outcome = Outcome::NoResource { uri: "test://a".to_owned() };
        let reply = client.outcome("resources/read", json!({"uri": "test://a"}), outcome);
        let code = if client.is_modern() { -32602 } else { -32002 };
        assert_eq!(reply["error"]["code"], code, "{revision}");
        assert_eq!(reply["error"]["data"]["uri"], "test://a");
    }
}

#[test]
fn a_template_and_a_tool_are_listed_as_they_are_described() {
    for revision in REVISIONS {
        let mut client = client(revision);
        let template = ResourceTemplate {
            uri_template: "test://{id}".to_owned(),
            name: "t".to_owned(),
            title: "T".to_owned(),
            description: "By id".to_owned(),
            mime_type: "a/b",
        };
        let outcome = Outcome::Templates(vec![template]);
        let reply = client.outcome("resources/templates/list", json!({}), outcome);
        valid(revision, "ListResourceTemplatesResult", &reply["result"]);
        let listed = messages(client.request("tools/list", json!({}))).remove(0);
        let tool = &listed["result"]["tools"][0];
        assert_eq!(tool.get("outputSchema"), None, "a tool need not say what a machine gets");
        assert_eq!(tool["inputSchema"]["$defs"]["a"]["$anchor"], "a", "a schema is left as it is");
        valid(revision, "ListToolsResult", &listed["result"]);
    }
}

#[test]
#[ignore = "needs the official MCP schemas; see CONTRIBUTING.md"]
fn messages_match_official_schemas() {
    check_messages_of(&[
        a_tool_can_say_anything,
        an_error_of_a_tool_is_a_result_that_says_so,
        a_prompt_can_say_anything_in_several_turns,
        a_resource_holds_a_text_or_bytes,
        a_template_and_a_tool_are_listed_as_they_are_described,
    ]);
}
