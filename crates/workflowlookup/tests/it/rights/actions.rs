//! What somebody may want, one row each: how it is done, and what becomes of it in a word or two.

use serde_json::{Value, json};

use super::house::{Client, House, next};
use crate::agent::{Era, advance, refused};
use crate::http_agent::answer_of;
use crate::http_client::{Connection, Response};

/// What an action is about, which says who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Workflows, which are everybody's.
    Look,
    /// To begin something.
    Begin,
    /// A session, without changing it.
    See,
    /// A list that a session is in, or is not.
    List,
    /// A list of one's own.
    Own,
    Work,
    /// The answer of a client's user.
    Answer,
    Decide,
    Manage,
}

pub(super) struct Action {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) run: fn(&Scene<'_>) -> Came,
}

/// Who wants it, of whom.
pub(super) struct Scene<'a> {
    pub(super) house: &'a House,
    pub(super) who: Option<&'static str>,
    pub(super) client: &'a Client,
    pub(super) owner: &'a Client,
}

/// What became of it.
pub(super) struct Came {
    pub(super) said: String,
    /// The session that it was about.
    pub(super) session: Option<String>,
}

fn action(name: &'static str, kind: Kind, run: fn(&Scene<'_>) -> Came) -> Action {
    Action { name, kind, run }
}

pub(super) fn all() -> Vec<Action> {
    use Kind::{Answer, Begin, Decide, Look, Manage, Own, See, Work};
    vec![
        action("`workflow_list`", Look, |it| it.tool("workflow_list", json!({}))),
        action("`workflow_get`", Look, |it| it.tool("workflow_get", json!({"id": "letter"}))),
        action("`workflow_next`", Look, |it| {
            it.tool("workflow_next", json!({"workflowId": "letter", "completedSteps": []}))
        }),
        action("`workflow_validate`", Look, |it| {
            let arguments = json!({"workflowId": "letter", "stepId": "write-it", "output": "Dear"});
            it.tool("workflow_validate", arguments)
        }),
        action("`workflow_lint`", Look, |it| it.tool("workflow_lint", json!({"definition": "{}"}))),
        action("`workflow_start`", Begin, |it| {
            it.tool("workflow_start", json!({"workflowId": "letter"}))
        }),
        action("`workflow_status` of a session", See, |it| {
            let session = it.owner.begun();
            it.about(&session, |id| it.client.call("workflow_status", &json!({"sessionId": id})))
        }),
        action("`workflow_status`: in the list", Kind::List, |it| {
            let session = it.owner.begun();
            it.listed(&session, &it.client.call("workflow_status", &json!({})))
        }),
        action("`workflow_status`: found by a query", Own, |it| {
            let session = it.owner.begun();
            it.listed(&session, &it.client.call("workflow_status", &json!({"query": "farewell"})))
        }),
        action("`resources/read` of a session", See, |it| {
            let session = it.owner.begun();
            it.about(&session, |id| it.client.ask("resources/read", &json!({"uri": uri(id)})))
        }),
        action("`resources/list`: in it", Kind::List, |it| {
            let session = it.owner.begun();
            it.listed(&session, &it.client.ask("resources/list", &json!({})))
        }),
        action("`completion/complete`: among the ids", Kind::List, |it| {
            let session = it.owner.begun();
            let reference = json!({"type": "ref/resource", "uri": "session://{id}"});
            let argument = json!({"name": "id", "value": session[..6]});
            let params = json!({"ref": reference, "argument": argument});
            it.listed(&session, &it.client.ask("completion/complete", &params))
        }),
        action("hears that a session has changed", Kind::List, hears),
        action("`workflow_advance`", Work, |it| {
            let session = it.owner.start();
            it.about(&session, |id| {
                it.client.call("workflow_advance", &advance(id, 0, "write-it", "Dear Ada"))
            })
        }),
        action("`workflow_rewind`", Work, |it| {
            let session = it.owner.begun();
            it.about(&session, |id| it.client.call("workflow_rewind", &rewind(id, false)))
        }),
        action("`workflow_rewind` with `fork`", Work, |it| {
            let session = it.owner.begun();
            it.about(&session, |id| it.client.call("workflow_rewind", &rewind(id, true)))
        }),
        action("its user confirms, where the client asks", Answer, confirms),
        action("`list_mcp_capabilities`", Begin, |it| it.tool("list_mcp_capabilities", json!({}))),
        action("`describe_mcp`", Begin, |it| it.tool("describe_mcp", json!({"id": "other"}))),
        action("`call_mcp_tool`", Begin, |it| {
            let called = json!({"server": "other", "tool": "workflow_list", "arguments": {}});
            it.tool("call_mcp_tool", called)
        }),
        action("`resources/read` of another server", Begin, |it| {
            let uri = json!({"uri": "mcp+other:workflow-schema://definition"});
            Came { said: said(&it.client.ask("resources/read", &uri)), session: None }
        }),
        action("`POST /sessions/{id}/approve`", Decide, |it| {
            let (session, version) = it.owner.waiting();
            it.about(&session, |id| {
                let path = format!("/sessions/{id}/approve");
                it.client.endpoint("POST", &path, &json!({"version": version, "reason": "fine"}))
            })
        }),
        action("`POST /sessions/{id}/reject`", Decide, |it| {
            let (session, version) = it.owner.waiting();
            it.about(&session, |id| {
                let path = format!("/sessions/{id}/reject");
                it.client.endpoint("POST", &path, &json!({"version": version}))
            })
        }),
        action("`GET /tokens`", Manage, |it| it.endpoint("GET", "/tokens", &Value::Null)),
        action("`POST /tokens`", Manage, |it| {
            let name =
                format!("new-{}", if it.client.era == Era::Modern { "modern" } else { "legacy" });
            it.endpoint("POST", "/tokens", &json!({"name": name, "right": "use", "days": 1}))
        }),
        action("`DELETE /tokens/{name}`", Manage, |it| {
            let made = it.house.place.run(&["token", "new", "spare", "--audit-log", "audit.jsonl"]);
            assert!(made.status == 0 || made.stderr.contains("already"), "{}", made.stderr);
            it.endpoint("DELETE", "/tokens/spare", &Value::Null)
        }),
    ]
}

