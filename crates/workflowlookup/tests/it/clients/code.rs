//! Programs of agents, with real clients, real servers and the real compiler of TypeScript.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Reached, SERVER, installed, node, report_of, typescript_folder};
use crate::upstreams::place;
use crate::{Place, definition};

/// The reference server of the protocol's authors, and our own.
fn entries() -> [Value; 2] {
    let everything = installed("typescript")
        .join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let entry = |id: &str, command: &Path, word: &str| {
        json!({
            "id": id,
            "mcp": {"command": command, "args": [word]},
            "sensitivity": "low",
            "maxCallsPerMinute": 1000,
            "timeoutMs": 60_000,
        })
    };
    [
        entry("everything", &node(), everything.to_str().unwrap()),
        entry("own", Path::new(SERVER), "serve"),
    ]
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_typescript_sdk_runs_programs() {
    let folder = typescript_folder();
    for reached in [Reached::Stdio, Reached::Http] {
        for (way, revision) in
            [("v1", "2025-11-25"), ("v2", "2025-11-25"), ("v2-auto", "2026-07-28")]
        {
            let place = place(&entries());
            // Three pages of them, for the server below ours as well.
            for number in 100..220 {
                let id = format!("many-{number}");
                place.write(&format!("workflows/{id}.json"), definition(&id, "One of many"));
            }
            let report = report_of(reached, &place, |server| {
                let mut client = Command::new(node());
                client.arg(folder.join("code.mjs")).args([way, server]);
                client
            });
            let (connected, seen) = report.split_once('\n').unwrap();
            assert!(connected.ends_with(&format!("revision {revision}")), "{connected}");
            insta::assert_snapshot!("what_programs_come_to", seen);
        }
    }
}

/// What we say about tools is good enough for who is strict about types, and a wrong argument is found by it.
#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_compiler_takes_our_declarations() {
    let place = place(&entries());
    let clock = json!({
        "id": "clock",
        "mcp": {"command": installed("python").join("bin/python"), "args": ["-m", "mcp_server_time"]},
        "timeoutMs": 60_000,
    });
    let [everything, own] = entries();
    place.write_trusted(
        "mcp.registry.json",
        json!({"servers": [everything, own, clock]}).to_string(),
    );
    let mut used = String::new();
    for id in ["everything", "own", "clock"] {
        let types = place.run(&["mcp", "describe", id, "--detail", "types"]);
        assert_eq!(types.status, 0, "{}", types.stderr);
        place.write(&format!("types/mcp-clients/{id}.d.ts"), &types.stdout);
        // Every function is one that can be called.
        used += &format!("import * as {id} from \"mcp-clients/{id}\";\n");
        for line in types.stdout.lines() {
            let Some(function) = line.strip_prefix("export function ") else { continue };
            let (name, _) = function.split_once('(').unwrap();
            used += &format!("{id}.{name} satisfies (args: never) => Promise<unknown>;\n");
        }
    }
    assert!(used.lines().count() > 20, "{used}");
    place.write("all.ts", &used);
    place.write(
        "good.ts",
        "import { get_sum } from \"mcp-clients/everything\";\n\
         export const sum: Promise<unknown> = get_sum({ a: 1, b: 2 });\n",
    );
    let good = compile(&place, &["all.ts", "good.ts"]);
    assert!(good.is_empty(), "{good}");
    place.write(
        "wrong.ts",
        "import { get_sum } from \"mcp-clients/everything\";\nawait get_sum({ a: \"one\", b: 2 });\n",
    );
    let wrong = compile(&place, &["wrong.ts"]);
    assert_eq!(
        wrong.trim_end(),
        "wrong.ts(2,17): error TS2322: Type 'string' is not assignable to type 'number'."
    );
    place.write("missing.ts", "import { nothing } from \"mcp-clients/own\";\nnothing;\n");
    assert!(compile(&place, &["missing.ts"]).contains("TS2305"));
}

/// What the compiler complains about.
fn compile(place: &Place, files: &[&str]) -> String {
    let config = json!({
        "compilerOptions": {
            "strict": true,
            "noEmit": true,
            "target": "esnext",
            "module": "esnext",
            "moduleResolution": "bundler",
            "skipLibCheck": false,
            "types": [],
            "paths": {"mcp-clients/*": ["./types/mcp-clients/*"]},
        },
        "files": files,
    });
    fs::write(place.project().join("tsconfig.json"), config.to_string()).unwrap();
    let mut tsc = Command::new(node());
    tsc.arg(installed("compiler").join("node_modules/typescript/bin/tsc"))
        .args(["--pretty", "false"]);
    let done = tsc.current_dir(place.project()).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}
