//! Whether people find what they look for. The servers and the questions stand in `cases/`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;
use tool_schema::tool::{Annotations, Json};

use super::*;

fn tool(name: &str, description: &str, arguments: &[(&str, &str)]) -> Tool {
    let properties: serde_json::Map<String, serde_json::Value> = arguments
        .iter()
        .map(|(name, description)| {
            ((*name).to_owned(), json!({"type": "string", "description": description}))
        })
        .collect();
    Tool {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        input_schema: Json::from(&json!({"type": "object", "properties": properties})),
        output_schema: None,
        annotations: Annotations::default(),
        other: Default::default(),
    }
}

struct Case {
    id: String,
    title: String,
    summary: String,
    domains: Vec<String>,
    tags: Vec<String>,
    examples: Vec<String>,
    visibility: Visibility,
    priority: u8,
    tools: Vec<Tool>,
}

impl Case {
    fn card(&self) -> Card<'_> {
        Card {
            id: &self.id,
            title: Some(&self.title),
            summary: Some(&self.summary),
            domains: &self.domains,
            tags: &self.tags,
            examples: &self.examples,
            visibility: self.visibility,
            priority: self.priority,
            said: Said::default(),
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let lines = include_str!("../cases/servers.txt").lines();
    for line in lines.filter(|line| !line.starts_with("# ")) {
        if let Some(card) = line.strip_prefix("## ") {
            let [id, title, summary, domains, tags, examples, visibility, priority] =
                *card.split(" |").map(str::trim).collect::<Vec<_>>()
            else {
                panic!("{line}")
            };
            let list = |text: &str, sign: &str| -> Vec<String> {
                let parts = text.split(sign).filter(|part| !part.is_empty());
                parts.map(str::to_owned).collect()
            };
            cases.push(Case {
                id: id.to_owned(),
                title: title.to_owned(),
                summary: summary.to_owned(),
                domains: list(domains, ", "),
                tags: list(tags, ", "),
                examples: list(examples, "; "),
                visibility: match visibility {
                    "default" => Visibility::Default,
                    "opt_in" => Visibility::OptIn,
                    "experimental" => Visibility::Experimental,
                    other => panic!("{other}"),
                },
                priority: priority.parse().unwrap(),
                tools: Vec::new(),
            });
        } else if let [name, description, arguments] =
            *line.split(" |").map(str::trim).collect::<Vec<_>>()
        {
            let arguments: Vec<(&str, &str)> =
                (arguments.split("; ").filter(|part| !part.is_empty()))
                    .map(|part| part.split_once(": ").unwrap_or((part, "")))
                    .collect();
            cases.last_mut().unwrap().tools.push(tool(name, description, &arguments));
        }
    }
    cases
}

fn index() -> Index {
    let mut index = Index::default();
    for case in cases() {
        index.put_server(case.card());
        index.put_tools(&case.id, &case.tools);
    }
    index
}

static INDEX: LazyLock<Index> = LazyLock::new(index);

fn tools(index: &Index, query: &str) -> Vec<String> {
    let found = index.search(query, &Filter::default(), 10);
    found.tools.iter().map(|hit| format!("{}.{}", hit.server, hit.tool)).collect()
}

fn servers(index: &Index, query: &str, filter: &Filter<'_>) -> Vec<String> {
    index.search(query, filter, 50).servers.into_iter().map(|hit| hit.id).collect()
}

#[test]
fn questions_find_their_tool() {
    let index = index();
    let (mut asked, mut wrong) = (0, String::new());
    for line in include_str!("../cases/questions.txt").lines().filter(|line| !line.starts_with('#'))
    {
        let (question, wanted, places) = match (line.split_once(" => "), line.split_once(" ~> ")) {
            (Some((question, wanted)), _) => (question, wanted, 1),
            (_, Some((question, wanted))) => (question, wanted, 3),
            _ => panic!("{line}"),
        };
        asked += 1;
        let found = tools(&index, question);
        if !found.iter().take(places).any(|tool| tool == wanted) {
            let scored = index.search(question, &Filter::default(), 5).tools;
            let scored: Vec<String> = scored
                .iter()
                .map(|hit| format!("{}.{} {:.2}", hit.server, hit.tool, hit.score))
                .collect();
            let _ = writeln!(wrong, "{line}\n    {}", scored.join("\n    "));
        }
    }
    assert!(asked >= 40, "{asked}");
    assert!(wrong.is_empty(), "{wrong}");
}

/// What comes after the first is worth a look when something changes.
#[test]
fn the_first_five() {
    let index = index();
    let mut table = String::new();
    for question in [
        "create issue",
        "delete",
        "search",
        "send a message",
        "database",
        "image text",
        "github",
        "error",
    ] {
        let found = index.search(question, &Filter::default(), 5);
        let servers: Vec<String> = found.servers.iter().map(|hit| hit.id.clone()).collect();
        let _ = writeln!(table, "{question}\n  servers: {}", servers.join(", "));
        for hit in found.tools {
            let _ = writeln!(table, "  {:.1} {}.{}", hit.score, hit.server, hit.tool);
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn servers_are_found_by_their_cards() {
    let index = index();
    let first = |query: &str| {
        servers(&index, query, &Filter::default()).into_iter().next().unwrap_or_default()
    };
    for (query, id) in [
        ("github", "github"),
        ("GitHub", "github"),
        ("git hub", "github"),
        ("payments", "stripe"),
        ("sql databases", "postgres"),
        ("chat with the team", "slack"),
        ("google calendar", "google-calendar"),
        ("brave", "brave-search"),
        ("k8s", "kubernetes"),
        ("clock in Tokyo", "time"),
        ("crashes in production", "sentry"),
    ] {
        assert_eq!(first(query), id, "{query}");
    }
    assert!(servers(&index, "zzzz", &Filter::default()).is_empty());
}

#[test]
fn hidden_servers_are_shown_when_they_are_named_or_wanted() {
    let index = index();
    let plain = Filter::default();
    let shows = |query: &str, filter: &Filter<'_>, id: &str| {
        let found = index.search(query, filter, 100);
        let tools = found.tools.iter().any(|hit| hit.server == id);
        (found.servers.iter().any(|hit| hit.id == id), tools)
    };
    assert_eq!(shows("migration staging database", &plain, "staging-db"), (false, false));
    assert_eq!(shows("run a migration on staging-db", &plain, "staging-db"), (true, true));
    assert_eq!(shows("Staging-DB?", &plain, "staging-db"), (true, true));
    assert_eq!(shows("my-staging-db migration", &plain, "staging-db"), (false, false));
    assert_eq!(shows("", &plain, "staging-db"), (false, false));
    let ids = ["staging-db".to_owned(), "lab-vision".to_owned()];
    let named = Filter { named: &ids, experimental: false };
    assert_eq!(shows("migration", &named, "staging-db"), (true, true));
    assert_eq!(shows("", &named, "staging-db"), (true, false));
    assert_eq!(shows("lab-vision ocr image", &named, "lab-vision"), (false, false));
    let wanted = Filter { named: &[], experimental: true };
    assert_eq!(shows("ocr image", &wanted, "lab-vision"), (true, true));
    assert_eq!(shows("", &wanted, "lab-vision"), (true, false));
}

#[test]
fn without_a_question_servers_stand_by_priority() {
    let index = index();
    let all = servers(&index, "  ", &Filter::default());
    assert_eq!(all.len(), 16);
    assert_eq!(all[..4], ["github", "postgres", "slack", "brave-search"]);
    // Words without a meaning are looked for where there is nothing else.
    assert_eq!(tools(&index, "me?"), ["github.get_me"]);
}

#[test]
fn equal_servers_stand_by_priority_and_then_by_id() {
    let mut index = Index::default();
    for (id, priority) in [("b", 5), ("a", 5), ("c", 9), ("d", 1)] {
        let summary = Some("weather and wind");
        let card = Card {
            id,
            title: None,
            summary,
            domains: &[],
            tags: &[],
            examples: &[],
            visibility: Visibility::Default,
            priority,
            said: Said::default(),
        };
        index.put_server(card);
        index.put_tools(id, &[tool("wind", "Wind", &[]), tool("gale", "Wind", &[])]);
    }
    assert_eq!(servers(&index, "weather", &Filter::default()), ["c", "a", "b", "d"]);
    assert_eq!(tools(&index, "wind")[..4], ["c.wind", "a.wind", "b.wind", "d.wind"]);
    let found = index.search("wind", &Filter::default(), 1);
    assert_eq!((found.servers.len(), found.tools.len()), (1, 1));
    assert!(index.search("wind", &Filter::default(), 0).tools.is_empty());
}

/// What a value may be says little about what a tool does, and a question wants something looked up.
#[test]
fn a_question_is_answered_by_who_looks_it_up() {
    let mut index = Index::default();
    index.put_server(Card {
        id: "clock",
        title: None,
        summary: None,
        examples: &[],
        ..cases()[0].card()
    });
    let zone = |what: &str| {
        format!("{what} IANA timezone name (e.g., 'Asia/Tokyo', 'America/San_Francisco')")
    };
    let (source, target) = (zone("Source"), zone("Target"));
    let time = "Time to convert in 24-hour format (HH:MM)";
    let converted = [("source_timezone", &*source), ("time", time), ("target_timezone", &*target)];
    index.put_tools(
        "clock",
        &[
            tool(
                "get_current_time",
                "Get current time in a specific timezones",
                &[("timezone", "IANA timezone name")],
            ),
            tool("convert_time", "Convert time between timezones", &converted),
        ],
    );
    assert_eq!(tools(&index, "what time is it in Tokyo")[0], "clock.get_current_time");
    assert_eq!(tools(&index, "convert a time to another timezone")[0], "clock.convert_time");
}

/// Once somebody is connected to it, a server is found by what it says about itself, too.
#[test]
fn what_a_server_says_is_searched() {
    let mut index = Index::default();
    let cases = cases();
    let plain = Card { id: "own", title: None, summary: None, examples: &[], ..cases[0].card() };
    let plain = Card { domains: &[], tags: &[], ..plain };
    index.put_server(plain);
    index.put_tools("own", &[tool("create_entities", "Create entities in the graph", &[])]);
    assert_eq!(servers(&index, "remember facts", &Filter::default()), [""; 0]);
    let long = format!("Remembers facts between conversations. {} zebra", "word ".repeat(1_000));
    let said = Said { name: Some("memory-server"), instructions: Some(&long), ..Said::default() };
    index.put_server(Card { said, ..plain });
    assert_eq!(servers(&index, "remember facts", &Filter::default()), ["own"]);
    assert_eq!(tools(&index, "memory"), ["own.create_entities"]);
    assert!(servers(&index, "zebra", &Filter::default()).is_empty(), "it is cut");
    // Gone with the next card.
    index.put_server(plain);
    assert!(servers(&index, "remember facts", &Filter::default()).is_empty());
}

/// However the index came to be what it is, it finds the same.
#[test]
fn changes_leave_nothing_behind() {
    let fresh = index();
    let mut changed = Index::default();
    let cases = cases();
    for round in 0..3 {
        for (at, case) in cases.iter().enumerate() {
            changed.put_server(case.card());
            changed.put_tools(&case.id, &cases[(at + round) % cases.len()].tools);
        }
        for case in cases.iter().step_by(round + 1) {
            changed.remove(&case.id);
        }
    }
    for case in &cases {
        changed.put_tools(&case.id, &case.tools);
        changed.put_server(case.card());
        changed.put_tools(&case.id, &case.tools);
    }
    for line in include_str!("../cases/questions.txt").lines() {
        let search = |index: &Index| index.search(line, &Filter::default(), 20);
        assert_eq!(search(&fresh), search(&changed), "{line}");
    }
    for case in &cases {
        changed.remove(&case.id);
    }
    assert!(changed.search("create issue", &Filter::default(), 20).tools.is_empty());
    let postings = &changed.lexicon.postings;
    assert!(postings.iter().all(|postings| postings.tools.is_empty() && postings.cards.is_empty()));
    assert_eq!((changed.tools.count, changed.cards.count), (0, 0));
    // A server that changes for ever takes no more room than one that stays.
    let terms = postings.len();
    for round in 0..200 {
        changed.put_server(cases[0].card());
        changed.put_tools(
            &cases[0].id,
            &[tool(&format!("tool{round}"), &format!("word{round}"), &[])],
        );
    }
    assert!(changed.lexicon.postings.len() <= terms + 100);
}

#[test]
fn tools_of_unknown_servers_are_nobodys() {
    let mut index = Index::default();
    index.put_tools("nobody", &[tool("search", "Search", &[])]);
    index.remove("nobody");
    assert_eq!(index.search("search", &Filter::default(), 5), Found::default());
}

#[test]
fn sizes_are_bounded() {
    let mut index = Index::default();
    index.put_server(cases()[0].card());
    let long = "word ".repeat(100_000) + "last";
    let many: Vec<Tool> =
        (0..TOOLS_MAX + 5).map(|at| tool(&format!("tool_{at}"), "", &[])).collect();
    index.put_tools("github", &[tool("long", &long, &[])]);
    assert!(tools(&index, "last").is_empty());
    assert_eq!(tools(&index, "words"), ["github.long"]);
    index.put_tools("github", &many);
    assert_eq!(
        tools(&index, &format!("tool_{}", TOOLS_MAX - 1))[0],
        format!("github.tool_{}", TOOLS_MAX - 1)
    );
    assert_eq!(index.search("tool", &Filter::default(), usize::MAX).tools.len(), search::LIMIT_MAX);
    // A question of any length is answered.
    index.search(&"tool_é ".repeat(100_000), &Filter::default(), 5);
    index.search(&"x".repeat(1_000_000), &Filter::default(), 5);
}

#[test]
fn other_scripts_are_found() {
    let mut index = Index::default();
    index.put_server(cases()[0].card());
    index.put_tools(
        "github",
        &[
            tool("kensaku", "日本語の文書を検索します", &[]),
            tool("sousuo", "搜索代码仓库", &[]),
            tool("poisk", "Поиск документов", &[]),
            tool("recherche", "Rechercher un numéro de téléphone", &[]),
        ],
    );
    for (query, wanted) in [
        ("検索", "kensaku"),
        ("文書", "kensaku"),
        ("仓库", "sousuo"),
        ("仓", "sousuo"),
        ("поиск", "poisk"),
        ("telephone", "recherche"),
        ("NUMÉRO", "recherche"),
    ] {
        assert_eq!(tools(&index, query).first(), Some(&format!("github.{wanted}")), "{query}");
    }
}

proptest! {
    #[test]
    fn no_question_panics(query in "\\PC{0,80}") {
        let found = INDEX.search(&query, &Filter { named: &[], experimental: true }, 10);
        prop_assert!(found.tools.len() <= 10 && found.servers.len() <= 18);
        prop_assert!(found.tools.is_sorted_by(|one, other| one.score >= other.score));
        prop_assert!(found.tools.iter().all(|hit| hit.score.is_finite() && hit.score >= 0.0));
    }

    /// A tool is found by its name, however it is written.
    #[test]
    fn every_tool_is_found_by_its_name(at in 0_usize..1_000) {
        let cases: Vec<Case> = cases().into_iter().filter(|case| case.visibility == Visibility::Default).collect();
        let all: Vec<(&str, &str)> = cases
            .iter()
            .flat_map(|case| case.tools.iter().map(|tool| (case.id.as_str(), tool.name.as_str())))
            .collect();
        let (server, name) = all[at % all.len()];
        let spaced = name.replace(['_', '-'], " ");
        for query in [name.to_owned(), name.to_uppercase(), format!("{server} {spaced}")] {
            // Two servers may have a tool of one name.
            let found = tools(&INDEX, &query);
            let is_it = |tool: &String| tool.split_once('.').is_some_and(|(_, tool)| tool == name);
            prop_assert!(found.iter().take(3).any(is_it), "{} {:?}", query, found);
        }
    }
}
