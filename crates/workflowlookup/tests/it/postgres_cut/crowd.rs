//! Many wait for a store that says nothing. They wait side by side, and not one behind the other.

use private_postgres::Flow;
use serde_json::json;

use super::client::LATEST;
use super::{Site, Walk};
use crate::agent::Era;
use crate::http_agent::allow_many_files;

/// Of each kind. Together they are more than there are threads to wait on.
const CALLS: usize = 60;

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn nobody_waits_for_those_who_wait() {
    allow_many_files();
    for (name, flow) in [("held up", Flow::Hold), ("silence", Flow::Swallow)] {
        let site = Site::new();
        let mut walks: Vec<Walk> =
            (0..CALLS).map(|_| Walk::start(&site.client, Era::Modern)).collect();
        site.cut.set(flow);
        let later = std::thread::scope(|scope| {
            let client = &site.client;
            let mut asked = Vec::new();
            for walk in &mut walks {
                let id = walk.id.clone();
                asked.push(scope.spawn(move || walk.go_on(client)));
                let status = json!({"sessionId": id});
                asked.push(
                    scope.spawn(move || client.call(Era::Legacy, "workflow_status", &status)),
                );
                let uri = json!({"uri": format!("session://{id}")});
                asked.push(
                    scope.spawn(move || client.ask(Era::Modern, "resources/read", &uri, LATEST)),
                );
                let start = json!({"workflowId": "long-one", "key": id});
                asked.push(scope.spawn(move || client.call(Era::Legacy, "workflow_start", &start)));
            }
            client.wait_until_away();
            client.ask_without_a_store();
            let answers = asked.into_iter().map(|asked| asked.join().unwrap());
            answers.filter(|answer| !answer.is_good()).count()
        });
        assert_eq!(later, 4 * CALLS, "{name}: nobody could have known");
        site.cut.set(Flow::Pass);
        site.client.wait_until_ready();
        for walk in &mut walks {
            walk.must_go_on(&site.client);
            let start = json!({"workflowId": "long-one", "key": walk.id});
            let twice =
                [(); 2].map(|()| site.client.call(Era::Modern, "workflow_start", &start).good());
            assert_eq!(twice[0], twice[1]);
        }
        walks.iter().for_each(|walk| walk.check_status(&site.client));
        assert_eq!(site.sessions(), 2 * CALLS);
        site.verify();
    }
}
