//! Three replicas behind nginx, one PostgreSQL, many agents. Replicas are killed all the time and PostgreSQL now and then;
//! every agent comes to its end, and what it was told is what is stored.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use private_postgres::{Postgres, find};
use serde_json::{Value, json};

use super::stranger;
use crate::Place;
use crate::agent::Era;
use crate::http_agent::allow_many_files;
use crate::http_replicas::Reserved;
use crate::http_replicas::nginx::Nginx;
use crate::http_replicas::walk::{Kind, Met, Walked, Walker};
use crate::http_server::Listening;

const AGENTS: usize = 64;
const REPLICAS: usize = 3;
/// How long a replica lives.
const LIFE: Duration = Duration::from_secs(1);
/// How long PostgreSQL is away: so that calls wait for it, and so that they do not any more.
const ABSENCES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];
/// By when everything is over. On a slow machine it takes a quarter of this.
const DEADLINE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(10);

/// How many steps an agent takes, and how long it needs for one.
const STEPS: usize = 250;
const PACE: Duration = Duration::from_millis(50);
const JOURNEY: &str = r#"{
    "id": "journey", "name": "Journey", "description": "For a test", "version": "1.0.0",
    "steps": [
        {"id": "days", "type": "loop", "title": "Days", "loop": {"type": "for", "count": 250, "maxIterations": 250},
         "body": [{"id": "draft", "title": "Day", "prompt": "Day {{currentIteration}}.",
             "validationCriteria": [{"type": "contains", "value": "draft", "message": "Say what it is"}]}]}
    ]
}"#;
/// The same where every other step needs a person's word.
const GATED_STEPS: usize = 40;
const GATED_PACE: Duration = Duration::from_millis(700);
const GATED_JOURNEY: &str = r#"{
    "id": "gated-journey", "name": "Gated journey", "description": "For a test", "version": "1.0.0",
    "steps": [
        {"id": "days", "type": "loop", "title": "Days", "loop": {"type": "for", "count": 20, "maxIterations": 20},
         "body": [
            {"id": "draft", "title": "Day", "prompt": "Day {{currentIteration}}."},
            {"id": "agree", "title": "Agree", "prompt": "Agree on it.", "requireConfirmation": true}
         ]}
    ]
}"#;

