//! The line between a server and its PostgreSQL is cut, held up, slowed down and torn in every way. Whoever calls
//! meanwhile gets a right answer, or hears soon that the same call may be made again; nobody has to restart anything,
//! and in the end everything has happened once.

mod away;
mod client;
mod crowd;
mod outages;
mod over_stdio;
mod site;
mod walk;

use client::{Answer, Client};
use site::Site;
use walk::Walk;

/// A workflow that is long enough for every test.
const LONG: &str = r#"{
    "id": "long-one", "name": "Long", "description": "For a test", "version": "1.0.0",
    "steps": [
        {"id": "rounds", "type": "loop", "title": "Rounds",
         "loop": {"type": "for", "count": 500, "maxIterations": 500},
         "body": [{"id": "round", "title": "Round", "prompt": "Round {{currentIteration}}."}]}
    ]
}"#;
