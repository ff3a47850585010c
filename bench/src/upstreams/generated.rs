//! 50 servers with 40 tools each, the same in every run, worded as such servers word theirs: eight things each, and five of ten
//! things to do with each. Also what is asked about them.

use serde_json::{Map, Value, json};

/// Each: its id, its title, and what it has.
const SERVICES: &str = include_str!("services.txt");
/// Tools of each thing.
const DEEDS_EACH: usize = 5;

pub struct Generated {
    pub id: String,
    pub title: String,
    pub summary: String,
    pub tags: Vec<String>,
    /// A JSON array, as it stands in the answer to `tools/list`.
    pub tools: String,
}

/// Something to do: its verb, whether with one thing or several, and how that is described.
struct Deed {
    verb: &'static str,
    is_many: bool,
    about: &'static str,
    arguments: &'static [(&'static str, &'static str, &'static str)],
    is_read_only: bool,
}

const DEEDS: [Deed; 10] = [
    Deed {
        verb: "create",
        is_many: false,
        about: "Create a new {one} in {title}. Returns the {one} with its id, its address and the time when it was made. \
            Fails if a {one} of the same name is there already.",
        arguments: &[
            ("name", "string", "Name of the {one}, as people see it"),
            ("description", "string", "What the {one} is for, in Markdown"),
            ("labels", "array", "Labels to attach; those that do not exist are made"),
            ("assignee", "string", "Account of the person who is responsible for the {one}"),
            ("dry_run", "boolean", "Only check whether it could be done"),
        ],
        is_read_only: false,
    },
    Deed {
        verb: "list",
        is_many: true,
        about: "List the {many} of a workspace in {title}, newest first. Long lists have several pages; pass the cursor of \
            the last answer to get the next one.",
        arguments: &[
            ("workspace", "string", "Workspace to look in; otherwise the default one"),
            ("state", "string", "Only {many} in this state: open, closed or all"),
            ("since", "string", "Only {many} that changed after this time, in ISO 8601"),
            ("limit", "integer", "How many to return, from 1 to 100"),
            ("cursor", "string", "Where the last page ended"),
        ],
        is_read_only: true,
    },
    Deed {
        verb: "get",
        is_many: false,
        about: "Get one {one} of {title} with all its fields, its history and who may see it.",
        arguments: &[
            ("id", "string", "Id of the {one}"),
            ("fields", "array", "Fields to return; otherwise all of them"),
            ("include_history", "boolean", "Also return who changed what, and when"),
        ],
        is_read_only: true,
    },
    Deed {
        verb: "update",
        is_many: false,
        about: "Change fields of a {one} in {title}. Fields that are not given stay as they are. Somebody else's change in \
            the meantime is not overwritten when `revision` is given.",
        arguments: &[
            ("id", "string", "Id of the {one}"),
            ("name", "string", "New name of the {one}"),
            ("description", "string", "New description, in Markdown"),
            ("state", "string", "New state of the {one}"),
            ("revision", "integer", "The revision that was read before"),
        ],
        is_read_only: false,
    },
    Deed {
        verb: "delete",
        is_many: false,
        about: "Delete a {one} from {title} for good, with everything that belongs to it. This cannot be undone.",
        arguments: &[
            ("id", "string", "Id of the {one}"),
            ("force", "boolean", "Delete it even if others depend on it"),
        ],
        is_read_only: false,
    },
    Deed {
        verb: "search",
        is_many: true,
        about: "Search the {many} of {title} by words in their names, descriptions and comments. Returns the best matches \
            first, each with the place where it matches.",
        arguments: &[
            ("query", "string", "Words to look for; a phrase in quotes is looked for as it is"),
            ("workspace", "string", "Workspace to search; otherwise all that you can see"),
            ("sort", "string", "Order of the answer: relevance, created or updated"),
            ("limit", "integer", "How many to return, from 1 to 100"),
        ],
        is_read_only: true,
    },
    Deed {
        verb: "export",
        is_many: true,
        about: "Export {many} of {title} as a file and return the address where it can be downloaded for an hour.",
        arguments: &[
            ("format", "string", "csv, json or pdf"),
            ("from", "string", "First day of the export, in ISO 8601"),
            ("to", "string", "Last day of the export, in ISO 8601"),
        ],
        is_read_only: true,
    },
    Deed {
        verb: "share",
        is_many: false,
        about: "Give people or groups access to a {one} in {title}, and tell them by mail if wanted.",
        arguments: &[
            ("id", "string", "Id of the {one}"),
            ("people", "array", "Accounts or mail addresses"),
            ("role", "string", "What they may do: view, comment or edit"),
            ("message", "string", "Text of the mail; without it nobody is told"),
        ],
        is_read_only: false,
    },
    Deed {
        verb: "archive",
        is_many: false,
        about: "Put a {one} of {title} into the archive. It is not listed any more, can still be found, and can be restored.",
        arguments: &[
            ("id", "string", "Id of the {one}"),
            ("reason", "string", "Why, for whoever finds it there"),
        ],
        is_read_only: false,
    },
    Deed {
        verb: "watch",
        is_many: false,
        about: "Be told when a {one} in {title} changes: in a channel, by mail or at an address of your own.",
        arguments: &[
            ("id", "string", "Id of the {one}"),
            ("events", "array", "What to be told of: created, changed, commented, closed"),
            ("target", "string", "Channel, mail address or https address"),
        ],
        is_read_only: false,
    },
];

