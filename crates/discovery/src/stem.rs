//! Forms of English words brought to one: `searching`, `searches` and `search`, `queries` and `query`, `created` and `create`.
//! Light on purpose: what it leaves apart is found less often, what it throws together wrongly would be found always. Only
//! the same on both sides matters; the stem is never shown.

/// Shorter words are left alone: `aws`, `css`, `use`.
const LENGTH_MIN: usize = 4;

/// Words that the rules get wrong.
const IRREGULAR: &[(&str, &str)] = &[
    ("alias", "alias"),
    ("aliases", "alias"),
    ("analyse", "analysi"),
    ("analyses", "analysi"),
    ("analysis", "analysi"),
    ("analyze", "analysi"),
    ("atlas", "atlas"),
    ("canvas", "canvas"),
    ("children", "child"),
    ("embed", "embed"),
    ("embedded", "embed"),
    ("embedding", "embed"),
    ("embeddings", "embed"),
    ("found", "find"),
    ("indices", "index"),
    ("news", "news"),
    ("people", "person"),
    ("sent", "send"),
    ("statuses", "status"),
    ("written", "writ"),
    ("wrote", "writ"),
];

/// The stem of a word in small letters, in `scratch` or a part of the word itself.
pub(super) fn stem<'s>(word: &'s str, scratch: &'s mut String) -> &'s str {
    if word.len() < LENGTH_MIN || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    if let Ok(at) = IRREGULAR.binary_search_by_key(&word, |(form, _)| form) {
        return IRREGULAR[at].1;
    }
    scratch.clear();
    scratch.push_str(word);
    plural(scratch);
    past_or_present(scratch);
    noun(scratch);
    ending(scratch);
    scratch
}

/// `issues`, `searches`, `queries`.
fn plural(word: &mut String) {
    let has = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if word.len() > 4 && has(&["ies", "sses", "ches", "shes", "xes", "zes"]) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !has(&["ss", "us", "is"]) {
        word.pop();
    }
}

/// `created`, `searching`.
fn past_or_present(word: &mut String) {
    let stem = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed"));
    let Some(stem) = stem.filter(|stem| stem.len() >= 3 && !word.ends_with("eed")) else { return };
    // `string` and `bring` are no forms of anything.
    if !stem.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
        return;
    }
    word.truncate(stem.len());
    let letters = word.as_bytes();
    let [.., before, last] = *letters else { return };
    if before == last && !is_vowel(last) && word.len() > 3 && !matches!(last, b'l' | b's' | b'z') {
        // `running`, `tagged`.
        word.pop();
    } else if let [first, vowel, last] = *letters
        && !is_vowel(first)
        && is_vowel(vowel)
        && !is_vowel(last)
        && !matches!(last, b'w' | b'x' | b'y')
    {
        // `moving`, `named`.
        word.push('e');
    }
}

/// `creation`, `deployment`.
fn noun(word: &mut String) {
    if word.ends_with("ification") {
        word.truncate(word.len() - "cation".len());
        return;
    }
    for (end, kept) in [("tion", "t"), ("sion", "s"), ("ment", "")] {
        if word.ends_with(end) && word.len() - end.len() + kept.len() >= 5 {
            word.truncate(word.len() - end.len() + kept.len());
            return;
        }
    }
}

/// `query` and `queri(es)`, `issue` and `issu(ing)`.
fn ending(word: &mut String) {
    let letters = word.as_bytes();
    match *letters {
        [.., before, b'y'] if !is_vowel(before) && letters.len() > 3 => {
            word.pop();
            word.push('i');
        }
        [.., b'e'] if letters.len() >= 5 => {
            word.pop();
        }
        _ => {}
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stemmed(word: &str) -> String {
        stem(word, &mut String::new()).to_owned()
    }

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            "search searches searched searching",
            "issue issues issuing issued",
            "query queries querying queried",
            "create creates created creating creation creations",
            "delete deletes deleted deleting deletion",
            "file files filed filing",
            "note notes noted noting",
            "move moves moved moving",
            "run runs running",
            "tag tags tagged tagging",
            "log logs logged logging",
            "get gets getting",
            "add adds added adding",
            "fix fixes fixed fixing",
            "box boxes boxed",
            "class classes",
            "address addresses addressed",
            "process processes processing processed",
            "repository repositories",
            "directory directories",
            "company companies",
            "key keys",
            "play plays played playing",
            "update updates updated updating",
            "share shares shared sharing",
            "write writes writing written wrote",
            "close closes closed closing",
            "deploy deploys deployed deploying deployment deployments",
            "execute executes executing execution",
            "notify notifies notified notifying notification notifications",
            "translate translates translation translations translating",
            "manage manages managing management",
            "schema schemas",
            "database databases",
            "cache caches cached caching",
            "movie movies",
            "status statuses",
            "embed embedding embeddings embedded",
            "alias aliases",
            "index indexes indexing indices",
            "need needs needed",
            "schedule schedules scheduled scheduling",
            "message messages messaging",
            "analysis analyses analyze",
        ] {
            let stems: Vec<String> = forms.split(' ').map(stemmed).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms}: {stems:?}");
        }
    }

    #[test]
    fn different_words_stay_apart() {
        for words in [
            "string strong",
            "data date",
            "care car",
            "note not",
            "rate rat",
            "station stat",
            "option opt",
            "action act",
            "comment come",
            "document dock",
            "payment payed pay-",
            "thing think",
            "user use",
            "news new",
            "version verse",
            "session sess",
            "page pag",
            "bus bu",
            "this thi",
            "speed spe",
        ] {
            let (one, other) = words.split_once(' ').unwrap();
            assert_ne!(stemmed(one), stemmed(other.split(' ').next().unwrap()), "{words}");
        }
    }

    #[test]
    fn irregular_words_are_in_order() {
        assert!(IRREGULAR.is_sorted());
    }

    proptest! {
        #[test]
        fn no_word_panics(word in "\\PC{0,20}") {
            stemmed(&word);
        }

        #[test]
        fn stems_are_never_empty(word in "[a-z]{1,12}") {
            prop_assert!(!stemmed(&word).is_empty());
            prop_assert!(stemmed(&word).len() <= word.len() + 1);
        }
    }
}
