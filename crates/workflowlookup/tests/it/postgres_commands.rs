//! The command line with its sessions in a PostgreSQL: every command does what it does with a file, and a session goes
//! from one to the other and back as it is.

mod refusing;

use private_postgres::Database;
use serde_json::{Value, json};

use super::agent::{Agent, LETTER, advance, structured};
use super::*;

/// Sessions that were exported elsewhere; what is in them is told in `session_commands.rs`.
const EXPORTED: [&str; 3] = ["finished", "copy", "waiting"];
const FINISHED: &str = "7k2m3v9xq0b8d5fgh1jn";
const WAITING: &str = "c4r8t2w6y0a1e3g5h7kp";

fn exported(name: &str) -> String {
    let path = format!("crates/workflowlookup/tests/it/sessions/{name}.json");
    fs::read_to_string(repository().join(path)).unwrap()
}

fn import(place: &Place, document: &str) {
    let done = place.run_with_input(&["session", "import", "-"], document);
    assert_eq!(done.status, 0, "{}", done.shown());
}

fn export(place: &Place, id: &str) -> String {
    let done = place.run(&["session", "export", id]);
    assert_eq!(done.status, 0, "{}", done.shown());
    done.stdout
}

/// The same sessions in a file and in a database.
struct Both {
    file: Place,
    server: Place,
    _database: Database,
}

impl Both {
    fn new() -> Self {
        let database = Database::create().unwrap();
        let both = Self {
            file: Place::new(),
            server: Place::storing(database.url()),
            _database: database,
        };
        for name in EXPORTED {
            planted::plant(&both.file, &exported(name));
            planted::plant(&both.server, &exported(name));
        }
        both
    }

