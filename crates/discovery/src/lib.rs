//! Ranked search over tools: BM25 over what servers say about themselves (their cards) and over their tools. An [`Index`] is an
//! inverted one in memory, changed one server at a time; a question takes time in what it matches. Words are compared by
//! their stems, in all ways to write a name (`tokens.rs`). Pure.
//!
//! Whoever fills the index leaves out tools that policy does not offer.

use std::collections::HashMap;

use registry::entry::{Entry, Visibility};
use registry::policy::{Wish, is_shown};
use tool_schema::tool::{TOOLS_MAX, Tool};

mod properties;
mod search;
mod stem;
mod stop;
mod synonyms;
mod tokens;
mod vocabulary;

use properties::Part;
use tokens::{Kind, Tokens};
use vocabulary::Vocabulary;

/// More servers than this are not searched.
const SERVERS_MAX: usize = u16::MAX as usize;
/// How many words of one card or tool are looked at.
const WORDS_MAX: usize = 600;
/// How many words of all tools of one server. Tools beyond it are found by their names.
const SERVER_WORDS_MAX: usize = 500_000;

/// How much is read of what a server says about itself.
const SAID_BYTES_MAX: usize = 1_500;

/// How much a word counts, by where it stands.
mod weight {
    pub(super) const ID: f32 = 6.0;
    pub(super) const TITLE: f32 = 4.0;
    pub(super) const TAG: f32 = 3.0;
    pub(super) const SUMMARY: f32 = 1.5;
    pub(super) const EXAMPLE: f32 = 1.0;
    pub(super) const SAID_NAME: f32 = 2.0;
    pub(super) const SAID: f32 = 0.8;

    pub(super) const TOOL_NAME: f32 = 6.0;
    pub(super) const TOOL_TITLE: f32 = 4.0;
    pub(super) const DESCRIPTION: f32 = 1.5;
    pub(super) const ARGUMENT: f32 = 1.0;
    pub(super) const ARGUMENT_DESCRIPTION: f32 = 0.4;
}

/// What a server says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Card<'a> {
    pub id: &'a str,
    pub title: Option<&'a str>,
    pub summary: Option<&'a str>,
    pub domains: &'a [String],
    pub tags: &'a [String],
    pub examples: &'a [String],
    pub visibility: Visibility,
    pub priority: u8,
    pub said: Said<'a>,
}

/// What the server itself says at the beginning of a connection. Cut where it is long.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said<'a> {
    pub name: Option<&'a str>,
    pub title: Option<&'a str>,
    pub description: Option<&'a str>,
    pub instructions: Option<&'a str>,
}

impl<'a> From<&'a Entry> for Card<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            id: &entry.id,
            title: entry.title.as_deref(),
            summary: entry.summary.as_deref(),
            domains: &entry.domains,
            tags: &entry.tags,
            examples: &entry.examples,
            visibility: entry.visibility,
            priority: entry.priority,
            said: Said::default(),
        }
    }
}

/// Whom a search shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Servers that are named, beside those whose id is in the query.
    pub named: &'a [String],
    /// Those that are tried out were asked for.
    pub experimental: bool,
}

/// What was found, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    pub servers: Vec<Hit>,
    /// How many servers there are that fit, also those beyond the limit.
    pub matching: usize,
    pub tools: Vec<ToolHit>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub id: String,
    /// Compares hits of one search; zero where nothing was searched for.
    pub score: f32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolHit {
    pub server: String,
    pub tool: String,
    pub score: f32,
}

/// Whether a query asks for anything: some have signs alone.
pub fn has_words(query: &str) -> bool {
    search::has_words(query)
}

#[derive(Debug, Default)]
pub struct Index {
    servers: Vec<Option<Server>>,
    by_id: HashMap<String, u16>,
    lexicon: Lexicon,
    cards: Size,
    tools: Size,
}

/// How many there are, and how long they are together.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    count: usize,
    length: f64,
}

#[derive(Debug)]
struct Server {
    id: String,
    visibility: Visibility,
    priority: u8,
    card: Held,
    card_length: f32,
    tools: Vec<Listed>,
    tools_held: Held,
}

#[derive(Debug)]
struct Listed {
    name: Box<str>,
    length: f32,
}

/// The words and terms that a server's card, or its tools, brought into the index.
#[derive(Debug, Default)]
struct Held {
    words: Vec<u32>,
    terms: Vec<u32>,
}

/// Words, and where they are.
#[derive(Debug, Default)]
struct Lexicon {
    vocabulary: Vocabulary,
    /// By term.
    postings: Vec<Postings>,
    tokens: Tokens,
    /// Numbers those who hold words; never zero.
    holders: u64,
    /// The terms of the text that is being read.
    current: Vec<u32>,
}

