//! A question to the index. Each of its words is looked for as it is, in other forms, as a word that others use for it, and
//! (the last one) as a beginning; where none of that is there, as a slip of one letter. Of all these the best counts, per
//! tool and word. Then BM25, and a little for tools that have more of the words.

use super::synonyms::{self, Synonym};
use super::tokens::{Kind, Tokens};
use super::{Carried, Filter, Found, Hit, Index, Server, ToolHit};

/// How much of a question is read.
const QUERY_BYTES_MAX: usize = 1_000;
const QUERY_WORDS_MAX: usize = 24;
/// The most hits of each kind.
pub(super) const LIMIT_MAX: usize = 200;
/// In how many words of a question slips are looked for.
const SLIPS_MAX: usize = 6;
/// The shortest beginning of a word.
const BEGINNING_CHARS_MIN: usize = 3;

/// How soon more of the same stops to count. Large, because weights of fields count as more of the same.
const SATURATION: f32 = 4.0;
/// How much longer texts are held against them.
const LENGTH_SHARE: f32 = 0.3;
/// What a tool without some of the words keeps of its score, beside its share of the words.
const COVERAGE_FLOOR: f32 = 0.2;
/// What a word in its server's name, or among its tags, is worth to a tool.
const SERVER_NAME: f32 = 0.6;
const SERVER_TAG: f32 = 0.4;
/// What words together are worth that are a whole name.
const TOGETHER: f32 = 0.5;
const SYNONYM: f32 = 0.35;
const SLIP: f32 = 0.6;
/// What a tool that looks something up is worth to who asks for something.
const QUESTION: f32 = 0.2;
/// How questions begin.
const QUESTIONS: [&str; 7] = ["what", "which", "who", "whose", "where", "when", "how"];

pub(super) fn search(index: &Index, query: &str, filter: &Filter<'_>, limit: usize) -> Found {
    let limit = limit.min(LIMIT_MAX);
    let query = &query[..query.floor_char_boundary(QUERY_BYTES_MAX)];
    let shown: Vec<bool> = index
        .servers
        .iter()
        .map(|server| server.as_ref().is_some_and(|server| index.is_shown(server, query, filter)))
        .collect();
    let words = words(query);
    if words.is_empty() {
        let matching = shown.iter().filter(|is_shown| **is_shown).count();
        return Found { servers: all(index, &shown, limit), matching, tools: Vec::new() };
    }
    let wanted = wanted(index, &words, is_question(query));
    let total = words.len() as f32;

    let mut cards = Scores::new(index.servers.len());
    let mut bases = Vec::with_capacity(index.servers.len());
    let mut count = 0;
    for server in &index.servers {
        bases.push(count);
        count += server.as_ref().map_or(0, |server| server.tools.len());
    }
    let mut tools = Scores::new(count);
    for word in &wanted {
        for &Term { term, factor, is_verb } in &word.terms {
            let postings = &index.lexicon.postings[term as usize];
            let rarity = rarity(index.cards.count, postings.cards.len());
            for posting in postings.cards.iter().filter(|_| !is_verb) {
                let at = posting.server as usize;
                let Some(server) = index.servers[at].as_ref().filter(|_| shown[at]) else {
                    continue;
                };
                let length = server.card_length / index.cards.average();
                cards.offer(at, factor * rarity * frequency(posting.weight, length));
                let share = match posting.carried {
                    Carried::Name => SERVER_NAME,
                    Carried::Tag => SERVER_TAG,
                    Carried::Not => 0.0,
                };
                if share > 0.0 {
                    let worth = factor * rarity * share;
                    (bases[at]..bases[at] + server.tools.len())
                        .for_each(|tool| tools.offer(tool, worth));
                }
            }
            let rarity = self::rarity(index.tools.count, postings.tools.len());
            let average = index.tools.average();
            for posting in &postings.tools {
                let at = posting.server as usize;
                let Some(server) = index.servers[at].as_ref().filter(|_| shown[at]) else {
                    continue;
                };
                let length = server.tools[posting.tool as usize].length / average;
                let worth = factor * rarity * frequency(posting.weight, length);
                tools.offer(bases[at] + posting.tool as usize, worth);
            }
        }
        cards.settle(word.counts);
        tools.settle(word.counts);
    }

    let matching = cards.touched.len();
    let servers = cards.best(total, limit, |at| {
        let server = index.servers[at].as_ref()?;
        Some((server.priority, server.id.as_str(), ""))
    });
    let place = |at: usize| {
        let slot = bases.partition_point(|base| *base <= at).checked_sub(1)?;
        let server = index.servers[slot].as_ref()?;
        Some((server.priority, server.id.as_str(), &*server.tools.get(at - bases[slot])?.name))
    };
    let tools = tools.best(total, limit, place);
    Found {
        servers: servers
            .into_iter()
            .map(|(score, id, _)| Hit { id: id.to_owned(), score })
            .collect(),
        matching,
        tools: tools
            .into_iter()
            .map(|(score, server, tool)| ToolHit {
                server: server.to_owned(),
                tool: tool.to_owned(),
                score,
            })
            .collect(),
    }
}

