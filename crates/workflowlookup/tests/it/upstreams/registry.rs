//! The tools are there while a registry names servers, and clients hear when that changes.

use serde_json::{Value, json};

use super::house::{ERAS, agent, arguments, refused, simply, text, told, write};
use super::upstream::Upstream;
use crate::Place;
use crate::agent::{Agent, Era, Heard};

const TOOLS: [&str; 4] =
    ["list_mcp_capabilities", "describe_mcp", "call_mcp_tool", "execute_mcp_code"];

fn tools(agent: &mut Agent) -> Vec<String> {
    let listed = agent.request("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn has_them(agent: &mut Agent) -> bool {
    let tools = tools(agent);
    let count = TOOLS.iter().filter(|own| tools.iter().any(|tool| tool == *own)).count();
    assert!(tools.iter().any(|tool| tool == "workflow_list"), "{tools:?}");
    assert!(count == 0 || count == TOOLS.len(), "{tools:?}");
    count > 0
}

/// Wants to hear when the list of tools changes.
fn listen(agent: &mut Agent, era: Era) {
    if era == Era::Modern {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        agent.begin("subscriptions/listen", wanted);
        let agreed = told(agent, "notifications/subscriptions/acknowledged");
        assert_eq!(agreed["notifications"]["toolsListChanged"], true);
    }
}

#[test]
fn tools_come_and_go_with_the_registry() {
    let upstream = Upstream::start();
    for era in ERAS {
        let place = Place::new();
        let mut agent = agent(&place, era, false);
        listen(&mut agent, era);
        assert!(!has_them(&mut agent), "there is no registry");
        // What is not there cannot be called.
        agent.begin_call("call_mcp_tool", &arguments("notes", "echo", json!({"text": "a"})));
        let unknown = agent.process.receive().unwrap();
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

        write(&place, &[upstream.entry("notes", json!({}))]);
        told(&mut agent, "notifications/tools/list_changed");
        assert!(has_them(&mut agent));
        let echo = arguments("notes", "echo", json!({"text": "a"}));
        assert_eq!(text(&simply(&mut agent, era, &echo)), "a");

        // Another entry under another name: the list of tools is the same, and what can be called is not.
        write(&place, &[upstream.entry("papers", json!({}))]);
        let start = std::time::Instant::now();
        loop {
            let result = agent.call("call_mcp_tool", &echo);
            if result.get("isError").is_some() {
                assert_eq!(refused(&result).1["code"], -32602);
                break;
            }
            assert!(start.elapsed() < crate::transcripts::PATIENCE, "an edit is never seen");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }

        std::fs::remove_file(place.project().join("mcp.registry.json")).unwrap();
        told(&mut agent, "notifications/tools/list_changed");
        assert!(!has_them(&mut agent));
        agent.process.input = None;
        while let Some(heard) = agent.hear() {
            // The end of the stream that it listened to.
            assert!(matches!(heard, Heard::Told { .. } | Heard::Answer { .. }));
        }
    }
}

/// A registry in the user's folder, a named one, and one that is none.
#[test]
fn a_registry_is_found_where_it_is() {
    let upstream = Upstream::start();
    let text = json!({"servers": [upstream.entry("notes", json!({}))]}).to_string();
    let place = Place::new();
    let folder = place.home().join(".config/workflowlookup");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mcp.registry.json"), &text).unwrap();
    let mut agent = Agent::start(&place);
    assert!(has_them(&mut agent));
    agent.end();

    let place = Place::new();
    place.write_trusted("elsewhere.json", &text);
    let mut command = place.command(&["serve", "--registry", "elsewhere.json"]);
    command.stderr(std::process::Stdio::null());
    let process = crate::transcripts::Process::spawn(command);
    let mut agent = Agent::connect(process, Era::Legacy, json!({}));
    assert!(has_them(&mut agent));
    agent.end();

    for odd in ["", "{", r#"{"servers": []}"#, r#"{"servers": [{"id": "x"}]}"#] {
        let place = Place::new();
        place.write_trusted("mcp.registry.json", odd);
        let mut agent = Agent::start(&place);
        assert!(!has_them(&mut agent), "{odd}");
        agent.end();
    }
}

/// What an edit takes away ends with it, though nobody calls anything.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_is_disabled_ends() {
    let place = Place::new();
    let script = "echo $$ > pid.new && mv pid.new pid && exec \"$0\" serve";
    let program = env!("CARGO_BIN_EXE_workflowlookup");
    let entry = |is_disabled: bool| {
        json!({
            "id": "own",
            "mcp": {"command": "sh", "args": ["-c", script, program]},
            "sensitivity": "low",
            "timeoutMs": 60_000,
            "disabled": is_disabled
        })
    };
    write(&place, &[entry(false)]);
    let mut agent = agent(&place, Era::Modern, false);
    listen(&mut agent, Era::Modern);
    assert!(has_them(&mut agent));
    let called = arguments("own", "workflow_list", json!({}));
    let result = simply(&mut agent, Era::Modern, &called);
    assert!(result.get("isError").is_none(), "{result}");
    let pid = std::fs::read_to_string(place.project().join("pid")).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    assert!(process.exists());
    write(&place, &[entry(true)]);
    let start = std::time::Instant::now();
    while process.exists() {
        assert!(start.elapsed() < crate::transcripts::PATIENCE, "it goes on running");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    told(&mut agent, "notifications/tools/list_changed");
    agent.process.input = None;
    // The stream that it listened to is answered at its end.
    while agent.hear().is_some() {}
}

/// A list of tools of an upstream that changes is another one for who searches.
#[test]
fn what_an_upstream_has_now_is_found_now() {
    let upstream = Upstream::start();
    let place = super::house::place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let zebras = |agent: &mut Agent| -> usize {
            let found = agent.call("list_mcp_capabilities", &json!({"query": "zebra crossing"}));
            let found = super::house::parsed(&found);
            let tools: &Vec<Value> = found["tools"].as_array().unwrap();
            tools.iter().filter(|tool| tool["tool"] == "zebra_crossing").count()
        };
        assert_eq!(zebras(&mut agent), 0);
        for expected in [1, 0] {
            upstream.change_tools(expected == 1);
            let start = std::time::Instant::now();
            while zebras(&mut agent) != expected {
                assert!(start.elapsed() < crate::transcripts::PATIENCE, "never found");
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
        agent.end();
    }
}
