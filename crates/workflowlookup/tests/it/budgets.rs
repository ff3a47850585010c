//! What a hostile definition, or a hostile input for a good one, comes to over the real server: a refusal that names the
//! rule or the limit, while others are served.

use serde_json::{Value, json};

use crate::Place;
use crate::agent::{Agent, advance, refused, structured};

const INPUT_BYTES_MAX: usize = 1024 * 1024;

fn write_workflow(place: &Place, id: &str, steps: &Value) {
    let definition = json!({
        "id": id, "name": id, "description": "Takes long", "version": "1.0.0", "steps": steps,
    });
    place.write(&format!("workflows/{id}.json"), definition.to_string());
}

fn checked_step(criteria: &Value) -> Value {
    json!([{"id": "work", "title": "Work", "prompt": "Work.", "validationCriteria": criteria}])
}

fn validate(workflow: &str, step: &str, output: &str) -> Value {
    json!({"workflowId": workflow, "stepId": step, "output": output})
}

/// 2^60 evaluations of a schema, on a value of a few hundred bytes.
fn exploding_schema() -> (Value, String) {
    let node = json!({"$ref": "#/$defs/node"});
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"oneOf": [
        {"properties": {"child": node, "kind": {"const": 1}}},
        {"properties": {"child": node, "kind": {"const": 2}}},
    ]}}});
    let value = (0..60).fold(json!({}), |inner, _| json!({"child": inner}));
    (json!({"type": "schema", "schema": schema, "message": "A tree"}), value.to_string())
}

#[test]
fn look_ahead_over_a_long_line_is_answered() {
    let place = Place::new();
    let rule =
        json!({"type": "regex", "pattern": "(?=.*Cause)(?=.*Fix).+", "message": "Name both"});
    write_workflow(&place, "look-ahead", &checked_step(&rule));
    let mut agent = Agent::start(&place);
    let output = "x".repeat(INPUT_BYTES_MAX / 4);
    let verdict = agent.call("workflow_validate", &validate("look-ahead", "work", &output));
    assert_eq!(structured(&verdict)["valid"], false);
    let output = format!("{output} Cause and Fix");
    let verdict = agent.call("workflow_validate", &validate("look-ahead", "work", &output));
    assert_eq!(structured(&verdict)["valid"], true);
    agent.end();
}

#[test]
fn exhausted_rule_is_named_and_nothing_recorded() {
    let place = Place::new();
    let (rule, value) = exploding_schema();
    write_workflow(&place, "exploding", &checked_step(&rule));
    let mut agent = Agent::start(&place);
    let result = agent.call("workflow_validate", &validate("exploding", "work", &value));
    let (message, code) = refused(&result);
    assert_eq!(code, -32004, "{message}");
    assert!(message.contains("ule 1 (`schema`) of step `work`"), "{message}");
    // In a session the same is refused, and the session stands where it stood.
    let session = agent.start_session("exploding");
    let result = agent.call("workflow_advance", &advance(&session, 0, "work", &value));
    let (message, code) = refused(&result);
    assert_eq!(code, -32004, "{message}");
    let good = json!({"kind": 1}).to_string();
    let advanced = agent.call("workflow_advance", &advance(&session, 0, "work", &good));
    assert_eq!(structured(&advanced)["accepted"], true);
    agent.end();
}

#[test]
fn definitions_that_refer_to_each_other_twice_are_refused() {
    let place = Place::new();
    let mut definitions = serde_json::Map::new();
    for at in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("d60".to_owned(), json!({"type": "string"}));
    let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    let rule = json!({"type": "schema", "schema": schema, "message": "A text"});
    write_workflow(&place, "doubling", &checked_step(&rule));
    let mut agent = Agent::start(&place);
    let result = agent.call("workflow_validate", &validate("doubling", "work", "{}"));
    assert_eq!(refused(&result).1, -32004);
    agent.end();
}

#[test]
fn loop_over_a_large_context_is_refused() {
    let place = Place::new();
    let never = json!({
        "id": "never", "title": "Never", "prompt": "Never.", "runCondition": {"var": "log", "contains": "now"},
    });
    let condition = json!({"not": {"var": "log", "contains": "done"}});
    write_workflow(
        &place,
        "searching",
        &json!([{
            "id": "each", "type": "loop", "title": "Each", "body": [never],
            "loop": {"type": "while", "condition": condition, "maxIterations": 1000},
        }]),
    );
    let mut agent = Agent::start(&place);
    let next = |bytes: usize| json!({"workflowId": "searching", "completedSteps": [], "context": {"log": "x".repeat(bytes)}});
    let result = agent.call("workflow_next", &next(INPUT_BYTES_MAX - 100));
    let (message, code) = refused(&result);
    assert_eq!(code, -32004, "{message}");
    assert!(message.contains("he condition of step"), "{message}");
    let result = agent.call("workflow_next", &next(INPUT_BYTES_MAX));
    let (message, code) = refused(&result);
    assert_eq!(code, -32602, "{message}");
    assert!(message.contains("1048576"), "{message}");
    agent.end();
}

#[test]
fn many_errors_of_a_bundled_schema_are_told_by_one() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    let items = "{},".repeat(INPUT_BYTES_MAX / 3 - 1);
    let output = format!("[{}]", items.trim_end_matches(','));
    let verdict =
        agent.call("workflow_validate", &validate("handle-incident", "agree-actions", &output));
    let verdict = structured(&verdict);
    assert_eq!(verdict["valid"], false);
    assert_eq!(verdict["suggestions"].as_array().map(Vec::len), Some(2), "{verdict}");
    let output = format!("[{}{{}}]", "{},".repeat(INPUT_BYTES_MAX));
    let result =
        agent.call("workflow_validate", &validate("handle-incident", "agree-actions", &output));
    let (message, code) = refused(&result);
    assert_eq!(code, -32602, "{message}");
    assert!(message.contains("1048576"), "{message}");
    agent.end();
}

#[test]
fn query_of_many_words_is_refused() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    let listed = agent.call("workflow_list", &json!({"query": "e ".repeat(512)}));
    assert!(!structured(&listed)["workflows"].as_array().unwrap().is_empty());
    for arguments in [json!({"query": "e ".repeat(500_000)}), json!({"category": "x".repeat(1025)})]
    {
        let result = agent.call("workflow_list", &arguments);
        let (message, code) = refused(&result);
        assert_eq!(code, -32602, "{message}");
        assert!(message.contains("1024"), "{message}");
    }
    agent.end();
}

/// Calls that take all that a call may are carried out elsewhere, and what comes after them is answered first.
#[test]
fn others_are_served_while_a_call_works() {
    let place = Place::new();
    let rule = json!({"type": "regex", "pattern": "^(a|a)*\\1b", "message": "Slow"});
    write_workflow(&place, "slow", &checked_step(&rule));
    let mut agent = Agent::start(&place);
    // Loaded, and its patterns compiled.
    agent.call("workflow_validate", &validate("slow", "work", "aab"));
    let slow = agent.begin_call("workflow_validate", &validate("slow", "work", &"a".repeat(60)));
    let list = agent.begin_call("workflow_list", &json!({}));
    let (first, _) = agent.answer();
    let (second, result) = agent.answer();
    assert_eq!((first, second), (list, slow));
    assert_eq!(refused(&result).1, -32004);
    agent.end();
}