impl Scene<'_> {
    fn tool(&self, tool: &str, arguments: Value) -> Came {
        Came { said: said(&self.client.call(tool, &arguments)), session: None }
    }

    fn endpoint(&self, method: &str, path: &str, body: &Value) -> Came {
        Came { said: said(&self.client.endpoint(method, path, body)), session: None }
    }

    /// Something about a session. Who does not find it gets what they would get if it were not there.
    fn about(&self, session: &str, ask: impl Fn(&str) -> Response) -> Came {
        let response = ask(session);
        let said = said(&response);
        if ["not found", "404"].contains(&&*said) {
            let absent = "0".repeat(session.len());
            let none = ask(&absent);
            let text = |response: &Response| String::from_utf8(response.body.clone()).unwrap();
            assert_eq!(response.head.status, none.head.status);
            assert_eq!(text(&response), text(&none).replace(&absent, session));
        }
        Came { said, session: Some(session.to_owned()) }
    }

    fn listed(&self, session: &str, response: &Response) -> Came {
        let said = match &*said(response) {
            "yes" if String::from_utf8_lossy(&response.body).contains(session) => "yes".to_owned(),
            "yes" => "no".to_owned(),
            other => other.to_owned(),
        };
        Came { said, session: None }
    }
}

fn uri(session: &str) -> String {
    format!("session://{session}")
}

fn rewind(session: &str, fork: bool) -> Value {
    json!({"sessionId": session, "revision": 1, "toStep": "write-it", "reason": "anew", "fork": fork})
}