/// Whether a query names a server: its id, with nothing around it that ids are made of.
pub(super) fn names(query: &str, id: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_');
    let query = query.to_lowercase();
    !id.is_empty()
        && query.match_indices(id).any(|(at, _)| {
            !query[..at].ends_with(is_part) && !query[at + id.len()..].starts_with(is_part)
        })
}

/// Without a question: everybody, the most important first.
fn all(index: &Index, shown: &[bool], limit: usize) -> Vec<Hit> {
    let servers = index.servers.iter().zip(shown).filter(|(_, shown)| **shown);
    let mut servers: Vec<&Server> = servers.filter_map(|(server, _)| server.as_ref()).collect();
    servers.sort_unstable_by(|one, other| {
        other.priority.cmp(&one.priority).then_with(|| one.id.cmp(&other.id))
    });
    let hits = servers.into_iter().take(limit);
    hits.map(|server| Hit { id: server.id.clone(), score: 0.0 }).collect()
}

pub(super) fn has_words(query: &str) -> bool {
    !words(&query[..query.floor_char_boundary(QUERY_BYTES_MAX)]).is_empty()
}

/// The words of a question, each once. One that has only words without a meaning is about those.
fn words(query: &str) -> Vec<String> {
    let read = |kind: Kind| {
        let mut words: Vec<String> = Vec::new();
        Tokens::default().each(query, kind, |word| {
            if !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
            words.len() < QUERY_WORDS_MAX
        });
        words
    };
    let words = read(Kind::Prose);
    if words.is_empty() { read(Kind::Name) } else { words }
}

/// A word of the question, as terms of the index and what each is worth.
struct Wanted {
    terms: Vec<Term>,
    /// Whether it is one of the words that a tool should have.
    counts: bool,
}

#[derive(Debug, Clone, Copy)]
struct Term {
    term: u32,
    factor: f32,
    /// Another word for something that is done; servers are not looked for by it.
    is_verb: bool,
}

impl Term {
    fn new(term: u32, factor: f32) -> Self {
        Self { term, factor, is_verb: false }
    }
}

/// Whether something is asked: that is looked up somewhere, and not made.
fn is_question(query: &str) -> bool {
    let first = query.split(|sign: char| !sign.is_alphabetic()).find(|word| !word.is_empty());
    let is_one = |word: &str| QUESTIONS.iter().any(|one| word.eq_ignore_ascii_case(one));
    first.is_some_and(is_one)
}

fn wanted(index: &Index, words: &[String], is_question: bool) -> Vec<Wanted> {
    let vocabulary = &index.lexicon.vocabulary;
    let mut slips = SLIPS_MAX;
    let mut all: Vec<Wanted> = Vec::with_capacity(2 * words.len());
    for (at, word) in words.iter().enumerate() {
        let mut terms: Vec<Term> =
            vocabulary.term(word).map(|term| Term::new(term, 1.0)).into_iter().collect();
        if at + 1 == words.len() && is_beginning(word) {
            let longer = vocabulary.beginning(word);
            terms.extend(longer.map(|(term, share)| Term::new(term, 0.3 + 0.4 * share)));
        }
        if terms.is_empty() && slips > 0 {
            slips -= 1;
            let meant = vocabulary.slips(word);
            terms.extend(meant.into_iter().map(|term| Term::new(term, SLIP)));
        }
        for Synonym { word, is_verb } in synonyms::of(word) {
            let term = vocabulary.term(word);
            terms.extend(term.map(|term| Term { term, factor: SYNONYM, is_verb }));
        }
        // The best of what a term is worth.
        terms.sort_unstable_by(|one, other| {
            one.term.cmp(&other.term).then(other.factor.total_cmp(&one.factor))
        });
        terms.dedup_by_key(|term| term.term);
        all.push(Wanted { terms, counts: true });
    }
    if is_question {
        let terms = synonyms::of_looking().filter_map(|word| vocabulary.term(word));
        let terms = terms.map(|term| Term { term, factor: QUESTION, is_verb: true });
        all.push(Wanted { terms: terms.collect(), counts: false });
    }
    // `create issue` is nearly the name `create_issue`.
    for count in [2, 3] {
        for together in words.windows(count) {
            if let Some(term) = vocabulary.term(&together.concat()) {
                all.push(Wanted { terms: vec![Term::new(term, TOGETHER)], counts: false });
            }
        }
    }
    all
}

