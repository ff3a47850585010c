//! The same for one client, over standard input and output.

use std::time::{Duration, Instant};

use private_postgres::{Cut, Database, Flow};
use serde_json::{Value, json};

use super::LONG;
use super::client::{AT_ONCE, LATEST};
use crate::Place;
use crate::agent::{Agent, Era, advance, refused, structured};

/// How the line fails.
type Begin = fn(&Cut);

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_client_hears_why_and_goes_on_later() {
    let outages: [(&str, Begin); 3] = [
        ("refused", Cut::refuse),
        ("held up", |cut| cut.set(Flow::Hold)),
        ("silence", |cut| cut.set(Flow::Swallow)),
    ];
    std::thread::scope(|scope| {
        for (name, begin) in outages {
            for era in [Era::Legacy, Era::Modern] {
                scope.spawn(move || goes_on_after(name, begin, era));
            }
        }
    });
}

fn goes_on_after(name: &str, begin: Begin, era: Era) {
    let database = Database::create().unwrap();
    let cut = Cut::before(database.address().unwrap()).unwrap();
    let place = Place::storing(database.url_at(cut.address()));
    place.write("workflows/long-one.json", LONG);
    let mut agent = Agent::start_in(era, &place);
    let id = agent.start_session("long-one");
    if era == Era::Legacy {
        // Who follows a session has the store looked at all the time.
        agent.request("resources/subscribe", json!({"uri": format!("session://{id}")}));
    }
    structured(&agent.call("workflow_advance", &advance(&id, 0, "round", "first")));
    begin(&cut);
    let call = advance(&id, 1, "round", "second");
    let late = within(&mut agent, "workflow_advance", &call, LATEST);
    let (text, code) = refused(&late);
    assert_eq!(code, -32006, "{name}: {text}");
    assert!(text.contains("the same call may be made again"), "{name}: {text}");
    for _ in 0..5 {
        structured(&within(&mut agent, "workflow_list", &json!({}), AT_ONCE));
    }
    cut.set(Flow::Pass);
    assert_eq!(structured(&agent.call("workflow_advance", &call))["revision"], 2, "{name}");
    assert_eq!(agent.status(&id)["revision"], 2, "{name}");
    agent.end();
    let shown = place.run(&["session", "show", &id, "--json"]).json();
    assert_eq!(shown["events"].as_array().unwrap().len(), 3, "{name}");
}

fn within(agent: &mut Agent, tool: &str, arguments: &Value, most: Duration) -> Value {
    let start = Instant::now();
    let result = agent.call(tool, arguments);
    assert!(start.elapsed() < most, "{tool} was answered after {:?}", start.elapsed());
    result
}
