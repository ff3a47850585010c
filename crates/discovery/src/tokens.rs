//! The words of a text, as the index knows them: small letters without accents. A name that is made of words gives each of
//! them and itself: `createIssue`, `create_issue` and `create-issue` are `create`, `issue` and `createissue`; `GitHub` is
//! `git`, `hub` and `github`; `HTTPServer` is `http`, `server` and `httpserver`. Scripts without spaces give pairs of
//! characters.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::stop::is_stop_word;

/// Longer words are cut.
const WORD_BYTES_MAX: usize = 48;
/// How much of one text is read.
const TEXT_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `-`, `.`, `/` and `:` hold words together, and every word counts.
    Name,
    /// Sentences: words that say nothing are left out.
    Prose,
}

/// Room that is used again from text to text.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    folded: String,
    word: String,
    segment: String,
    whole: String,
}

impl Tokens {
    /// Hands over the words of a text, in their order, until `each` has enough.
    pub(super) fn each(&mut self, text: &str, kind: Kind, mut each: impl FnMut(&str) -> bool) {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        let mut folded = std::mem::take(&mut self.folded);
        let plain = if text.is_ascii() { text } else { fold(text, &mut folded) };
        let mut start = 0;
        while let Some((begin, end)) = next_chunk(plain, start, kind) {
            start = end;
            let chunk = plain[begin..end].trim_end_matches(|sign| !is_word(sign));
            if !self.chunk(chunk, kind, &mut each) {
                break;
            }
        }
        self.folded = folded;
    }

    /// Something between spaces. False where that is enough.
    fn chunk(&mut self, chunk: &str, kind: Kind, each: &mut impl FnMut(&str) -> bool) -> bool {
        let wanted = |word: &str| kind == Kind::Name || !is_stop_word(word);
        // Most chunks are a word in small letters, perhaps with a large one first.
        let bytes = chunk.as_bytes();
        if bytes.iter().skip(1).all(|byte| byte.is_ascii_lowercase())
            && bytes[0].is_ascii_alphanumeric()
        {
            let word = cut(chunk);
            if bytes[0].is_ascii_lowercase() {
                return !wanted(word) || each(word);
            }
            self.word.clear();
            self.word.push_str(word);
            self.word.make_ascii_lowercase();
            return !wanted(&self.word) || each(&self.word);
        }
        let Self { word, segment, whole, .. } = self;
        whole.clear();
        let mut segments = 0;
        for part in chunk.split(|sign| !is_word(sign)).filter(|part| !part.is_empty()) {
            segments += 1;
            segment.clear();
            let mut words = 0;
            for next in Words(part) {
                words += 1;
                word.clear();
                if next.is_ascii() {
                    word.push_str(next);
                    word.make_ascii_lowercase();
                } else {
                    word.extend(next.chars().flat_map(char::to_lowercase));
                }
                segment.push_str(word);
                // A letter that is left of a name, as the `o` of `OAuth`, says nothing.
                let is_whole = next.len() == part.len() && part.len() == chunk.len();
                let counts = next.len() > 1
                    || is_whole
                    || kind == Kind::Name && words == 1 && next.len() == part.len();
                if counts && wanted(word) && !each(cut(word)) {
                    return false;
                }
            }
            whole.push_str(segment);
            if words > 1 && !Words(part).any(is_pair) && !each(cut(segment)) {
                return false;
            }
        }
        segments < 2 || each(cut(whole))
    }
}

/// Where the next chunk begins and ends. Nearly all of every text is ASCII, and goes by bytes.
fn next_chunk(text: &str, from: usize, kind: Kind) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_part = |at: usize, wanted: fn(char, Kind) -> bool| match bytes[at] {
        byte if byte.is_ascii() => (wanted(char::from(byte), kind), 1),
        _ => {
            let sign = text[at..].chars().next().unwrap_or_default();
            (wanted(sign, kind), sign.len_utf8())
        }
    };
    let mut begin = from;
    loop {
        if begin >= bytes.len() {
            return None;
        }
        match is_part(begin, |sign, _| is_word(sign)) {
            (true, _) => break,
            (false, length) => begin += length,
        }
    }
    let mut end = begin;
    while end < bytes.len() {
        match is_part(end, |sign, kind| is_word(sign) || joins(sign, kind)) {
            (true, length) => end += length,
            (false, _) => break,
        }
    }
    Some((begin, end))
}

/// Where words of a name are cut: before a large letter that follows a small one, and before the last of several large ones
/// where a small one follows. Digits stay with what is before them.
struct Words<'t>(&'t str);

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let text = self.0;
        let first = text.chars().next()?;
        let end = if is_cjk(first) { pair(text) } else { word(text) };
        // Pairs overlap: the second character of one begins the next.
        let step = match (is_cjk(first), text[first.len_utf8()..].chars().next()) {
            (true, Some(next)) if is_cjk(next) => {
                let after = text[first.len_utf8() + next.len_utf8()..].chars().next();
                if after.is_some_and(is_cjk) { first.len_utf8() } else { end }
            }
            _ => end,
        };
        self.0 = &text[step..];
        Some(&text[..end])
    }
}

fn pair(text: &str) -> usize {
    let signs = text.char_indices().take(2).take_while(|(_, sign)| is_cjk(*sign));
    signs.last().map_or(text.len(), |(at, sign)| at + sign.len_utf8())
}

