//! Sessions in a PostgreSQL, end to end: agents over HTTP, one to three replicas, a server of ours that flushes every
//! commit to the disk. The yardstick does only the compare-and-set append, over as many connections, behind the same kind
//! of handler.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use private_postgres::{Postgres, find};
use serde_json::{Value, json};

use crate::agents::{Agent, Figure, load};
use crate::http::Listening;
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};

const AGENTS: usize = 64;
const REPLICAS: usize = 3;
/// Short ones, so that what a disk or a machine does meanwhile meets all alike.
const ROUNDS: usize = 20;
const TIME: Duration = Duration::from_secs(1);
/// To PostgreSQL, of all replicas together: it is one machine, however many ask.
const CONNECTIONS: usize = 16;
/// Of each call, in the rows that compare a full store with an empty one.
const FULL_ROUNDS: usize = 300;
/// Finished sessions in the store that is full.
const FINISHED: usize = 1_000_000;
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const WORKFLOW: &str = "team-way";
/// As many as a long workflow has.
const STEPS: u64 = 50;
const OUTPUT: &str = "Both parts are in place. The first reads the file and hands on what it found; the second \
    writes the report. All tests pass, the new one among them, and nothing else has changed.";

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let folder = home.join("postgres");
    write_workflow(&folder);
    let tools = find().expect("PostgreSQL's programs");
    let server = Postgres::start_with(&tools, &["fsync=on"]).expect("a PostgreSQL");
    let mut rows = under_load(programs, &folder, &server, details);
    rows.extend(full(programs, &folder, &server, details));
    rows
}

fn write_workflow(folder: &Path) {
    let steps = (0..STEPS).map(|number| {
        json!({
            "id": format!("part-{number:04}"),
            "title": format!("Part {number}"),
            "prompt": "Do the next part of the work, look at what came of it, and write it down.",
            "validationCriteria": [{
                "type": "regex", "pattern": "\\btests? pass", "message": "Say that the tests pass",
            }],
        })
    });
    let definition = json!({
        "id": WORKFLOW, "name": "A way", "description": "For the bench", "version": "1.0.0",
        "steps": steps.collect::<Vec<_>>(),
    });
    let workflows = folder.join("workflows");
    std::fs::create_dir_all(&workflows).expect("a folder");
    std::fs::write(workflows.join("way.json"), definition.to_string()).expect("a workflow");
}

fn replica(programs: &Programs, folder: &Path, url: &str, connections: usize) -> Listening {
    let connections = connections.to_string();
    let arguments = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--no-bundled",
        "--store",
        url,
        "--store-connections",
        &connections,
    ];
    Listening::start_with(&programs.product, &arguments, folder, &[("WORKFLOWLOOKUP_KEY", KEY)])
}

/// An agent in the middle of a session.
struct Walker {
    agent: Agent,
    stands: Value,
}

impl Walker {
    fn new(replica: &Listening) -> Self {
        let mut agent = Agent::new(replica.address);
        let stands = agent.call("workflow_start", &json!({"workflowId": WORKFLOW}));
        Self { agent, stands }
    }

    /// One step further, in the next session where this one has come to its end.
    fn advance(&mut self) {
        if self.stands["isComplete"] == true {
            self.stands = self.agent.call("workflow_start", &json!({"workflowId": WORKFLOW}));
        }
        let arguments = json!({
            "sessionId": self.stands["sessionId"],
            "revision": self.stands["revision"],
            "stepId": self.stands["step"]["id"],
            "output": OUTPUT,
        });
        self.stands = self.agent.call("workflow_advance", &arguments);
    }
}

/// An agent of the yardstick.
struct Raw {
    agent: Agent,
    session: String,
    version: Value,
}

impl Raw {
    fn new(server: &Listening, number: usize) -> Self {
        let mut raw = Self {
            agent: Agent::new(server.address),
            session: format!("s{number}"),
            version: Value::Null,
        };
        raw.append();
        raw
    }

    fn append(&mut self) {
        let body =
            json!({"session": self.session, "version": self.version, "body": OUTPUT.repeat(2)});
        self.version = self.agent.post("", &body.to_string())["version"].take();
        assert!(self.version.is_number());
    }
}

