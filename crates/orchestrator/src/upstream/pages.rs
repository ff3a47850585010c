//! Fetches a list, page by page, until it ends or has gone on for too long.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::connection::Connection;
use super::failure::Failure;
use super::list::Collect;
use super::ticket::Course;
use crate::pool::Kind;

/// So many pages of a list are read.
const PAGES_MAX: usize = 1_000;
/// So large a list may be, all pages together.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A list, and how long it may be used.
pub(super) struct Fetched<L> {
    pub(super) list: L,
    pub(super) time_to_live: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'p> {
    #[serde(borrow, default)]
    tools: Option<&'p RawValue>,
    #[serde(borrow, default)]
    resources: Option<&'p RawValue>,
    #[serde(borrow, default)]
    resource_templates: Option<&'p RawValue>,
    #[serde(borrow, default)]
    prompts: Option<&'p RawValue>,
    next_cursor: Option<String>,
    ttl_ms: Option<f64>,
}

pub(super) async fn fetch<C: Collect>(
    kind: Kind,
    connection: &Arc<Connection>,
    course: &Arc<Course>,
) -> Result<Fetched<C::List>, Failure> {
    let mut list = C::default();
    let mut cursor = None;
    let mut seen = HashSet::new();
    let mut time_to_live: Option<Duration> = None;
    let (mut pages, mut bytes) = (0, 0);
    let note = loop {
        let request = request(kind, cursor.take());
        let (page, allowed) = match kind {
            Kind::Tools => connection.ask_for_tools(request, course).await?,
            Kind::Resources | Kind::Templates | Kind::Prompts => {
                (connection.ask(request, course).await?, Vec::new())
            }
        };
        // A server that sends page after page is at it.
        course.deadline.extend();
        pages += 1;
        bytes += page.get().len();
        let page: Page<'_> = serde_json::from_str(page.get()).map_err(|_| Failure::Protocol {
            why: format!("its answer to `{}` is no list", method(kind)),
        })?;
        let has_room = page.items(kind).is_none_or(|items| list.page(items, &allowed));
        let lives = page.ttl_ms.filter(|time| time.is_finite() && *time >= 0.0);
        let lives = lives.and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok());
        time_to_live = time_to_live.into_iter().chain(lives).min();
        let Some(next) = page.next_cursor else { break None };
        if !seen.insert(next.clone()) {
            break Some("the list is cut, for its pages begin anew".to_owned());
        }
        if pages >= PAGES_MAX || bytes >= LIST_BYTES_MAX || !has_room {
            break Some(format!("the list is cut after {pages} pages, for it does not end"));
        }
        cursor = Some(next);
    };
    Ok(Fetched { list: list.done(note), time_to_live })
}

impl<'p> Page<'p> {
    fn items(&self, kind: Kind) -> Option<&'p RawValue> {
        match kind {
            Kind::Tools => self.tools,
            Kind::Resources => self.resources,
            Kind::Templates => self.resource_templates,
            Kind::Prompts => self.prompts,
        }
    }
}

fn request(kind: Kind, cursor: Option<String>) -> ClientRequest {
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    macro_rules! list {
        ($request:ident) => {
            ClientRequest::$request($request {
                method: Default::default(),
                params,
                extensions: Default::default(),
            })
        };
    }
    match kind {
        Kind::Tools => list!(ListToolsRequest),
        Kind::Resources => list!(ListResourcesRequest),
        Kind::Templates => list!(ListResourceTemplatesRequest),
        Kind::Prompts => list!(ListPromptsRequest),
    }
}

fn method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "tools/list",
        Kind::Resources => "resources/list",
        Kind::Templates => "resources/templates/list",
        Kind::Prompts => "prompts/list",
    }
}
