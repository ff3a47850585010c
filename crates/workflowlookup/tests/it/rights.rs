//! Who may do what over HTTP: everybody tries everything, in both eras and with both ways to decide at gates. The table is
//! a page of the documents, made from what really came back, and every refusal is in the audit log.

mod actions;
mod audit;
mod endpoints;
mod house;
mod issuer;
mod live;
mod loop_gates;
mod sharing;
mod strict;

use std::time::Duration;

use serde_json::json;

use actions::{Action, Came, Kind, Scene};
use house::{House, PEOPLE};

use super::agent::Era;
use super::generated::assert_current;

/// What becomes of it, by who wants it.
fn expected(kind: Kind, who: Option<&str>, gates: &str) -> &'static str {
    let Some(who) = who else { return "401" };
    let is_near = ["owner", "colleague", "approver", "boss"].contains(&who);
    let works = ["owner", "other", "colleague"].contains(&who);
    match kind {
        Kind::Look => "yes",
        Kind::Begin if works => "yes",
        Kind::See if is_near => "yes",
        Kind::See => "not found",
        Kind::List if is_near => "yes",
        Kind::Own if ["owner", "boss"].contains(&who) => "yes",
        Kind::List | Kind::Own => "no",
        Kind::Begin | Kind::Work | Kind::Answer if !works => "needs `use`",
        Kind::Work | Kind::Answer if who == "other" => "not found",
        Kind::Answer if gates == "strict" => "it waits",
        Kind::Begin | Kind::Work | Kind::Answer => "yes",
        Kind::Decide if who == "approver" => "yes",
        Kind::Decide if who == "stranger" => "404",
        Kind::Manage if who == "boss" => "yes",
        Kind::Decide | Kind::Manage => "403",
    }
}

#[test]
fn generated_table_of_rights() {
    let everybody: Vec<Option<&'static str>> =
        PEOPLE.iter().map(|(name, _)| Some(*name)).chain([None]).collect();
    let runs = [
        ("asking", Era::Legacy),
        ("asking", Era::Modern),
        ("strict", Era::Legacy),
        ("strict", Era::Modern),
    ];
    let tables = std::thread::scope(|scope| {
        let threads = runs.map(|(gates, era)| {
            let everybody = &everybody;
            scope.spawn(move || played(gates, era, everybody))
        });
        threads.map(|thread| thread.join().unwrap())
    });
    let names = actions::all();
    let mut page = "# Who may do what\n\nMade by the tests: everybody tries everything with the real server over HTTP, in \
        both eras of the protocol and with both kinds of `--gates`, and what is refused is looked for in the audit log. \
        Sessions are the owner's, and shared with the colleague and the approver. *not found* is, to the byte, what comes \
        back for a session that does not exist.\n\n"
        .to_owned();
    let heads = everybody.iter().map(|who| match who {
        Some(name) => {
            let (_, right) = PEOPLE.iter().find(|(own, _)| own == name).unwrap();
            format!("{name} (`{right}`)")
        }
        None => "nobody".to_owned(),
    });
    page.push_str(&format!("| | {} |\n", heads.collect::<Vec<_>>().join(" | ")));
    page.push_str(&format!("|---|{}\n", "---|".repeat(everybody.len())));
    for (row, action) in names.iter().enumerate() {
        let cells = (0..everybody.len()).map(|column| {
            let [asking, _, strict, _] = &tables;
            match (&*asking[row][column], &*strict[row][column]) {
                (asking, strict) if asking == strict => asking.to_owned(),
                (asking, strict) => format!("{asking}; with strict gates {strict}"),
            }
        });
        page.push_str(&format!(
            "| {} | {} |\n",
            action.name,
            cells.collect::<Vec<_>>().join(" | ")
        ));
    }
    assert_current("docs/hosting/rights.md", &page);
}