fn under_load(
    programs: &Programs,
    folder: &Path,
    server: &Postgres,
    details: &mut Details,
) -> Vec<Row> {
    server.query("postgres", "CREATE DATABASE raw").expect("a database");
    server.query("postgres", "CREATE DATABASE ours").expect("a database");
    let raw = Listening::start(&programs.raw_append, &[&server.url("raw")], folder);
    let url = server.url("ours");
    let deployments: Vec<Vec<Listening>> = (1..=REPLICAS)
        .map(|count| {
            (0..count).map(|_| replica(programs, folder, &url, CONNECTIONS / count)).collect()
        })
        .collect();
    let mut raw_agents: Vec<Raw> = (0..AGENTS).map(|number| Raw::new(&raw, number)).collect();
    let mut walkers: Vec<Vec<Walker>> = deployments
        .iter()
        .map(|replicas| {
            (0..AGENTS).map(|number| Walker::new(&replicas[number % replicas.len()])).collect()
        })
        .collect();
    // Of the yardstick, and of one replica or more.
    let mut figures = [const { Vec::new() }; REPLICAS + 1];
    let mut shares = Vec::new();
    for round in 0..=ROUNDS {
        for turn in 0..=REPLICAS {
            let count = (round + turn) % (REPLICAS + 1);
            let before = Share::now(server, &deployments[0]);
            let figure = match count.checked_sub(1) {
                None => load(raw_agents.iter_mut().map(|raw| || raw.append()).collect(), TIME),
                Some(at) => {
                    let walkers = walkers[at].iter_mut();
                    load(walkers.map(|walker| || walker.advance()).collect(), TIME)
                }
            };
            // The first round warms everything up.
            if round == 0 {
                continue;
            }
            if count == 1 {
                shares.push(Share::now(server, &deployments[0]).since(&before));
            }
            figures[count].push(figure);
        }
    }
    let [raws, ours @ ..] = figures;
    let alone = alone(programs, server);
    let of =
        |figures: &[Figure], pick: fn(&Figure) -> f64| median(figures.iter().map(pick).collect());
    let mut keep = |name, figures: &[Figure]| {
        details.postgres.push((name, of(figures, |f| f.rate), of(figures, |f| f.slow / 1000.0)));
    };
    keep("the bare append behind a handler", &raws);
    keep("workflowlookup, one replica", &ours[0]);
    keep("workflowlookup, two replicas", &ours[1]);
    keep("workflowlookup, three replicas", &ours[2]);
    details.postgres.push((
        "the bare append in a loop, without HTTP",
        alone.rate,
        alone.slow / 1000.0,
    ));
    details.database_share = median(shares);
    let ratio = |figures: &[Figure], others: &[Figure], pick: fn(&Figure) -> f64| {
        median(figures.iter().zip(others).map(|(one, other)| pick(one) / pick(other)).collect())
    };
    vec![
        Row {
            what: "`workflow_advance` of 64 agents in PostgreSQL, per second",
            yardstick: "a bare compare-and-set append behind an axum handler, as many connections",
            figure: ratio(&ours[0], &raws, |figure| figure.rate),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(0.6),
        },
        Row {
            what: "Of these, the 99th percentile of the time to an answer",
            yardstick: "the bare append's",
            figure: ratio(&ours[0], &raws, |figure| figure.slow),
            unit: Unit::Ratio,
            limit: Limit::AtMost(3.0),
        },
        Row {
            what: "The same agents with two replicas, per second",
            yardstick: "with one",
            figure: ratio(&ours[1], &ours[0], |figure| figure.rate),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(0.95),
        },
        Row {
            what: "The same agents with three replicas, per second",
            yardstick: "with one",
            figure: ratio(&ours[2], &ours[0], |figure| figure.rate),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(0.95),
        },
    ]
}

/// What the bare append comes to without HTTP.
fn alone(programs: &Programs, server: &Postgres) -> Figure {
    let seconds = TIME.as_secs().to_string();
    let output = Command::new(&programs.raw_append)
        .args([&*server.url("raw"), "loop", &AGENTS.to_string(), &seconds])
        .output()
        .expect("the loop");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (rate, slow) = text.trim().split_once(' ').expect("two figures");
    Figure { rate: rate.parse().expect("a rate"), slow: slow.parse().expect("a time") }
}

/// Processor time so far, in ticks: of PostgreSQL and of the replicas.
struct Share {
    database: f64,
    replicas: f64,
}

