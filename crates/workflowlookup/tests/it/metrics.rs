//! `/metrics` of a real server: what is printed stands in the table of `docs/hosting.md`, and counts what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::{LETTER, advance};
use super::http_agent::{answer_of, modern};
use super::http_client::Request;
use super::http_server::Listening;
use super::transcripts::PATIENCE;
use super::{Place, repository};

/// What a server says about itself.
struct Scraped {
    /// The kind of each family.
    families: BTreeMap<String, String>,
    /// Values by name and labels, as they are written.
    samples: BTreeMap<String, f64>,
}

impl Scraped {
    /// Reads it as strictly as Prometheus does.
    fn of(text: &str) -> Self {
        let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
        let mut family = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, about) = help.split_once(' ').unwrap();
                assert!(about.ends_with('.'), "{line}");
                name.clone_into(&mut family);
            } else if let Some(kind) = line.strip_prefix(&format!("# TYPE {family} ")) {
                let before = families.insert(family.clone(), kind.to_owned());
                assert_eq!(before, None, "{family} stands twice");
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
                let name = key.split('{').next().unwrap();
                assert!(name.strip_prefix(&*family).is_some_and(is_suffix), "{line} in {family}");
                let before = samples.insert(key.to_owned(), value.parse().unwrap());
                assert_eq!(before, None, "{key} stands twice");
            }
        }
        Self { families, samples }
    }

    fn get(server: &Listening) -> Self {
        let response = Request::new("GET", "/metrics").send(server.address).unwrap();
        assert_eq!(response.head.status, 200);
        let kind = response.head.header("Content-Type").unwrap();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        Self::of(str::from_utf8(&response.body).unwrap())
    }

    #[track_caller]
    fn value(&self, key: &str) -> f64 {
        self.samples.get(key).copied().unwrap_or_else(|| panic!("there is no {key}"))
    }

    #[track_caller]
    fn assert(&self, expected: &[(&str, f64)]) {
        for (key, value) in expected {
            assert_eq!(self.value(key), *value, "{key}");
        }
    }

    /// The labels that samples of a family have, other than a bucket's.
    fn labels(&self, family: &str) -> BTreeSet<String> {
        let own = self.samples.keys().filter(|key| {
            let name = key.split('{').next().unwrap();
            name.strip_prefix(family).is_some_and(is_suffix)
        });
        let labels = own.filter_map(|key| key.split_once('{')).flat_map(|(_, labels)| {
            labels.trim_end_matches('}').split("\",").map(|label| label.split('=').next().unwrap())
        });
        labels.filter(|label| *label != "le").map(str::to_owned).collect()
    }
}

fn is_suffix(rest: &str) -> bool {
    ["", "_bucket", "_sum", "_count"].contains(&rest)
}

fn start() -> (Place, Listening) {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let server = Listening::start(&place);
    (place, server)
}

/// The answer to a call of the modern era.
fn call(server: &Listening, tool: &str, arguments: &Value) -> Value {
    call_with(server, tool, arguments, &json!({}), json!({}))
}

fn call_with(
    server: &Listening,
    tool: &str,
    arguments: &Value,
    capabilities: &Value,
    mut more: Value,
) -> Value {
    more["name"] = json!(tool);
    more["arguments"] = arguments.clone();
    let response = modern("tools/call", more, capabilities).send(server.address).unwrap();
    answer_of(&response)["result"].clone()
}

fn begin(server: &Listening, arguments: &Value) -> String {
    let started = call(server, "workflow_start", arguments);
    started["structuredContent"]["sessionId"].as_str().unwrap().to_owned()
}

/// A row of the table: kind and labels, by name.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let page = fs::read_to_string(repository().join("docs/hosting.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| metric | kind |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').splitn(4, '|').map(str::trim).collect();
        let [name, kind, labels, question] = cells[..] else { panic!("{line}") };
        assert!(question.len() > 10, "{line}");
        let labels = labels.split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        (name.trim_matches('`').to_owned(), (kind.to_owned(), labels))
    });
    rows.collect()
}

#[test]
fn every_metric_stands_in_the_table() {
    let (place, server) = start();
    begin(&server, &json!({"workflowId": "letter"}));
    let mcp = json!({"transport": "stdio", "command": "no-such-program-anywhere"});
    let registry = json!({"servers": [{"id": "other", "mcp": mcp}]});
    place.write_trusted("mcp.registry.json", registry.to_string());
    call(&server, "call_mcp_tool", &json!({"server": "other", "tool": "a"}));
    let scraped = wait_for(&server, "workflowlookup_sessions{state=\"running\"}", 1.0);
    let documented = documented();
    let kinds: BTreeMap<_, _> =
        documented.iter().map(|(name, (kind, _))| (name.clone(), kind.clone())).collect();
    assert_eq!(scraped.families, kinds, "the table of metrics in docs/hosting.md");
    for (name, (_, labels)) in &documented {
        // A SQLite file lends no connections.
        if !name.starts_with("workflowlookup_store_connections") {
            assert_eq!(&scraped.labels(name), labels, "{name}");
        }
    }
    server.end();
}