/// What agents and people ask, from a word to a whole paragraph, and what has nothing to find.
pub const QUESTIONS: &[&str] = &[
    "create an issue",
    "open a pull request",
    "send a message to a channel",
    "list my calendar events for tomorrow",
    "search the wiki for onboarding pages",
    "delete an old branch",
    "who changed this document last",
    "restart a container",
    "query a database table",
    "export invoices as csv",
    "refund a payment",
    "watch a dashboard for alerts",
    "share a folder with my team",
    "find emails from a customer",
    "create a new ticket for a failing deployment",
    "get the weather forecast",
    "translate a text",
    "upload a file",
    "rotate a secret",
    "list users and their roles",
    "archive a project",
    "github",
    "slack",
    "jira-cloud",
    "stripe refund",
    "createIssue",
    "list_pull_requests",
    "k8s pods",
    "s",
    "the",
    "xyzzy plugh",
    "Rechnungen exportieren",
    "イシューを作成",
    "list get create update delete search export share archive watch",
    "id name description labels assignee workspace state since limit cursor fields revision query sort format people role",
    "I have to prepare the review of the last quarter: find all invoices that are overdue, the customers who have not \
     answered the last reminder, the tickets that they opened in the meantime, and the person who is responsible for each \
     of them, then write a summary into a document, share it with the finance team, and put a meeting into the calendar \
     where we go through the list and decide whom to call and whose account to close",
];

pub fn servers() -> Vec<Generated> {
    let lines = SERVICES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let servers = lines.enumerate().map(|(at, line)| server(at, line));
    servers.collect()
}

fn server(at: usize, line: &str) -> Generated {
    let mut parts = line.split(" | ");
    let (Some(id), Some(title), Some(things)) = (parts.next(), parts.next(), parts.next()) else {
        panic!("three parts: {line}");
    };
    let things: Vec<&str> = things.split(", ").collect();
    let deed = |thing: usize, turn: usize| {
        // Others for each thing, so that no two servers do all the same.
        &DEEDS[(turn + thing * 2 + at) % DEEDS.len()]
    };
    let tools: Vec<Value> = things
        .iter()
        .enumerate()
        .flat_map(|(number, thing)| {
            (0..DEEDS_EACH).map(move |turn| tool(title, thing, deed(number, turn)))
        })
        .collect();
    Generated {
        id: id.to_owned(),
        title: title.to_owned(),
        summary: format!("Work with {} in {title}", things[..4].join(", ")),
        tags: things[..3].iter().map(|thing| thing.replace(' ', "-")).collect(),
        tools: Value::from(tools).to_string(),
    }
}

fn tool(title: &str, thing: &str, deed: &Deed) -> Value {
    let many = match thing.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if thing.ends_with(['s', 'x', 'h']) => format!("{thing}es"),
        _ => format!("{thing}s"),
    };
    let fill = |text: &str| {
        text.replace("{one}", thing).replace("{many}", &many).replace("{title}", title)
    };
    let named = if deed.is_many { &many } else { thing };
    let properties = deed.arguments.iter().map(|(name, kind, about)| {
        let mut schema = json!({"type": kind, "description": fill(about)});
        if *kind == "array" {
            schema["items"] = json!({"type": "string"});
        }
        ((*name).to_owned(), schema)
    });
    json!({
        "name": format!("{}_{}", deed.verb, named.replace(' ', "_")),
        "title": format!("{}{} {named}", deed.verb[..1].to_uppercase(), &deed.verb[1..]),
        "description": fill(deed.about),
        "inputSchema": {
            "type": "object",
            "properties": properties.collect::<Map<String, Value>>(),
            "required": [deed.arguments[0].0],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": deed.is_read_only, "openWorldHint": true},
    })
}