impl Share {
    fn now(server: &Postgres, replicas: &[Listening]) -> Self {
        let postmaster = server.id().expect("it runs");
        let database = std::fs::read_dir("/proc")
            .expect("processes")
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter_map(|id| {
                ticks(id).filter(|(parent, _)| id == postmaster || *parent == postmaster)
            })
            .map(|(_, ticks)| ticks)
            .sum();
        let replicas =
            replicas.iter().filter_map(|replica| ticks(replica.id())).map(|(_, ticks)| ticks);
        Self { database, replicas: replicas.sum() }
    }

    /// The database's share of what both have taken since.
    fn since(&self, before: &Self) -> f64 {
        let database = self.database - before.database;
        database / (database + self.replicas - before.replicas)
    }
}

/// The parent of a process, and the processor time that it has taken.
fn ticks(id: u32) -> Option<(u32, f64)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may have spaces; what follows it has none.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((number(1)? as u32, number(11)? + number(12)?))
}

/// The same calls in an empty store and in one with a million finished sessions.
fn full(programs: &Programs, folder: &Path, server: &Postgres, details: &mut Details) -> Vec<Row> {
    let replicas = ["empty_store", "full_store"].map(|name| {
        server.query("postgres", &format!("CREATE DATABASE {name}")).expect("a database");
        let replica = replica(programs, folder, &server.url(name), CONNECTIONS);
        // With this the tables are there.
        Walker::new(&replica);
        replica
    });
    let begun = Instant::now();
    server
        .query("full_store", &FILL.replace("COUNT", &FINISHED.to_string()))
        .expect("a full store");
    eprintln!("bench: {FINISHED} finished sessions in {:?}", begun.elapsed());
    let mut walkers = replicas.each_ref().map(Walker::new);
    let mut times = [const { [const { Vec::new() }; 3] }; 2];
    let mut searches = Vec::new();
    for round in 0..FULL_ROUNDS {
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let walker = &mut walkers[at];
            let mut time = |call: usize, run: &mut dyn FnMut(&mut Walker)| {
                let begun = Instant::now();
                run(walker);
                times[at][call].push(begun.elapsed().as_secs_f64() * 1e6);
            };
            time(0, &mut |walker| {
                walker.stands =
                    walker.agent.call("workflow_start", &json!({"workflowId": WORKFLOW}));
            });
            time(1, &mut Walker::advance);
            time(2, &mut |walker| {
                let id = walker.stands["sessionId"].clone();
                walker.agent.call("workflow_status", &json!({"sessionId": id}));
            });
        }
        if round % 10 == 0 {
            let begun = Instant::now();
            let query = format!("word{}", round * 7);
            let found = walkers[1].agent.call("workflow_status", &json!({"query": query}));
            searches.push(begun.elapsed().as_secs_f64() * 1e6);
            assert!(found["sessions"].is_array());
        }
    }
    details.search_in_full = median(searches);
    let [empty, full] = times.map(|calls| calls.map(median));
    let what = [
        "`workflow_start` in PostgreSQL with a million finished sessions",
        "`workflow_advance` there",
        "`workflow_status` there",
    ];
    let rows = what.into_iter().zip(empty.into_iter().zip(full)).map(|(what, (empty, full))| Row {
        what,
        yardstick: "in an empty store",
        figure: full / empty,
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.3),
    });
    rows.collect()
}

/// Sessions of a thousand owners, all finished, each with three events that can be searched for.
const FILL: &str = "SET search_path = workflowlookup;
    INSERT INTO definitions VALUES ('bench', '{}');
    INSERT INTO sessions (id, owner, workflow, goal, definition, created, root, status, revision, touched, version, seal,
        finished)
    SELECT 's' || n, 'owner' || n % 1000, 'workflow' || n % 50, 'goal ' || n, 'bench', n, '\\x00', 2, 2, n, 3, '\\x00', n
    FROM generate_series(1, COUNT) n;
    INSERT INTO events (session, version, time, kind, revision, hash, body, words)
    SELECT s.number, v, s.created, 'accepted', v, '\\x00', '{\"output\":\"' || repeat('word ', 40) || '\"}',
        array_to_tsvector(ARRAY['tword' || (s.number * 3 + v) % 100000, 'tcommon', 'o' || left(encode(sha256(convert_to(s.owner, 'UTF8')), 'hex'), 32)])
    FROM sessions s, generate_series(1, 3) v WHERE s.definition = 'bench';
    ANALYZE sessions; ANALYZE events";
