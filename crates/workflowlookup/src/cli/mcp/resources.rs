//! `mcp resources`: what a server has to read, and the templates of what it could have.

use clap::Args;
use orchestrator::Error;
use orchestrator::upstream::list::List;
use serde::Serialize;
use serde_json::Value;
use tool_schema::tool::Json;

use super::servers::Reaching;
use super::{Context, refused, running};
use crate::cli::terminal::YELLOW;
use crate::cli::{Ended, Outcome, Terminal};
use service::words::one_line;

/// How much of a cell is shown, where lines are not cut.
const CELL_CHARS_MAX: usize = 200;

/// List the resources of a server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp resources everything
  workflowlookup mcp resources --http http://127.0.0.1:8080/mcp --json")]
pub(crate) struct Arguments {
    /// The server's id; not with --stdio or --http
    #[arg(value_name = "SERVER", required_unless_present_any = ["stdio", "http"])]
    server: Option<String>,
    /// Print as JSON, as the server lists them
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing<'a> {
    resources: &'a [Json],
    resource_templates: &'a [Json],
    notes: Vec<&'a String>,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let mut servers = arguments.reaching.open(context)?;
    let id = servers.entry(arguments.server.as_deref())?.id.clone();
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let resources = orchestrator.resources(&id).await;
        let resources = resources.map_err(|error| refused(error, &servers))?;
        let templates = match orchestrator.templates(&id).await {
            Ok(templates) => templates,
            // Older servers have none, and know no question about them.
            Err(Error::Upstream { .. } | Error::NotOffered { .. }) => Default::default(),
            Err(error) => return Err(refused(error, &servers)),
        };
        let notes: Vec<&String> = resources.notes.iter().chain(&templates.notes).collect();
        if arguments.json {
            terminal.json(&Listing {
                resources: &resources.items,
                resource_templates: &templates.items,
                notes,
            })?;
            return Ok(Outcome::Good);
        }
        let mut rows = rows(&resources, "uri");
        rows.extend(self::rows(&templates, "uriTemplate"));
        if rows.is_empty() {
            let message = format!("`{id}` has no resources");
            terminal.complain(YELLOW, "warning", &message, None)?;
        } else {
            terminal.fitted_table(&["URI", "TYPE", "NAME", "DESCRIPTION"], rows, &[1, 2, 3])?;
        }
        for note in notes {
            terminal.complain(YELLOW, "warning", note, None)?;
        }
        Ok(Outcome::Good)
    })
}

fn rows(list: &List, uri: &str) -> Vec<Vec<String>> {
    let items = list.items.iter().filter_map(|item| item.value().ok());
    let row = |item: Value| {
        let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = [field("title"), field("name")].into_iter().find(|name| !name.is_empty());
        let cells = [field(uri), field("mimeType"), name.unwrap_or_default(), field("description")];
        let cells = cells.into_iter().enumerate();
        // An address is of no use where it is cut.
        cells
            .map(|(at, cell)| one_line(cell, if at == 0 { usize::MAX } else { CELL_CHARS_MAX }))
            .collect()
    };
    items.map(row).collect()
}