/// What came of everything, by row and by who tried it.
fn played(gates: &str, era: Era, everybody: &[Option<&'static str>]) -> Vec<Vec<String>> {
    let house = House::open(gates);
    let owner = house.client(Some("owner"), era);
    let clients: Vec<_> = everybody.iter().map(|who| house.client(*who, era)).collect();
    // The handshake of who has no token was turned away too.
    let mut turned_away = usize::from(era == Era::Legacy);
    let mut rows = Vec::new();
    for Action { name, kind, run } in actions::all() {
        let mut row = Vec::new();
        for (who, client) in everybody.iter().zip(&clients) {
            let before = house.audit().len();
            let scene = Scene { house: &house, who: *who, client, owner: &owner };
            let came = run(&scene);
            let context = format!("{name} by {who:?}, {gates}");
            assert_eq!(came.said, expected(kind, *who, gates), "{context}");
            turned_away += count_of_401(&came, kind, era);
            assert_audited(&house, before, *who, &came, &context);
            row.push(came.said);
        }
        house.end_shares();
        rows.push(row);
    }
    assert_strangers_counted(&house, turned_away);
    let lines = house.audit();
    for secret in house.secrets() {
        let secret = secret.rsplit('_').next().unwrap();
        assert!(!lines.iter().any(|line| line.to_string().contains(secret)), "a token");
    }
    let complaints = house.server.end();
    assert_eq!(complaints.iter().find(|line| line.contains("panicked")), None);
    rows
}

/// How often somebody was turned away by trying this once.
fn count_of_401(came: &Came, kind: Kind, era: Era) -> usize {
    match (&*came.said, kind, era) {
        // With a client of its own, whose handshake is turned away as well.
        ("401", Kind::Answer, Era::Legacy) => 2,
        ("401", _, _) => 1,
        _ => 0,
    }
}

/// What was refused is written down: to whom, and about which session.
fn assert_audited(house: &House, before: usize, who: Option<&str>, came: &Came, context: &str) {
    let is_refusal = ["not found", "needs `use`", "403", "404"].contains(&&*came.said);
    let decides = context.contains("POST /sessions") || context.contains("confirms");
    let is_decision = decides && came.said == "yes";
    let lines = house.audit().split_off(before);
    let refusals: Vec<_> = lines.iter().filter(|line| line["event"] == "refused").collect();
    if is_refusal {
        let names_it = ["not found", "404"].contains(&&*came.said);
        let about = came.session.as_ref().filter(|_| names_it);
        let is_it = |line: &&&serde_json::Value| {
            line["principal"] == json!(who)
                && about.is_none_or(|session| line["session"] == **session)
                && line["wanted"].is_string()
                && line["reason"].is_string()
        };
        assert!(refusals.iter().any(|line| is_it(&line)), "{context}: {lines:?}");
    } else {
        assert!(refusals.is_empty(), "{context}: {refusals:?}");
    }
    let decided = lines.iter().filter(|line| line["event"] == "decided");
    let decided: Vec<_> = decided.collect();
    assert_eq!(decided.len(), usize::from(is_decision), "{context}: {lines:?}");
    for line in decided {
        let channel = if context.contains("POST") { "token" } else { "client" };
        assert_eq!((&line["principal"], &line["channel"]), (&json!(who), &json!(channel)));
        assert_eq!((&line["session"], &line["step"]), (&json!(came.session), &json!("send-it")));
        assert_eq!(line["version"], 3);
    }
}

/// Each of those who were not let in has a line, or is in the number of those that were left out.
fn assert_strangers_counted(house: &House, expected: usize) {
    // What was left out in a second is said in a later one.
    std::thread::sleep(Duration::from_millis(1100));
    house.client(None, Era::Modern).call("workflow_list", &json!({}));
    let lines = house.audit();
    let written = lines.iter().filter(|line| line["event"] == "turnedAway").count();
    let left_out: u64 = lines.iter().filter_map(|line| line["leftOut"].as_u64()).sum();
    assert_eq!(written + usize::try_from(left_out).unwrap(), expected + 1);
}