#[derive(Debug, Default)]
struct Postings {
    tools: Vec<Posting>,
    cards: Vec<CardPosting>,
    /// What the text that is being read has come to.
    weight: f32,
    /// Who had this term last.
    last: u64,
}

#[derive(Debug, Clone, Copy)]
struct Posting {
    server: u16,
    tool: u16,
    weight: f32,
}

#[derive(Debug, Clone, Copy)]
struct CardPosting {
    server: u16,
    weight: f32,
    carried: Carried,
}

/// What the tools of a server have of a word on its card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carried {
    /// It is in the server's id or title.
    Name,
    /// It is one of its tags or domains.
    Tag,
    Not,
}

impl Index {
    /// Adds a server, or what it says about itself now. Its tools stay.
    pub fn put_server(&mut self, card: Card<'_>) {
        let slot = match self.by_id.get(card.id) {
            Some(&slot) => {
                self.drop_card(slot);
                slot
            }
            None => match self.new_slot(card.id) {
                Some(slot) => slot,
                None => return,
            },
        };
        let mut words = self.lexicon.begin();
        words.add(card.id, Kind::Name, weight::ID);
        words.add(card.title.unwrap_or_default(), Kind::Prose, weight::TITLE);
        let names = words.lexicon.current.len();
        for tag in card.tags.iter().chain(card.domains) {
            words.add(tag, Kind::Name, weight::TAG);
        }
        for name in [card.said.name, card.said.title].into_iter().flatten() {
            words.add(name, Kind::Prose, weight::SAID_NAME);
        }
        let tags = words.lexicon.current.len();
        words.add(card.summary.unwrap_or_default(), Kind::Prose, weight::SUMMARY);
        for example in card.examples {
            words.add(example, Kind::Prose, weight::EXAMPLE);
        }
        for said in [card.said.description, card.said.instructions].into_iter().flatten() {
            let said = &said[..said.floor_char_boundary(SAID_BYTES_MAX)];
            words.add(said, Kind::Prose, weight::SAID);
        }
        let length = words.length;
        let held = words.end(|at, weight, postings| {
            let carried = match at {
                _ if at < names => Carried::Name,
                _ if at < tags => Carried::Tag,
                _ => Carried::Not,
            };
            postings.cards.push(CardPosting { server: slot, weight, carried });
        });
        self.cards.add(1, length);
        if let Some(server) = &mut self.servers[slot as usize] {
            (server.card, server.card_length) = (held, length);
            (server.visibility, server.priority) = (card.visibility, card.priority);
        }
    }

    /// Replaces the tools of a server that was put before.
    pub fn put_tools(&mut self, server: &str, tools: &[Tool]) {
        let Some(&slot) = self.by_id.get(server) else { return };
        self.drop_tools(slot);
        let mut listed = Vec::with_capacity(tools.len().min(TOOLS_MAX));
        let mut held = Held::default();
        let holder = self.lexicon.next_holder();
        let mut left = SERVER_WORDS_MAX;
        let mut total = 0.0;
        for (at, tool) in tools.iter().take(TOOLS_MAX).enumerate() {
            let mut words = self.lexicon.reading(holder, held);
            words.add(&tool.name, Kind::Name, weight::TOOL_NAME);
            if left > 0 {
                words.tool(tool);
            }
            left = left.saturating_sub(words.count);
            let length = words.length;
            held = words.end(|_, weight, postings| {
                postings.tools.push(Posting { server: slot, tool: at as u16, weight });
            });
            total += f64::from(length);
            listed.push(Listed { name: tool.name.as_str().into(), length });
        }
        self.tools.count += listed.len();
        self.tools.length += total;
        if let Some(server) = &mut self.servers[slot as usize] {
            (server.tools, server.tools_held) = (listed, held);
        }
    }

    /// Takes a server out, with its tools.
    pub fn remove(&mut self, server: &str) {
        let Some(slot) = self.by_id.remove(server) else { return };
        self.drop_card(slot);
        self.drop_tools(slot);
        self.servers[slot as usize] = None;
    }

    /// The servers and tools that fit the query best, at most `limit` of each. Without a query, all servers by priority.
    pub fn search(&self, query: &str, filter: &Filter<'_>, limit: usize) -> Found {
        search::search(self, query, filter, limit)
    }

    fn new_slot(&mut self, id: &str) -> Option<u16> {
        let server = Server {
            id: id.to_owned(),
            visibility: Visibility::Default,
            priority: 0,
            card: Held::default(),
            card_length: 0.0,
            tools: Vec::new(),
            tools_held: Held::default(),
        };
        let free = self.servers.iter().position(Option::is_none).unwrap_or(self.servers.len());
        if free == SERVERS_MAX {
            return None;
        }
        if free == self.servers.len() {
            self.servers.push(None);
        }
        self.servers[free] = Some(server);
        self.by_id.insert(id.to_owned(), free as u16);
        Some(free as u16)
    }

