//! The server is killed with SIGKILL while advances are in flight, again and again in one home: what it had answered
//! is there, what it had not can be asked again, and nothing happens twice. This proves that a crash of the process
//! loses nothing. It says nothing of a power cut, for which we rely on the disk's word.

mod run;

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Place;
use super::agent::{Agent, Era, Heard};
use super::transcripts::Process;
use run::{DEFINITION, Run};

/// How many sessions are advanced at once.
const SESSIONS: usize = 6;
/// The kill comes after less than so many answers of a round, and within the time in which two more could come.
const ANSWERS_MAX: u64 = 32;
/// How long that is at first,
const PACE: Duration = Duration::from_millis(1);
/// and at most, whatever holds the machine up.
const PACE_MAX: Duration = Duration::from_millis(25);

#[test]
fn what_was_answered_survives_a_kill() {
    let rounds = if std::env::var_os("WORKFLOWLOOKUP_LONG").is_some() { 1_000 } else { 200 };
    let place = Place::new();
    place.write("workflows/long-one.json", DEFINITION);
    let mut crashes = Crashes::new(place);
    for _ in 0..rounds {
        crashes.choose();
        crashes.round();
    }
    crashes.retire_all();
    crashes.check_everything();
    verify_all(&crashes.place);
    let runs = &crashes.retired;
    let sum = |count: fn(&Run) -> usize| runs.iter().map(count).sum::<usize>();
    let (answered, found, applied) =
        (sum(|run| run.answers.len()), sum(|run| run.found), sum(|run| run.applied));
    // Otherwise the kills came at moments that prove nothing.
    assert!(found > 0 && applied > 0, "{found} {applied}");
    eprintln!(
        "{rounds} kills, {} sessions, {answered} acknowledged advances, {} unacknowledged ones replayed ({found} \
         had been stored, {applied} had not), 0 lost",
        runs.len(),
        found + applied,
    );
}

/// The calls that have no answer yet, with the number of their session.
type UnderWay = HashMap<u64, usize>;

struct Crashes {
    place: Place,
    random: Random,
    /// The sessions that are worked on.
    runs: Vec<Run>,
    /// The others: complete, or left alone for no reason.
    retired: Vec<Run>,
    /// How long the slowest answer of the last round took.
    pace: Duration,
}

impl Crashes {
    fn new(place: Place) -> Self {
        let (runs, retired) = (Vec::new(), Vec::new());
        Self { place, random: Random(2026), runs, retired, pace: PACE }
    }

    /// Some go on, and some begin.
    fn choose(&mut self) {
        if self.random.one_in(4) && !self.runs.is_empty() {
            let at = self.random.below(self.runs.len() as u64) as usize;
            self.retired.push(self.runs.swap_remove(at));
        }
        self.retired.extend(self.runs.extract_if(.., |run| run.is_complete()));
        while self.runs.len() < SESSIONS {
            self.runs.push(Run::new(self.runs.len() + self.retired.len()));
        }
    }

    fn retire_all(&mut self) {
        self.retired.append(&mut self.runs);
    }

    /// One life of the server: it is checked, goes on, and is killed.
    fn round(&mut self) {
        let mut agent = self.agent();
        let mut under_way = HashMap::new();
        // Sometimes it is killed again before it has come to itself.
        if self.random.one_in(8) {
            self.go_on(&mut agent, &mut under_way);
        } else {
            self.runs.iter_mut().for_each(|run| run.check(&mut agent));
            self.go_on(&mut agent, &mut under_way);
            let answers = self.random.below(ANSWERS_MAX);
            self.hear(answers, &mut agent, &mut under_way);
        }
        self.spin();
        for said in agent.process.kill() {
            self.heard(Heard::of(said), None, &mut under_way);
        }
    }

    /// Makes the next call of every session, all at once.
    fn go_on(&mut self, agent: &mut Agent, under_way: &mut UnderWay) {
        for (at, run) in self.runs.iter_mut().enumerate() {
            under_way.extend(run.go_on(agent, &mut self.random).map(|id| (id, at)));
        }
    }

    /// Takes so many answers, and makes the next call behind each.
    fn hear(&mut self, answers: u64, agent: &mut Agent, under_way: &mut UnderWay) {
        let (mut heard, mut slowest) = (0, Duration::ZERO);
        while heard < answers && !under_way.is_empty() {
            let start = Instant::now();
            let said = agent.hear().expect("it is not killed yet");
            slowest = slowest.max(start.elapsed());
            if let Some(at) = self.heard(said, Some(agent), under_way) {
                heard += 1;
                let next = self.runs[at].go_on(agent, &mut self.random);
                under_way.extend(next.map(|id| (id, at)));
            }
        }
        if heard > 0 {
            self.pace = slowest.min(PACE_MAX);
        }
    }

    /// Lets a moment pass that is too short to sleep.
    fn spin(&mut self) {
        let part = self.random.below(1_000) as u32;
        let until = Instant::now() + 2 * self.pace * part / 1_000;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    /// Takes what was said; the session of an answer.
    fn heard(
        &mut self,
        heard: Heard,
        agent: Option<&mut Agent>,
        under_way: &mut UnderWay,
    ) -> Option<usize> {
        match heard {
            Heard::Answer { id, result } => {
                let at = under_way.remove(&id).expect("one answer for each call");
                self.runs[at].answered(result);
                Some(at)
            }
            Heard::Asked { id, .. } => {
                let decision = match self.random.below(8) {
                    0 => json!({"action": "cancel"}),
                    1 => {
                        json!({"action": "accept", "content": {"decision": "reject", "reason": "no"}})
                    }
                    _ => json!({"action": "accept", "content": {"decision": "approve"}}),
                };
                if let Some(agent) = agent {
                    agent.reply(&id, &decision);
                }
                None
            }
            Heard::Told { .. } => None,
        }
    }

    /// The last one is not killed: nothing is missing in any session, and each call still has its answer.
    fn check_everything(&mut self) {
        let mut agent = self.agent();
        for run in &mut self.retired {
            run.check(&mut agent);
            run.check_all_answers(&mut agent);
        }
        agent.end();
        let log = fs::read_to_string(self.log()).unwrap();
        assert_eq!(log, "", "the server has nothing to complain about");
    }

    fn agent(&self) -> Agent {
        let mut command = self.place.command(&["--no-bundled", "serve"]);
        let log = OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        command.stderr(log);
        Agent::connect(Process::spawn(command), Era::Legacy, json!({"elicitation": {}}))
    }

    fn log(&self) -> PathBuf {
        self.place.root.path().join("log")
    }
}

/// Recomputes every chain, and replays every session.
fn verify_all(place: &Place) {
    let done = place.run(&["session", "verify"]);
    assert_eq!(done.status, 0, "{}", done.shown());
}

/// Numbers that are the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