#[test]
#[ignore = "needs PostgreSQL and nginx: cargo xtask test"]
fn agents_survive_replicas_that_die_and_a_store_that_goes_away() {
    allow_many_files();
    let mut world = World::new();
    let (met, is_over) = (Met::default(), AtomicBool::new(false));
    let start = Instant::now();
    let deadline = start + DEADLINE;
    let (proxy, stranger) = (world.nginx.address, world.stranger.clone());
    let url = world.postgres.url("sessions");
    // Somebody tells the stranger which sessions there are.
    let ids = move || {
        let newest = "select id from workflowlookup.sessions order by number desc limit 3";
        let told = private_postgres::query(&url, newest).unwrap_or_default();
        told.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let agents: Vec<Walker<'_>> = (0..AGENTS).map(|number| world.agent(number, &met)).collect();
    let (walked, looks, done) = std::thread::scope(|scope| {
        let ids = ids.clone();
        let stranger = scope
            .spawn(|| stranger::look_around(proxy, &stranger, &move || ids(), &is_over, deadline));
        let agents: Vec<_> = agents.into_iter().map(|agent| scope.spawn(|| agent.walk())).collect();
        let are_over = || agents.iter().all(|agent| agent.is_finished());
        let done = world.disturb(&met.answers, are_over, deadline);
        let walked: Vec<_> = agents.into_iter().map(|agent| agent.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        (walked, stranger.join().unwrap(), done)
    });
    let took = start.elapsed();
    let walked: Vec<Walked> =
        walked.into_iter().map(|walked| walked.expect("an agent is lost")).collect();
    world.check(&walked);
    eprintln!("{}", report(&met, &done, looks, took));
    assert!(
        done.killed > REPLICAS && done.ended == 1 && done.absences == ABSENCES.len(),
        "{done:?}"
    );
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    assert!(load(&met.broken) + load(&met.gateway) > 0, "nobody noticed that replicas died");
    assert!(load(&met.decided) > 0 && looks > 0);
    world.end();
}

/// What was done to them.
#[derive(Debug, Default)]
struct Done {
    killed: usize,
    ended: usize,
    absences: usize,
}

struct World {
    replicas: [Listening; REPLICAS],
    nginx: Nginx,
    place: Place,
    postgres: Postgres,
    /// The tokens of the agents, and of somebody else.
    tokens: Vec<String>,
    stranger: String,
    _reserved: [Reserved; REPLICAS],
}

impl World {
    fn new() -> Self {
        let postgres = Postgres::start(&find().unwrap()).unwrap();
        postgres.query("postgres", "create database sessions").unwrap();
        let place = Place::storing(postgres.url("sessions"));
        place.write("workflows/journey.json", JOURNEY);
        place.write("workflows/gated-journey.json", GATED_JOURNEY);
        let tokens = (0..AGENTS).map(|number| token(&place, &format!("agent-{number}"))).collect();
        let stranger = token(&place, "stranger");
        let reserved = [(); REPLICAS].map(|()| Reserved::new());
        let replicas = reserved.each_ref().map(|own| replica(&place, own.address));
        let nginx = Nginx::start(&replicas.each_ref().map(|replica| replica.address));
        Self { replicas, nginx, place, postgres, tokens, stranger, _reserved: reserved }
    }

    fn agent<'a>(&self, number: usize, met: &'a Met) -> Walker<'a> {
        let era = if number.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
        let key = format!("agent-{number}");
        let (kind, workflow, pace) = match (era, number / 2 % 4) {
            (_, 0) => (Kind::Gated, "gated-journey", GATED_PACE),
            (Era::Legacy, 1) => (Kind::Following, "journey", PACE),
            _ => (Kind::Plain, "journey", PACE),
        };
        let agent = Walker::new(self.nginx.address, era, kind, key, met);
        agent.through(workflow).with_token(&self.tokens[number]).at_pace(pace)
    }

    /// Kills the replicas in turn, ends one of them in order, and takes PostgreSQL away twice, until the agents have nearly
    /// come to their ends.
    fn disturb(
        &mut self,
        answers: &AtomicUsize,
        are_over: impl Fn() -> bool,
        deadline: Instant,
    ) -> Done {
        let gated = AGENTS / 4;
        let all = (AGENTS - gated) * STEPS + gated * GATED_STEPS;
        let percent = || answers.load(Ordering::Relaxed) * 100 / all;
        let mut done = Done::default();
        for turn in (0..REPLICAS).cycle() {
            let until = Instant::now() + LIFE;
            while Instant::now() < until {
                if percent() >= 90 || are_over() {
                    return done;
                }
                let (percent, late) = (percent(), Instant::now() > deadline);
                assert!(!late, "the agents have got to {percent} % only: {done:?}");
                std::thread::sleep(PAUSE);
            }
            let own = &mut self.replicas[turn];
            if percent() >= 45 && done.ended == 0 {
                own.terminate();
                assert_eq!(own.wait(), Some(0), "told to end, it ends well");
                done.ended += 1;
            } else {
                own.child.kill().unwrap();
                own.wait();
                done.killed += 1;
            }
            calm(own.complaints.try_iter());
            let address = own.address;
            *own = replica(&self.place, address);
            if let Some(absence) = ABSENCES.get(done.absences)
                && percent() >= 25 + 35 * done.absences
            {
                self.postgres.kill().unwrap();
                std::thread::sleep(*absence);
                self.postgres.restart().unwrap();
                done.absences += 1;
            }
        }
        done
    }

    /// There is one session for each agent, complete, with what its agent handed in, once and in order.
    fn check(&self, walked: &[Walked]) {
        let listed = self.place.run(&["session", "list", "--limit", "1000", "--json"]).json();
        // Agents have tokens, so none of these is the user's.
        let sessions = listed["others"]["sessions"].as_array().unwrap().iter();
        let stored: BTreeMap<&str, u64> = sessions
            .map(|session| {
                assert_eq!(session["status"], "complete", "{session}");
                (session["sessionId"].as_str().unwrap(), session["revision"].as_u64().unwrap())
            })
            .collect();
        let told: BTreeMap<&str, u64> =
            walked.iter().map(|walked| (&*walked.id, walked.revision)).collect();
        assert_eq!(stored, told);
        for walked in walked {
            let shown = self.place.run(&["session", "show", &walked.id, "--json"]).json();
            let accepted = walked.accepted.iter();
            let told: Vec<_> =
                accepted.flat_map(|call| handed_in(&call["stepId"], &call["output"])).collect();
            let events = shown["events"].as_array().unwrap().iter().skip(1);
            let stored: Vec<_> = events.map(|entry| happened(&entry["event"])).collect();
            assert_eq!(stored, told, "{}", walked.id);
        }
        let verified = self.place.run(&["session", "verify"]);
        assert_eq!(verified.status, 0, "{}", verified.shown());
    }

    fn end(self) {
        self.replicas.into_iter().for_each(|replica| calm(replica.end().into_iter()));
    }
}

/// What a call that was accepted leaves behind: an event, or two where a person had to confirm it.
fn handed_in(step: &Value, output: &Value) -> Vec<(Value, Value)> {
    match step.as_str() {
        Some("agree") => vec![(step.clone(), output.clone()), (json!("approved"), Value::Null)],
        _ => vec![(step.clone(), output.clone())],
    }
}

fn happened(event: &Value) -> (Value, Value) {
    match event["type"].as_str() {
        Some("accepted" | "submitted") => {
            (event["submission"]["step"].clone(), event["submission"]["output"].clone())
        }
        _ => (event["type"].clone(), Value::Null),
    }
}

/// One more of the tokens that all replicas know.
fn token(place: &Place, name: &str) -> String {
    let made = place.run(&["token", "new", name, "--tokens", "tokens.json"]);
    assert_eq!(made.status, 0, "{}", made.shown());
    made.stdout.trim_end().to_owned()
}

fn replica(place: &Place, address: SocketAddr) -> Listening {
    let address = address.to_string();
    Listening::spawn(place.command(&["serve", "--http", &address, "--tokens", "tokens.json"]))
}

/// A store that goes away is worth a line; what must never happen is not among them.
fn calm(mut complaints: impl Iterator<Item = String>) {
    let bad = complaints.find(|line| line.contains("panicked") || line.contains("damaged"));
    assert_eq!(bad, None);
}

fn report(met: &Met, done: &Done, looks: usize, took: Duration) -> String {
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    format!(
        "{AGENTS} agents, {} answers in {took:.1?}; {} replicas killed, {} told to end, PostgreSQL killed {} times; to be \
         tried again: {} connections that broke, {} answers of the proxy, {} that there was too much, {} that the store \
         was away; {} decisions, {} calls answered before one, {} changes heard, {looks} looks of a stranger; 0 lost",
        load(&met.answers),
        done.killed,
        done.ended,
        done.absences,
        load(&met.broken),
        load(&met.gateway),
        load(&met.busy),
        load(&met.store),
        load(&met.decided),
        load(&met.undecided),
        load(&met.heard),
    )
}