fn wait_for(server: &Listening, key: &str, value: f64) -> Scraped {
    let begun = Instant::now();
    loop {
        let scraped = Scraped::get(server);
        if scraped.samples.get(key) == Some(&value) {
            return scraped;
        }
        assert!(begun.elapsed() < PATIENCE, "{key} is {:?}", scraped.samples.get(key));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The names of two labels, as they are printed.
fn counted(method: &str, tool: &str, outcome: &str) -> String {
    format!(
        "workflowlookup_calls_total{{method=\"{method}\",tool=\"{tool}\",outcome=\"{outcome}\"}}"
    )
}

#[test]
fn what_agents_do_is_counted() {
    let (_place, server) = start();
    let start = json!({"workflowId": "letter", "key": "k"});
    let session = begin(&server, &start);
    assert_eq!(begin(&server, &start), session);
    let forms = json!({"elicitation": {"form": {}}});
    let hand_in = |revision, step, output| {
        let arguments = advance(&session, revision, step, output);
        (call_with(&server, "workflow_advance", &arguments, &forms, json!({})), arguments)
    };
    hand_in(0, "write-it", "Hi");
    hand_in(1, "write-it", "Dear Ada");
    // Its user is asked, and says yes.
    let (asked, arguments) = hand_in(2, "send-it", "by post");
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let content = json!({"action": "accept", "content": {"decision": "approve"}});
    let answers =
        json!({"inputResponses": {"gate": content}, "requestState": asked["requestState"]});
    let answer = call_with(&server, "workflow_advance", &arguments, &forms, answers);
    assert_eq!(answer["structuredContent"]["accepted"], true, "{answer}");
    // Not so.
    let (refused, _) = hand_in(1, "file-it", "filed");
    assert_eq!(refused["isError"], true, "{refused}");
    call(&server, "workflow_advance", &json!({"sessionId": session}));
    call(&server, "workflow_get", &json!({"id": "no-such-one"}));
    let none = modern("resources/read", json!({"uri": "workflow://no-such-one"}), &json!({}));
    none.send(server.address).unwrap();
    let revision = &answer["structuredContent"]["revision"];
    let mut copy = json!({"sessionId": session, "revision": revision, "toStep": "write-it"});
    (copy["reason"], copy["fork"]) = (json!("again"), json!(true));
    let copied = call(&server, "workflow_rewind", &copy);
    assert_ne!(copied["structuredContent"]["sessionId"], json!(session), "{copied}");

    let scraped = wait_for(&server, "workflowlookup_sessions{state=\"running\"}", 2.0);
    let advance = "workflow_advance";
    scraped.assert(&[
        (&counted("tools/call", "workflow_start", "ok"), 2.0),
        (&counted("tools/call", advance, "ok"), 3.0),
        (&counted("tools/call", advance, "asked"), 1.0),
        (&counted("tools/call", advance, "refused"), 2.0),
        (&counted("tools/call", advance, "fault"), 0.0),
        (&counted("tools/call", advance, "dropped"), 0.0),
        (&counted("tools/call", "workflow_get", "refused"), 1.0),
        ("workflowlookup_calls_total{method=\"resources/read\",outcome=\"refused\"}", 1.0),
        ("workflowlookup_call_refusals_total{code=\"-32001\"}", 1.0),
        ("workflowlookup_call_refusals_total{code=\"-32005\"}", 1.0),
        ("workflowlookup_call_refusals_total{code=\"-32602\"}", 2.0),
        ("workflowlookup_call_refusals_total{code=\"other\"}", 0.0),
        ("workflowlookup_advances_total{verdict=\"accepted\"}", 2.0),
        ("workflowlookup_advances_total{verdict=\"returned\"}", 1.0),
        ("workflowlookup_advances_total{verdict=\"waiting\"}", 1.0),
        ("workflowlookup_advances_total{verdict=\"declined\"}", 0.0),
        ("workflowlookup_session_starts_total{kind=\"new\"}", 1.0),
        ("workflowlookup_session_starts_total{kind=\"repeated\"}", 1.0),
        ("workflowlookup_session_starts_total{kind=\"copied\"}", 1.0),
        ("workflowlookup_decisions_total{channel=\"client\",ruling=\"approved\"}", 1.0),
        ("workflowlookup_decisions_total{channel=\"client\",ruling=\"declined\"}", 0.0),
        ("workflowlookup_conflicts_total", 0.0),
        ("workflowlookup_sessions{state=\"waiting\"}", 0.0),
        ("workflowlookup_sessions{state=\"complete\"}", 0.0),
        ("workflowlookup_store_up", 1.0),
        ("workflowlookup_store_duration_seconds_count{operation=\"create\"}", 3.0),
        ("workflowlookup_store_duration_seconds_count{operation=\"append\"}", 4.0),
        ("workflowlookup_spans_sent_total", 0.0),
    ]);
    // Each call took its time, once.
    let times = "workflowlookup_call_duration_seconds";
    let labels = "method=\"tools/call\",tool=\"workflow_advance\"";
    let calls = scraped.value(&format!("{times}_count{{{labels}}}"));
    assert_eq!(calls, 6.0);
    assert_eq!(scraped.value(&format!("{times}_bucket{{{labels},le=\"+Inf\"}}")), calls);
    let sum = scraped.value(&format!("{times}_sum{{{labels}}}"));
    assert!(sum > 0.0, "{sum}");
    server.end();
}

#[test]
fn what_is_not_served_is_counted_by_its_reason() {
    let place = Place::new();
    let made = place.run(&["token", "new", "ann"]);
    let server = Listening::start(&place);
    let good = format!("Bearer {}", made.stdout.trim());
    let post = |body: &str| Request::post(body).header("Authorization", &good);
    let refused = [
        (Request::post("{}"), 401),
        (Request::post("{}").header("Authorization", "Bearer nonsense"), 401),
        (post("{}").header("Host", "evil.example"), 403),
        (post("{}").header("Content-Type", "text/plain"), 415),
        (post("nonsense"), 400),
        (Request::listen("no-such-one").header("Authorization", &good), 404),
        (Request::new("GET", "/metrics"), 401),
    ];
    for (request, status) in &refused {
        assert_eq!(request.send(server.address).unwrap().head.status, *status, "{request:?}");
    }
    let scrape = Request::new("GET", "/metrics").header("Authorization", &good);
    let text = scrape.send(server.address).unwrap().body;
    let scraped = Scraped::of(str::from_utf8(&text).unwrap());
    let counts = scraped.samples.iter().filter_map(|(key, value)| {
        let kind = key.strip_prefix("workflowlookup_http_refusals_total{kind=\"")?;
        (*value > 0.0).then(|| (kind.trim_end_matches("\"}"), *value))
    });
    let counts: BTreeMap<_, _> = counts.collect();
    let expected = [
        ("bad_message", 1.0),
        ("bad_request", 1.0),
        ("foreign", 1.0),
        ("not_authenticated", 3.0),
        ("unknown_session", 1.0),
    ];
    assert_eq!(counts, expected.into_iter().collect());
    server.end();
}

/// Two processes, one session, and one of them does not know what the other did.
#[test]
fn who_comes_too_late_is_counted() {
    let (place, first) = start();
    let second = Listening::start(&place);
    let session = begin(&first, &json!({"workflowId": "letter"}));
    let ahead = call(&second, "workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    assert_eq!(ahead["structuredContent"]["accepted"], true, "{ahead}");
    let late = call(&first, "workflow_advance", &advance(&session, 0, "write-it", "Dear Bob"));
    assert_eq!(late["isError"], true, "{late}");
    Scraped::get(&first).assert(&[("workflowlookup_conflicts_total", 1.0)]);
    Scraped::get(&second).assert(&[("workflowlookup_conflicts_total", 0.0)]);
    first.end();
    second.end();
}

#[test]
fn the_process_says_how_it_is() {
    let (_place, server) = start();
    let scraped = Scraped::get(&server);
    scraped.assert(&[("workflowlookup_ready", 1.0)]);
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("workflowlookup_build_info{{version=\"{version}\"}}");
    scraped.assert(&[(&build, 1.0)]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let started = scraped.value("process_start_time_seconds");
    assert!(started > 1.7e9 && started <= now.as_secs_f64(), "{started}");
    if cfg!(target_os = "linux") {
        assert!(scraped.value("process_resident_memory_bytes") > 1e6);
        assert!(scraped.value("process_open_fds") > 3.0);
    }
    server.end();
}

/// Somebody else holds the file, and whoever opens it waits for long. A scrape does not: nothing is known yet when it is
/// answered.
#[test]
fn a_scrape_does_not_wait_for_the_store() {
    let (place, server) = start();
    begin(&server, &json!({"workflowId": "letter"}));
    server.end();
    let path = place.home().join(".local/state/workflowlookup/sessions.db");
    let holder = rusqlite::Connection::open(path).unwrap();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;").unwrap();
    let server = Listening::start(&place);
    // The second comes while somebody tries to open it.
    for scraped in [Scraped::get(&server), Scraped::get(&server)] {
        scraped.assert(&[("workflowlookup_ready", 1.0), ("workflowlookup_conflicts_total", 0.0)]);
        for key in ["workflowlookup_store_up", "workflowlookup_sessions{state=\"running\"}"] {
            assert!(!scraped.samples.contains_key(key), "it has waited for {key}");
        }
    }
}
