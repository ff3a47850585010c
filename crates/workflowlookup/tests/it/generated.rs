//! Documents that are made from the product itself. `cargo xtask generate` writes them anew.

use serde_json::{Value, json};

use super::*;

pub(super) fn assert_current(path: &str, text: &str) {
    let path = repository().join(path);
    if std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let current = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(current, text, "{} is stale: run `cargo xtask generate`", path.display());
}

#[test]
fn generated_command_line_page() {
    let place = Place::new();
    let help = |arguments: &[&str]| place.run(arguments).stdout;
    let main = help(&["--help"]);
    let commands = commands_in(&main);
    assert!(commands.len() >= 9, "{commands:?}");
    let mut page = format!(
        "# The command line\n\nMade from `--help`.\n\nThe exit status is 0 where all is well, 1 where \
         something was refused, found wrong or is not valid, and 2 where we failed.\n\n```text\n{main}```\n"
    );
    for command in commands {
        let help = help(&[command, "--help"]);
        assert!(help.contains("Example"), "{command} has no example");
        page.push_str(&format!("\n## {command}\n\n```text\n{help}```\n"));
        for verb in commands_in(&help) {
            let help = place.run(&[command, verb, "--help"]).stdout;
            assert!(help.contains("Example"), "{command} {verb} has no example");
            page.push_str(&format!("\n### {command} {verb}\n\n```text\n{help}```\n"));
        }
    }
    assert_current("docs/command-line.md", &page);
}

/// The commands that a help text names.
fn commands_in(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn generated_tools_page() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let place = Place::new();
    let listed = || -> Vec<Value> {
        let done = place.run_with_input(&["serve"], &format!("{hello}\n{list}\n"));
        let answer: Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
        answer["result"]["tools"].as_array().unwrap().clone()
    };
    let own = listed().len();
    let registry =
        r#"{"servers": [{"id": "other", "mcp": {"transport": "stdio", "command": "false"}}]}"#;
    place.write_trusted("mcp.registry.json", registry);
    let tools = listed();
    let behind = ["none", "one", "two", "three", "four", "five", "six"][tools.len() - own];
    assert!(own > 0 && behind != "none", "{own} of {}", tools.len());
    let mut page = format!(
        "# The tools\n\nMade from `tools/list`, as an agent sees it. The last {behind} are there while a registry \
        names other servers: see [orchestrator.md](orchestrator.md).\n"
    );
    for tool in tools {
        let text = |field: &str| tool[field].as_str().unwrap();
        write!(page, "\n## {}\n\n{}. {}\n", text("name"), text("title"), text("description"))
            .unwrap();
        let schema = &tool["inputSchema"];
        page.push_str("\n| argument | type | | what it is |\n|---|---|---|---|\n");
        for (name, argument) in schema["properties"].as_object().unwrap() {
            let required = schema["required"].as_array();
            let is_required = required.is_some_and(|names| names.contains(&json!(name)));
            let required = if is_required { "required" } else { "" };
            let kind = argument["type"].as_str().unwrap_or("any");
            let what = argument["description"].as_str().unwrap_or_default();
            writeln!(page, "| `{name}` | {kind} | {required} | {what} |").unwrap();
        }
        let Some(result) = tool["outputSchema"]["properties"].as_object() else { continue };
        let result: Vec<String> = result.keys().map(|name| format!("`{name}`")).collect();
        writeln!(page, "\nThe result has {}.", result.join(", ")).unwrap();
    }
    assert_current("docs/tools.md", &page);
}
