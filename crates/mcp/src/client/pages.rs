//! Fetches lists page by page, within limits.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Request;

/// The most pages of a list.
const PAGES_MAX: usize = 1_000;
/// The largest list, all pages together.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The lists of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }
}

/// A list that is being fetched.
#[derive(Debug)]
pub struct Pages {
    listed: ListKind,
    cursor: Option<String>,
    seen: HashSet<String>,
    pages: usize,
    bytes: usize,
    time_to_live: Option<Duration>,
}

/// How a list continues after a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStep {
    Next,
    End,
    /// More pages exist than are fetched, with the reason.
    Truncated(String),
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

impl Pages {
    pub fn new(listed: ListKind) -> Self {
        let (cursor, seen) = (None, HashSet::new());
        Self { listed, cursor, seen, pages: 0, bytes: 0, time_to_live: None }
    }

    /// The request for the next page.
    pub fn request(&mut self) -> Request {
        let request = Request::new(self.listed.method());
        match self.cursor.take() {
            Some(cursor) => request.with("cursor", cursor),
            None => request,
        }
    }

    /// Takes a page and returns its items, if it has any. None if it is not a page.
    pub fn receive<'p>(&mut self, page: &'p RawValue) -> Option<Option<&'p RawValue>> {
        self.pages += 1;
        self.bytes += page.get().len();
        let page: Page<'p> = serde_json::from_str(page.get()).ok()?;
        let life = page.ttl_ms.filter(|time| time.is_finite() && *time >= 0.0);
        let life = life.and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok());
        self.time_to_live = self.time_to_live.into_iter().chain(life).min();
        self.cursor = page.next_cursor;
        Some(match self.listed {
            ListKind::Tools => page.tools,
            ListKind::Resources => page.resources,
            ListKind::Templates => page.resource_templates,
            ListKind::Prompts => page.prompts,
        })
    }

    pub fn next_step(&mut self, has_room: bool) -> PageStep {
        let Some(cursor) = &self.cursor else { return PageStep::End };
        if !self.seen.insert(cursor.clone()) {
            return PageStep::Truncated("the list is cut, for its pages begin anew".to_owned());
        }
        if self.pages >= PAGES_MAX || self.bytes >= LIST_BYTES_MAX || !has_room {
            let pages = self.pages;
            return PageStep::Truncated(format!(
                "the list is cut after {pages} pages, for it does not end"
            ));
        }
        PageStep::Next
    }

    /// The shortest time to live of the pages.
    pub fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }
}
