//! What programs leave behind in the process whose threads they ran on: each has made some megabytes of values and a call.

use std::path::Path;
use std::time::Duration;

use super::{agent, program};
use crate::agent::Agent;
use crate::programs::Programs;
use crate::server::Server;
use crate::table::{Details, Limit, Row, Unit};
use crate::upstreams::{TEXT, id};

const PROGRAMS: usize = 200;
/// Until what is let go of is let go of.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let mut agent = agent(programs, &home.join("residue"), "thread");
    let settled = |server: &Server| {
        std::thread::sleep(SETTLED_AFTER);
        server.memory("VmRSS")
    };
    let before = settled(&agent.server);
    let request = program(&code());
    let run = |agent: &mut Agent| {
        let answer = agent.call(&request);
        assert!(answer.contains("50000"), "{answer}");
    };
    run(&mut agent);
    let after_one = settled(&agent.server);
    (1..PROGRAMS).for_each(|_| run(&mut agent));
    let after_all = settled(&agent.server);
    let most = agent.server.memory("VmHWM");
    agent.server.end();
    details.code.push(format!(
        "Our server has {before:.1} MiB before its first program, {after_one:.1} MiB after it, {after_all:.1} MiB after {PROGRAMS} of \
         them, and {most:.1} MiB at most while one runs that makes 50,000 objects."
    ));
    vec![Row {
        what: "200 programs run on threads: memory more than before",
        yardstick: "",
        figure: after_all - before,
        unit: Unit::Mebibytes,
        limit: Limit::AtMost(16.0),
    }]
}

fn code() -> String {
    let server = id(0);
    format!(
        "import {{ echo }} from \"mcp-clients/{server}\";\n\
         export async function main() {{\n\
         \tconst text = await echo({{ text: \"{TEXT}\" }});\n\
         \treturn Array.from({{ length: 50000 }}, (_, i) => ({{ i, text: `${{text}} ${{i}}` }})).length;\n\
         }}\n"
    )
}
