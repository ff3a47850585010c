//! What a user reads where the server cannot be used: what is wrong, and what to try. A password is in none of it.

use std::net::{Ipv4Addr, SocketAddr};

use private_postgres::{Cut, Database, Flow};

use super::*;
use crate::http_replicas::Reserved;

const PASSWORD: &str = "s3cret-Pa55word";

/// With our password, which a server that trusts everybody does not look at.
fn with_password(url: &str) -> String {
    url.replacen('@', &format!(":{PASSWORD}@"), 1)
}

/// The first line of what is refused, and what to try.
fn refused(done: &Done) -> (&str, &str) {
    assert_eq!((done.status, &*done.stdout), (1, ""), "{}", done.shown());
    let mut lines = done.stderr.lines();
    let error = lines.next().and_then(|line| line.strip_prefix("error: "));
    let hint = lines.next().and_then(|line| line.trim_start().strip_prefix("try: "));
    let text = || panic!("{}", done.shown());
    (error.unwrap_or_else(text), hint.unwrap_or_else(text))
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_database_that_is_not_there() {
    let database = Database::create().unwrap();
    let url = database.url().replace(database.name(), "nobody_made_this");
    let place = Place::storing(url);
    let done = place.run(&["session", "list"]);
    let (error, _) = refused(&done);
    assert!(error.contains(r#"database "nobody_made_this" does not exist"#), "{error}");
    let json = place.run(&["session", "list", "--json"]).json();
    assert_eq!(json["error"]["code"], -32006);
    let done = place.run(&["doctor", "--json"]);
    assert_eq!(done.status, 1);
    let [(level, message)] = &checks(&done, "sessions")[..] else { panic!("{}", done.shown()) };
    assert_eq!(level, "problem");
    assert!(message.contains("nobody_made_this"), "{message}");
}

/// All are told so in the end, and none waits for ever.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_that_is_away() {
    let reserved = Reserved::new();
    let nobody = Place::storing(url_at(reserved.address));
    let database = Database::create().unwrap();
    let cut = Cut::before(database.address().unwrap()).unwrap();
    cut.set(Flow::Swallow);
    let silent = Place::storing(database.url_at(cut.address()));
    std::thread::scope(|scope| {
        for (place, why) in [(&nobody, "Connection refused"), (&silent, "does not answer")] {
            for arguments in [
                &["session", "list"][..],
                &["session", "show", FINISHED],
                &["session", "approve", FINISHED],
                &["session", "verify"],
                &["session", "prune", "--older-than", "1d"],
                &["run", "investigate-bug"],
            ] {
                scope.spawn(move || {
                    let done = place.run(arguments);
                    let (error, hint) = refused(&done);
                    assert!(error.contains("the store cannot be used now"), "{error}");
                    assert!(error.contains(why), "{arguments:?}: {error}");
                    assert!(hint.contains("again"), "{hint}");
                });
            }
            scope.spawn(move || {
                let done = place.run(&["doctor", "--json"]);
                let said = checks(&done, "sessions");
                assert!(said[0].0 == "problem" && said[0].1.contains(why), "{said:?}");
                // The server itself is well, and serves what it can.
                let said = checks(&done, "handshake");
                assert_eq!(said[0].0, "ok", "{said:?}");
            });
        }
    });
}

fn url_at(address: SocketAddr) -> String {
    format!("postgres://postgres@{address}/sessions")
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn another_key() {
    let database = Database::create().unwrap();
    let first = Place::storing(database.url());
    import(&first, &exported("finished"));
    let second = Place::storing(database.url());
    for arguments in
        [&["session", "list"][..], &["session", "export", FINISHED], &["run", "investigate-bug"]]
    {
        let done = second.run(arguments);
        let (error, hint) = refused(&done);
        assert!(error.contains("was written with another key"), "{error}");
        assert!(hint.contains("--key-file") && hint.contains("WORKFLOWLOOKUP_KEY"), "{hint}");
    }
    let done = second.run_with_input(&["session", "import", "-"], &exported("waiting"));
    assert!(refused(&done).0.contains("another key"), "{}", done.shown());
    assert_eq!(first.run(&["session", "list"]).stdout.lines().count(), 1);
}

/// Whatever is done with an address, and whatever is wrong with it.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_password_is_never_shown() {
    let database = Database::create().unwrap();
    let good = with_password(&database.url());
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let addresses = [
        good.clone(),
        with_password(&url_at(nobody)),
        good.replace(database.name(), "nobody_made_this"),
        good.replace("127.0.0.1", "no-such-host.invalid"),
        format!("{good}?sslmode=perhaps"),
        format!("{good}?colour=blue"),
        format!("{good}?password={PASSWORD}"),
        good.replace("127.0.0.1:", "127.0.0.1:x"),
        good.replace("postgres://", "postgress://"),
    ];
    let commands = [
        &["session", "list"][..],
        &["session", "list", "--json"],
        &["doctor"],
        &["connect", "claude-code"],
        &["run", "investigate-bug"],
        &["serve", "--log-level", "debug"],
        &["serve", "--help"],
    ];
    let places = addresses.each_ref().map(|address| Place::storing(address.as_str()));
    let listed = places[0].run(&["session", "list"]);
    assert_eq!(listed.status, 0, "it is a good address: {}", listed.shown());
    // Some wait for somebody who never answers, and so they do it side by side.
    std::thread::scope(|scope| {
        for (place, address) in places.iter().zip(&addresses) {
            for arguments in commands {
                let typed = [&["--store", address], arguments].concat();
                for arguments in [arguments.to_vec(), typed] {
                    scope.spawn(move || {
                        let done = place.run(&arguments);
                        assert!(!done.shown().contains(PASSWORD), "{}", done.shown());
                    });
                }
            }
        }
    });
}
