//! Tools whose descriptions are not true, or not even possible.

use serde_json::{Value, json};

/// Two that are much too large.
pub(crate) fn large() -> Vec<Value> {
    let fields = (0..50_000).map(|number| (format!("f{number}"), json!(number)));
    let mut wide = serde_json::Map::from_iter(fields);
    wide.insert("name".to_owned(), json!("wide"));
    let large = json!({"name": "large", "description": "x".repeat(50 * 1024 * 1024)});
    vec![large, Value::Object(wide), json!({"name": "echo", "inputSchema": {"type": "object"}})]
}

/// In the place of a list of tools.
pub(crate) fn tools() -> Vec<Value> {
    let plain = || json!({"type": "object"});
    let takes = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let gives = |name: &str, schema: Value| json!({"name": name, "inputSchema": plain(), "outputSchema": schema});
    vec![
        // Nothing that could be called.
        json!(null),
        json!("echo"),
        json!({"description": "has no name"}),
        json!({"name": 5, "inputSchema": plain()}),
        json!({"name": "", "inputSchema": plain()}),
        json!({"name": "x".repeat(10_000), "inputSchema": plain()}),
        json!({"name": "\u{1b}[2J", "inputSchema": plain()}),
        // What can be called, with things about it that are not what they should be.
        json!({"name": "echo", "title": [], "description": 7, "annotations": "none", "icons": 1, "_meta": 0}),
        takes("echo", plain()),
        takes("in_text", json!("an object, please")),
        takes("in_broken", json!({"type": "objekt", "properties": 17, "required": "all"})),
        takes("in_remote", json!({"$ref": "http://127.0.0.1:9/schema.json"})),
        takes("in_file", json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}})),
        takes("in_itself", json!({"$ref": "#"})),
        takes("in_for_ever", doubling()),
        takes(
            "in_pattern",
            json!({"properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}),
        ),
        takes("in_deep", deep()),
        takes("in_large", json!({"type": "object", "description": "x".repeat(512 * 1024)})),
        gives("out_broken", json!({"type": "objekt"})),
        gives("out_remote", json!({"$ref": "http://127.0.0.1:9/schema.json"})),
        gives("out_for_ever", doubling()),
        gives(
            "lies",
            json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}),
        ),
        gives("silent", plain()),
    ]
}

/// Every step down is taken twice: 2⁴⁰ looks at the same value.
fn doubling() -> Value {
    let mut steps = serde_json::Map::new();
    for step in 0..40 {
        let next = json!({"$ref": format!("#/$defs/s{}", step + 1)});
        steps.insert(format!("s{step}"), json!({"allOf": [next, next]}));
    }
    steps.insert("s40".to_owned(), json!({"type": "object"}));
    json!({"$ref": "#/$defs/s0", "$defs": steps})
}

fn deep() -> Value {
    (0..100).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}))
}