fn is_beginning(word: &str) -> bool {
    !word.is_ascii() || word.chars().count() >= BEGINNING_CHARS_MIN
}

/// How much a term says, by how many have it.
fn rarity(count: usize, having: usize) -> f32 {
    let (count, having) = (count as f32, having as f32);
    (1.0 + (count - having + 0.5).max(0.0) / (having + 0.5)).ln()
}

/// How much a term is what a text is about. `length` is relative to the others.
fn frequency(weight: f32, length: f32) -> f32 {
    let norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
    weight * (SATURATION + 1.0) / (weight + norm)
}

/// Scores of all that have any, in room for all. The room is not touched where nothing matches.
struct Scores {
    total: Vec<f32>,
    words: Vec<u8>,
    touched: Vec<u32>,
    /// The best so far of the word that is looked for.
    best: Vec<f32>,
    current: Vec<u32>,
}

impl Scores {
    fn new(count: usize) -> Self {
        Self {
            total: vec![0.0; count],
            words: vec![0; count],
            touched: Vec::new(),
            best: vec![0.0; count],
            current: Vec::new(),
        }
    }

    fn offer(&mut self, at: usize, worth: f32) {
        let best = &mut self.best[at];
        if *best == 0.0 {
            self.current.push(at as u32);
        }
        *best = best.max(worth);
    }

    /// Ends a word.
    fn settle(&mut self, counts: bool) {
        for at in self.current.drain(..) {
            let here = at as usize;
            if self.total[here] == 0.0 {
                self.touched.push(at);
            }
            self.total[here] += std::mem::take(&mut self.best[here]);
            self.words[here] += u8::from(counts);
        }
    }

    /// The best ones; equal ones by priority, then by name.
    fn best<'n>(
        &self,
        words: f32,
        limit: usize,
        place: impl Fn(usize) -> Option<(u8, &'n str, &'n str)>,
    ) -> Vec<(f32, &'n str, &'n str)> {
        let mut hits: Vec<(u32, u32)> = (self.touched.iter())
            .map(|&at| {
                let share = f32::from(self.words[at as usize]) / words;
                let score =
                    self.total[at as usize] * (COVERAGE_FLOOR + (1.0 - COVERAGE_FLOOR) * share);
                // Differences that nobody could explain are none.
                ((score * 1_000.0) as u32, at)
            })
            .collect();
        // Only as many as are wanted are put in order, and whoever is as good as the last of them.
        if hits.len() > limit && limit > 0 {
            let (_, last, _) =
                hits.select_nth_unstable_by(limit - 1, |one, other| other.0.cmp(&one.0));
            let last = last.0;
            hits.retain(|(score, _)| *score >= last);
        }
        let mut hits: Vec<(u32, u8, &str, &str)> = hits
            .into_iter()
            .filter_map(|(score, at)| {
                let (priority, server, tool) = place(at as usize)?;
                Some((score, priority, server, tool))
            })
            .collect();
        hits.sort_unstable_by(|one, other| {
            (other.0, other.1)
                .cmp(&(one.0, one.1))
                .then_with(|| (one.2, one.3).cmp(&(other.2, other.3)))
        });
        hits.truncate(limit);
        hits.into_iter()
            .map(|(score, _, server, tool)| (score as f32 / 1_000.0, server, tool))
            .collect()
    }
}