    /// What a command does, which is the same in both.
    fn run(&self, arguments: &[&str]) -> Done {
        let [file, server] = [&self.file, &self.server].map(|place| place.run(arguments));
        assert_eq!(server.shown(), file.shown(), "{arguments:?}");
        server
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn looking_at_sessions_shows_what_a_file_shows() {
    let both = Both::new();
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["list", "--limit", "1"],
        &["list", "--status", "complete"],
        &["list", "--workflow", "mend-a-fault", "--search", "cookie"],
        &["list", "--search", "no-such-word"],
        &["list", "--workflow", "other"],
        &["show", "7k2m3"],
        &["show", "7k2m"],
        &["show", FINISHED, "--json"],
        &["show", WAITING, "--markdown"],
        &["show", "nobody-has-this"],
        &["export", FINISHED],
        &["verify"],
        &["verify", "--json"],
        &["verify", WAITING],
        &["prune", "--older-than", "1d", "--dry-run"],
    ] {
        both.run(&[&["session"], arguments].concat());
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_person_decides_and_clears_away() {
    let both = Both::new();
    both.run(&["session", "approve", FINISHED]);
    both.run(&["session", "approve", "c4r8"]);
    both.run(&["session", "approve", "c4r8", "--version", "3", "--reason", "good"]);
    assert_eq!(both.run(&["session", "approve", "c4r8"]).status, 1, "it does not wait any more");
    both.run(&["session", "list", "--status", "waiting"]);
    let shown = both.server.run(&["session", "show", WAITING, "--json"]).json();
    assert_eq!((&shown["status"], &shown["stepId"]), (&json!("running"), &json!("mend")));
    assert_eq!(
        both.run(&["session", "prune", "--older-than", "1d"]).stdout,
        "1 complete session removed\n"
    );
    assert_eq!(both.run(&["session", "show", FINISHED]).status, 1);
    assert_eq!(both.run(&["session", "verify"]).status, 0);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_session_moves_to_a_server_and_back() {
    let both = Both::new();
    let elsewhere = Place::new();
    elsewhere.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&elsewhere);
    let started = json!({"workflowId": "letter", "key": "k", "goal": "Grüße → \"Ada\" \\ \u{1} 🖋"});
    let id = structured(&agent.call("workflow_start", &started))["sessionId"].clone();
    let id = id.as_str().unwrap();
    for (revision, output) in [(0, "Hey"), (1, "Dear Ada, \u{0} and\r\n\t\"more\" 🖋")] {
        agent.call("workflow_advance", &advance(id, revision, "write-it", output));
    }
    agent.end();
    import(&both.server, &export(&elsewhere, id));
    for id in [FINISHED, WAITING, id] {
        let document = export(&both.server, id);
        let from = if both.file.run(&["session", "show", id]).status == 0 {
            &both.file
        } else {
            &elsewhere
        };
        let events = |document: &str| {
            let log: Value = serde_json::from_str(document).unwrap();
            let events = log["events"].as_array().unwrap().iter();
            events.map(|event| event["body"].clone()).collect::<Vec<_>>()
        };
        let before = events(&export(from, id));
        assert_eq!(events(&document)[..before.len()], before);
        let back = Place::new();
        import(&back, &document);
        let (sent, came) = (events(&document), events(&export(&back, id)));
        assert_eq!(came[..sent.len()], sent);
        assert_eq!(came.len(), sent.len() + 1);
        assert_eq!(back.run(&["session", "verify"]).status, 0);
    }
    // Nobody's session is overwritten.
    let again = both.server.run_with_input(&["session", "import", "-"], &exported("finished"));
    assert_eq!(again.status, 1, "{}", again.shown());
    // It goes on where it is now, but its key does not lead to it any more.
    both.server.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&both.server);
    assert_ne!(structured(&agent.call("workflow_start", &started))["sessionId"], *id);
    let handed_in = agent.call("workflow_advance", &advance(id, 2, "send-it", "by post"));
    assert!(structured(&handed_in)["waiting"].is_object(), "{handed_in}");
    agent.end();
    assert_eq!(both.server.run(&["session", "verify"]).status, 0);
}

/// By a person at the command line, who leaves and comes back.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_run_goes_on_where_it_was() {
    let database = Database::create().unwrap();
    let place = Place::storing(database.url());
    place.write("workflows/letter.json", LETTER);
    let begun = place.run_with_input(&["run", "letter"], "Hey\n.\nDear Ada\n.\n");
    let line = begun.stdout.lines().find_map(|line| line.strip_prefix("session: "));
    let id = line.unwrap_or_else(|| panic!("{}", begun.shown())).to_owned();
    let resumed = place.run_with_input(&["run", "--resume", &id], "by post\n.\ny\n");
    assert!(resumed.stdout.contains("confirmed"), "{}", resumed.shown());
    let shown = place.run(&["session", "show", &id, "--json"]).json();
    let kinds: Vec<&Value> = events(&shown).iter().map(|event| &event["event"]["type"]).collect();
    assert_eq!(kinds, ["started", "returned", "accepted", "submitted", "approved"]);
    // What is typed wins over the environment.
    let file = place.run(&["session", "list", "--json", "--store", "sqlite:other.db"]).json();
    assert_eq!(file["sessions"], json!([]));
    let typed = Place::new();
    let key = place.home().join(".local/state/workflowlookup/key");
    let options = ["--store", &database.url(), "--key-file", key.to_str().unwrap()];
    let listed = typed.run(&[&["session", "list", "--json"], &options[..]].concat()).json();
    assert_eq!(listed["sessions"][0]["sessionId"], *id);
}

fn events(shown: &Value) -> &Vec<Value> {
    shown["events"].as_array().unwrap_or_else(|| panic!("{shown}"))
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_doctor_looks_at_the_server_too() {
    let database = Database::create().unwrap();
    let place = Place::storing(database.url());
    let said = checks(&place.run(&["doctor", "--json"]), "sessions");
    let kept = format!("there are no sessions yet; they will be kept in `{}`", database.url());
    assert_eq!(said, [("ok".to_owned(), kept)]);
    let tables = "select count(*) from pg_tables where schemaname = 'workflowlookup'";
    assert_eq!(database.query(tables).unwrap().trim(), "0", "who only looks makes nothing");
    assert_eq!(place.run(&["token", "new", "ann"]).status, 0);
    let done = place.run(&["doctor", "--json"]);
    let said = checks(&done, "sessions");
    assert_eq!(said, [("ok".to_owned(), format!("sessions are kept in `{}`", database.url()))]);
    let [(level, answered)] = &checks(&done, "handshake")[..] else { panic!("{}", done.shown()) };
    assert_eq!(level, "ok", "{answered}");
}

/// Tokens were made to be asked for, and are not where they are looked for.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn tokens_that_are_not_used_are_told_of() {
    let database = Database::create().unwrap();
    let place = Place::storing(database.url());
    let own = place.home().join(".local/state/workflowlookup/tokens.json");
    assert_eq!(place.run(&["token", "new", "ann", "--tokens", own.to_str().unwrap()]).status, 0);
    let refused = place.run(&["serve", "--http", "127.0.0.1:0"]);
    assert_eq!(refused.status, 1, "{}", refused.shown());
    assert!(refused.stderr.contains("none in the store"), "{}", refused.shown());
}

/// What a doctor says of something: how bad it is, and what.
fn checks(done: &Done, about: &str) -> Vec<(String, String)> {
    let checks = done.json()["checks"].as_array().unwrap().clone();
    let checks = checks.iter().filter(|check| check["check"] == about);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    checks.map(|check| (text(&check["level"]), text(&check["message"]))).collect()
}