fn word(text: &str) -> usize {
    let mut signs = text.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        if let Some(before) = before {
            let begins = is_cjk(sign)
                || sign.is_uppercase() && !before.is_uppercase()
                || sign.is_uppercase()
                    && next.is_some_and(char::is_lowercase)
                    // `APIs` and `URLs` are one word.
                    && text[at + sign.len_utf8()..] != *"s";
            if begins {
                return at;
            }
        }
        before = Some(sign);
    }
    text.len()
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric()
}

fn joins(sign: char, kind: Kind) -> bool {
    match kind {
        Kind::Name => matches!(sign, '_' | '-' | '.' | '/' | ':'),
        Kind::Prose => sign == '_',
    }
}

fn is_pair(word: &str) -> bool {
    word.starts_with(is_cjk)
}

/// Chinese, Japanese and Korean, which are written without spaces, or with spaces that say little.
fn is_cjk(sign: char) -> bool {
    matches!(sign,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Without accents. Characters that are written as pairs are left as they are: taken apart, they would be others.
fn fold<'f>(text: &str, folded: &'f mut String) -> &'f str {
    folded.clear();
    for sign in text.chars() {
        if sign.is_ascii() || is_cjk(sign) {
            folded.push(sign);
        } else {
            decompose_canonical(sign, |part| {
                if !is_combining_mark(part) {
                    folded.push(part);
                }
            });
        }
    }
    folded
}

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(WORD_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str, kind: Kind) -> Vec<String> {
        let mut words = Vec::new();
        Tokens::default().each(text, kind, |word| {
            words.push(word.to_owned());
            true
        });
        words
    }

    #[test]
    fn names_are_taken_apart_and_kept_whole() {
        for (name, expected) in [
            ("search", "search"),
            ("create_issue", "create issue createissue"),
            ("create-issue", "create issue createissue"),
            ("createIssue", "create issue createissue"),
            ("CreateIssue", "create issue createissue"),
            ("HTTPServer", "http server httpserver"),
            ("getHTTPResponseCode", "get http response code gethttpresponsecode"),
            ("GitHub", "git hub github"),
            ("OAuth2Token", "auth2 token oauth2token"),
            ("listS3Buckets", "list s3 buckets lists3buckets"),
            ("repos/list_for.user", "repos list for user reposlistforuser"),
            ("GitHub_createIssue", "git hub github create issue createissue githubcreateissue"),
            ("APIs", "apis"),
            ("getURLs", "get urls geturls"),
            ("who_am_i", "who am i whoami"),
            ("SHOUTING_CASE", "shouting case shoutingcase"),
            ("v2", "v2"),
            ("__init__", "init"),
            ("größe_ändern", "große andern großeandern"),
            ("x", "x"),
            ("", ""),
            ("-", ""),
        ] {
            assert_eq!(words(name, Kind::Name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn sentences_are_words() {
        for (text, expected) in [
            ("Creates a new issue in the given repository.", "creates new issue given repository"),
            (
                "Uses GitHub's API, e.g. via createIssue()",
                "uses git hub github api via create issue createissue",
            ),
            ("read-only, snake_case", "read snake case snakecase"),
            ("Café Ångström naïve", "cafe angstrom naive"),
            ("Привет мир", "привет мир"),
            ("C++ & C#", "c c"),
            ("日本語の検索", "日本 本語 語の の検 検索"),
            ("搜索 GitHub 仓库", "搜索 git hub github 仓库"),
            ("한국어", "한국 국어"),
            ("猫", "猫"),
            ("PDF文書を開く", "pdf 文書 書を を開 開く"),
            ("ABCデータ", "abc デー ータ"),
        ] {
            assert_eq!(words(text, Kind::Prose).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn texts_and_words_are_bounded() {
        let long = "a".repeat(1_000_000);
        assert_eq!(words(&long, Kind::Prose), ["a".repeat(WORD_BYTES_MAX)]);
        let many = "é-".repeat(1_000_000);
        assert!(words(&many, Kind::Name).len() < TEXT_BYTES_MAX);
        let mut count = 0;
        Tokens::default().each("a_b c d e f", Kind::Name, |_| {
            count += 1;
            count < 2
        });
        assert_eq!(count, 2);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            for kind in [Kind::Name, Kind::Prose] {
                for word in words(&text, kind) {
                    prop_assert!(!word.is_empty() && word.len() <= WORD_BYTES_MAX);
                    prop_assert!(word.chars().all(|sign| sign.is_alphanumeric() || is_combining_mark(sign)), "{}", word);
                }
            }
        }

        /// However a name is written, it is found by its whole.
        #[test]
        fn all_ways_to_write_a_name_meet(parts in prop::collection::vec("[a-z]{2,6}", 2..5)) {
            let whole = parts.concat();
            let capital: String = parts.iter().map(|part| part[..1].to_uppercase() + &part[1..]).collect();
            for name in [parts.join("_"), parts.join("-"), capital] {
                let found = words(&name, Kind::Name);
                prop_assert_eq!(found.last(), Some(&whole));
                prop_assert_eq!(&found[..found.len() - 1], &parts[..]);
            }
        }
    }
}
