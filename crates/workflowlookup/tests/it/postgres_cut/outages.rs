//! One way after the other in which a line can fail, under one server.

use std::time::Duration;

use private_postgres::{Flow, Towards};
use serde_json::json;

use super::client::LATEST;
use super::{Answer, Client, Site, Walk};
use crate::agent::Era;

/// How the line fails.
struct Outage {
    name: &'static str,
    begin: fn(&Site),
    /// Whether it lasts until it is put right, so that it can be seen.
    lasts: bool,
}

const OUTAGES: [Outage; 8] = [
    Outage { name: "nothing at all", begin: |_| (), lasts: false },
    Outage {
        name: "all connections dropped",
        begin: |site| {
            site.cut.refuse();
            site.cut.set(Flow::Pass);
        },
        lasts: false,
    },
    Outage { name: "connections refused", begin: |site| site.cut.refuse(), lasts: true },
    Outage { name: "silence", begin: |site| site.cut.set(Flow::Swallow), lasts: true },
    Outage { name: "held up", begin: |site| site.cut.set(Flow::Hold), lasts: true },
    Outage {
        name: "late",
        begin: |site| site.cut.set(Flow::Delay(Duration::from_millis(200))),
        lasts: false,
    },
    Outage {
        name: "half closed towards the server",
        begin: |site| site.cut.half_close(Towards::Server),
        lasts: false,
    },
    Outage {
        name: "half closed towards us",
        begin: |site| site.cut.half_close(Towards::Client),
        lasts: false,
    },
];

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn whatever_happens_to_the_line_calls_are_answered_and_nothing_is_lost() {
    let site = Site::new();
    let client = &site.client;
    let mut walks = [Era::Legacy, Era::Modern].map(|era| Walk::start(client, era));
    for (number, outage) in OUTAGES.iter().enumerate() {
        eprintln!("{}", outage.name);
        // So that there are connections, and something is in memory.
        walks.iter_mut().for_each(|walk| walk.must_go_on(client));
        (outage.begin)(&site);
        let later = calls(client, &mut walks, outage, number);
        eprintln!("  {} calls to be made again: {:?}", later.len(), later.first());
        if !outage.lasts {
            assert_eq!(later, [""; 0], "it was there all the time: {}", outage.name);
        }
        site.cut.set(Flow::Pass);
        client.wait_until_ready();
        let again = calls(client, &mut walks, &OUTAGES[0], number);
        assert_eq!(again, [""; 0], "after: {}", outage.name);
        walks.iter().for_each(|walk| walk.check_status(client));
    }
    walks.iter().for_each(|walk| walk.check_log(&site.place));
    assert_eq!(site.sessions(), walks.len() + OUTAGES.len(), "a start with a key begins once");
    site.verify();
    let Site { server, .. } = site;
    let complaints = server.end();
    assert!(!complaints.iter().any(|line| line.contains("panicked")), "{complaints:?}");
}

/// All kinds of calls at once. Those that may be made again, and why.
fn calls(client: &Client, walks: &mut [Walk; 2], outage: &Outage, number: usize) -> Vec<String> {
    let uri = json!({"uri": format!("session://{}", walks[0].id)});
    let [first, second] = walks;
    std::thread::scope(|scope| {
        let mut asked = Vec::new();
        for era in [Era::Legacy, Era::Modern] {
            let uri = &uri;
            asked.push(scope.spawn(move || client.ask(era, "resources/read", uri, LATEST)));
            asked.push(scope.spawn(move || client.ask(era, "resources/list", &json!({}), LATEST)));
        }
        asked.push(scope.spawn(move || {
            let arguments = json!({"workflowId": "long-one", "key": format!("key {number}")});
            client.call(Era::Modern, "workflow_start", &arguments)
        }));
        asked.push(scope.spawn(move || {
            let answer = first.go_on(client);
            if answer.is_good() { first.status(client) } else { answer }
        }));
        asked.push(scope.spawn(move || second.go_on(client)));
        let passer_by = scope.spawn(|| Client::of(client.address).part());
        client.ask_without_a_store();
        if outage.lasts {
            client.wait_until_away();
        }
        // Also when everybody else waits, and when it is known.
        client.ask_without_a_store();
        passer_by.join().unwrap();
        let answers = asked.into_iter().map(|asked| asked.join().unwrap());
        answers
            .filter_map(|answer| match answer {
                Answer::Good(_) => None,
                Answer::Later(why) => Some(why),
            })
            .collect()
    })
}

/// The server has written what it was given, and the word of it is lost on the way to us. The same again does not write
/// it twice; who asked gets the answer to what was written.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn an_answer_that_is_lost_after_the_commit() {
    for lasts in [false, true] {
        // With few connections each has been used before, and the write needs no other word from the server.
        let site = Site::serving(&["--store-connections", "3"]);
        let client = &site.client;
        let mut walk = Walk::start(client, Era::Modern);
        let mut lost = 0;
        for _ in 0..20 {
            (0..6).for_each(|_| walk.must_go_on(client));
            let version = stored(&site, &walk.id);
            site.cut.set_towards(Towards::Client, Flow::Hold);
            let answer = std::thread::scope(|scope| {
                let answer = scope.spawn(|| walk.go_on(client));
                // Sometimes every connection is in use for something else at this moment, and nothing is written.
                for _ in 0..50 {
                    std::thread::sleep(Duration::from_millis(10));
                    if stored(&site, &id(&site)) != version {
                        lost += 1;
                        break;
                    }
                }
                site.cut.refuse();
                if !lasts {
                    site.cut.set(Flow::Pass);
                }
                answer.join().unwrap()
            });
            site.cut.set(Flow::Pass);
            match (answer, lasts) {
                (Answer::Good(_), false) => {}
                (Answer::Later(why), false) => panic!("the line was there again: {why}"),
                (Answer::Good(_), true) => panic!("nobody could have told"),
                (Answer::Later(_), true) => walk.must_go_on(client),
            }
            if lost == 3 {
                break;
            }
        }
        assert_eq!(lost, 3, "it was never written in time");
        walk.check_log(&site.place);
        site.verify();
    }
}

/// The only session.
fn id(site: &Site) -> String {
    site.database.query("select id from workflowlookup.sessions").unwrap()
}

/// How many events the server has of it, asked on another line.
fn stored(site: &Site, id: &str) -> u64 {
    let sql = format!("select version from workflowlookup.sessions where id = '{id}'");
    site.database.query(&sql).unwrap().parse().unwrap()
}

/// Something between the two has forgotten all connections, and lets new ones through. Nobody has to find that out for
/// each of them.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn connections_that_are_dead_without_a_word() {
    let site = Site::new();
    let client = &site.client;
    let mut walk = Walk::start(client, Era::Modern);
    // Nearly as many connections as there may be. Some calls are done before others begin.
    let status = json!({"sessionId": walk.id});
    for _ in 0..100 {
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| client.call(Era::Modern, "workflow_status", &status).good());
            }
        });
        if site.cut.accepted() >= 12 {
            break;
        }
    }
    site.cut.set(Flow::Swallow);
    site.cut.set(Flow::Pass);
    // Who is the first finds out.
    let failed = (0..3).take_while(|_| !walk.go_on(client).is_good()).count();
    assert!(failed < 3, "everybody finds out");
    client.wait_until_ready();
    walk.must_go_on(client);
    walk.check_log(&site.place);
}