    fn drop_card(&mut self, slot: u16) {
        let Some(server) = &mut self.servers[slot as usize] else { return };
        let held = std::mem::take(&mut server.card);
        self.cards.add(-1, -server.card_length);
        self.lexicon.release(held, |postings| postings.cards.retain(|one| one.server != slot));
    }

    fn drop_tools(&mut self, slot: u16) {
        let Some(server) = &mut self.servers[slot as usize] else { return };
        let held = std::mem::take(&mut server.tools_held);
        let tools = std::mem::take(&mut server.tools);
        self.tools.count -= tools.len();
        self.tools.length -= tools.iter().map(|tool| f64::from(tool.length)).sum::<f64>();
        self.lexicon.release(held, |postings| postings.tools.retain(|one| one.server != slot));
    }

    /// Whether a server is shown for a query.
    fn is_shown(&self, server: &Server, query: &str, filter: &Filter<'_>) -> bool {
        let named = server.visibility == Visibility::OptIn
            && (filter.named.contains(&server.id) || search::names(query, &server.id));
        is_shown(server.visibility, Wish { named, experimental: filter.experimental })
    }
}

impl Size {
    fn add(&mut self, count: isize, length: f32) {
        self.count = self.count.saturating_add_signed(count);
        self.length += f64::from(length);
    }

    fn average(&self) -> f32 {
        if self.count == 0 { 1.0 } else { (self.length / self.count as f64).max(1.0) as f32 }
    }
}

impl Lexicon {
    fn next_holder(&mut self) -> u64 {
        self.holders += 1;
        self.holders
    }

    /// Begins a text of a new holder.
    fn begin(&mut self) -> Reading<'_> {
        let holder = self.next_holder();
        self.reading(holder, Held::default())
    }

    /// Begins another text of a holder.
    fn reading(&mut self, holder: u64, held: Held) -> Reading<'_> {
        Reading { lexicon: self, holder, held, length: 0.0, count: 0 }
    }

    fn release(&mut self, held: Held, forget: impl Fn(&mut Postings)) {
        held.terms.iter().for_each(|term| forget(&mut self.postings[*term as usize]));
        held.words.iter().for_each(|word| self.vocabulary.release(*word));
    }
}

/// One card or tool that is being read.
struct Reading<'l> {
    lexicon: &'l mut Lexicon,
    holder: u64,
    held: Held,
    length: f32,
    count: usize,
}

impl Reading<'_> {
    fn tool(&mut self, tool: &Tool) {
        self.add(tool.title.as_deref().unwrap_or_default(), Kind::Prose, weight::TOOL_TITLE);
        self.add(tool.description.as_deref().unwrap_or_default(), Kind::Prose, weight::DESCRIPTION);
        properties::each(&tool.input_schema, &mut |part| match part {
            Part::Name(name) => self.add(name, Kind::Name, weight::ARGUMENT),
            Part::Description(text) => {
                let text = properties::without_examples(text);
                self.add(&text, Kind::Prose, weight::ARGUMENT_DESCRIPTION);
            }
        });
    }

    fn add(&mut self, text: &str, kind: Kind, weight: f32) {
        let Self { lexicon, holder, held, length, count } = self;
        let Lexicon { vocabulary, postings, tokens, current, .. } = &mut **lexicon;
        tokens.each(text, kind, |word| {
            let added = vocabulary.add(word, *holder);
            if added.is_new {
                held.words.push(added.word);
            }
            if postings.len() < vocabulary.terms_len() {
                postings.resize_with(vocabulary.terms_len(), Postings::default);
            }
            let here = &mut postings[added.term as usize];
            if here.last != *holder {
                here.last = *holder;
                held.terms.push(added.term);
            }
            if here.weight == 0.0 {
                current.push(added.term);
            }
            here.weight += weight;
            *length += weight;
            *count += 1;
            *count < WORDS_MAX
        });
    }

    /// Hands over the terms of the text, each once, in the order in which they came up, with what each came to.
    fn end(self, mut each: impl FnMut(usize, f32, &mut Postings)) -> Held {
        let Lexicon { postings, current, .. } = self.lexicon;
        for (at, term) in current.drain(..).enumerate() {
            let postings = &mut postings[term as usize];
            let weight = std::mem::take(&mut postings.weight);
            each(at, weight, postings);
        }
        self.held
    }
}

#[cfg(test)]
mod tests;