/// Whether something changed that it follows, before something else that everybody may hear of.
fn hears(it: &Scene<'_>) -> Came {
    if it.who.is_none() {
        let uris = json!({"notifications": {"resourceSubscriptions": [uri("a")]}, "uri": uri("a")});
        let method = match it.client.era {
            Era::Modern => "subscriptions/listen",
            Era::Legacy => "resources/subscribe",
        };
        return Came { said: said(&it.client.ask(method, &uris)), session: None };
    }
    let session = it.owner.start();
    let everybody = json!(["other", "colleague", "approver", "stranger"]);
    let start = json!({"workflowId": "letter", "sharedWith": everybody});
    let marker = it.owner.told("workflow_start", &start);
    let marker = marker["sessionId"].as_str().unwrap();
    let mut stream = it.client.listen(&[uri(&session), uri(marker)]);
    let said = if heard(it.owner, &mut stream, &session, 0, marker, 0) { "yes" } else { "no" };
    Came { said: said.to_owned(), session: None }
}

/// Has the owner change a session, and says whether that is told on a stream. The other one is told of on it in any case:
/// what changed together is told in any order, but before whatever changed later.
pub(super) fn heard(
    owner: &Client,
    stream: &mut Connection,
    session: &str,
    revision: u64,
    marker: &str,
    marker_revision: u64,
) -> bool {
    change(owner, session, revision);
    let mut is_heard = false;
    for round in 0..2 {
        change(owner, marker, marker_revision + round);
        loop {
            let told = next(stream);
            match told["params"]["uri"].as_str() {
                Some(told) if told == uri(session) => is_heard = true,
                Some(told) if told == uri(marker) => break,
                _ => {}
            }
        }
    }
    is_heard
}

/// Something happens in a session that has not left its first step.
pub(super) fn change(owner: &Client, session: &str, revision: u64) {
    let back =
        json!({"sessionId": session, "revision": revision, "toStep": "write-it", "reason": "anew"});
    owner.told("workflow_rewind", &back);
}

/// A client that asks its user hands in what a person has to confirm, and its user says yes.
fn confirms(it: &Scene<'_>) -> Came {
    let session = it.owner.begun();
    let asking = json!({"elicitation": {}});
    let client = it.house.client_of(it.client.address, it.who, it.client.era, asking);
    let arguments = advance(&session, 1, "send-it", "by post");
    let mut params = json!({"name": "workflow_advance", "arguments": arguments});
    let mut connection = Connection::open(client.address).unwrap();
    let head = connection.begin(&client.written("tools/call", &params)).unwrap();
    let response = if head.is_stream() {
        let asked = next(&mut connection);
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert_eq!(client.approve(&asked["id"]).head.status, 202);
        let body = next(&mut connection).to_string().into_bytes();
        Response { head, body: [b"data: ".as_slice(), &body].concat() }
    } else {
        Response { head, body: connection.body().unwrap() }
    };
    let mut came = said(&response);
    if came == "asked" {
        let result = answer_of(&response)["result"].clone();
        let approve = json!({"action": "accept", "content": {"decision": "approve"}});
        params["inputResponses"] = json!({"gate": approve});
        params["requestState"] = result["requestState"].clone();
        came = said(&client.ask("tools/call", &params));
    }
    Came { said: came, session: Some(session) }
}

/// What came of it, in a word.
pub(super) fn said(response: &Response) -> String {
    match response.head.status {
        200 => {}
        201 | 204 => return "yes".to_owned(),
        status => return status.to_string(),
    }
    let answer = answer_of(response);
    let (error, result) = (&answer["error"], &answer["result"]);
    if !error.is_null() {
        let text = error.to_string();
        if error["code"] == -32007 {
            assert!(text.contains("the right `use`"), "{text}");
            return "needs `use`".to_owned();
        }
        let is_absent = error["code"] == -32002 || text.contains("there is no resource");
        assert!(is_absent, "{text}");
        return "not found".to_owned();
    }
    if result["isError"] == true {
        return match refused(result) {
            (text, -32005) if text.starts_with("There is no session") => "not found".to_owned(),
            (text, -32007) => {
                assert!(text.contains("the right `use`"), "{text}");
                "needs `use`".to_owned()
            }
            other => panic!("{other:?}"),
        };
    }
    if result["resultType"] == "input_required" {
        return "asked".to_owned();
    }
    if result["structuredContent"]["waiting"].is_object() {
        return "it waits".to_owned();
    }
    "yes".to_owned()
}
