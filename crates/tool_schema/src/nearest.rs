//! "Did you mean": the names nearest to one that does not exist.

/// Comparing takes time: longer names are not looked at.
const LENGTH_MAX: usize = 128;
/// How many names are compared letter by letter; those that share the most letters come first.
const COMPARED_MAX: usize = 500;

/// The candidates that may be meant by `name`, nearest first, at most `count`.
pub fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    if name.is_empty() || name.len() > LENGTH_MAX {
        return Vec::new();
    }
    let wanted = plain(name);
    let letters = letters(&wanted);
    let mut found: Vec<(usize, &str)> = Vec::new();
    let mut promising: Vec<(usize, &str, String)> = Vec::new();
    for candidate in candidates.into_iter().filter(|candidate| candidate.len() <= LENGTH_MAX) {
        let plain = plain(candidate);
        let apart = apart(&letters, wanted.len(), &plain);
        // By bytes, of which a letter may have four.
        if apart.div_ceil(4) <= distance_max(wanted.len(), plain.len()) {
            promising.push((apart, candidate, plain));
        } else if is_part(&wanted, &plain) {
            found.push((LENGTH_MAX + plain.len(), candidate));
        }
    }
    promising.sort_unstable();
    for (_, candidate, plain) in promising.into_iter().take(COMPARED_MAX) {
        let distance = strsim::damerau_levenshtein(&wanted, &plain);
        if distance <= distance_max(wanted.len(), plain.len()) {
            found.push((distance, candidate));
        } else if is_part(&wanted, &plain) {
            found.push((LENGTH_MAX + plain.len(), candidate));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(count).map(|(_, candidate)| candidate).collect()
}

/// The one that is nearest of all.
pub fn nearest_one<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    nearest(name, candidates, 1).into_iter().next()
}

/// A third of the letters may differ, and never more than half.
fn distance_max(length: usize, other: usize) -> usize {
    let longer = length.max(other);
    longer.div_ceil(3).min(longer / 2)
}

/// A part of the name, or a name with something around it.
fn is_part(wanted: &str, candidate: &str) -> bool {
    wanted.len().min(candidate.len()) >= 3
        && (candidate.contains(wanted) || wanted.contains(candidate))
}

/// How often each letter occurs, some letters taken together.
fn letters(name: &str) -> [u8; 64] {
    let mut counts = [0; 64];
    name.bytes().for_each(|byte| counts[usize::from(byte % 64)] += 1);
    counts
}

/// How many letters they do not have in common. Names are never nearer to each other than their letters.
fn apart(letters: &[u8; 64], length: usize, candidate: &str) -> usize {
    let (mut left, mut common) = (*letters, 0);
    for byte in candidate.bytes() {
        let left = &mut left[usize::from(byte % 64)];
        if *left > 0 {
            *left -= 1;
            common += 1;
        }
    }
    length.max(candidate.len()) - common
}

/// Without what people get wrong between two ways of writing a name.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-' | '.' | '/' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let names = ["create_issue", "close_issue", "createPullRequest", "search", "id"];
        for (name, expected) in [
            ("create_isue", vec!["create_issue"]),
            ("createIssue", vec!["create_issue", "close_issue"]),
            ("create-pull-request", vec!["createPullRequest"]),
            ("issue", vec!["close_issue", "create_issue"]),
            ("search_code", vec!["search"]),
            ("identity", vec![]),
            ("weather", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(nearest(name, names, 3), expected, "{name}");
        }
        assert_eq!(nearest("issue", names, 1), ["close_issue"]);
    }

    #[test]
    fn all_of_many_names_are_looked_at() {
        let names: Vec<String> = (0..20_000).map(|at| format!("tool_number_{at:05}")).collect();
        let names = || names.iter().map(String::as_str).chain(["zebra_crossing"]);
        assert_eq!(nearest("zebra_crosing", names(), 1), ["zebra_crossing"]);
        assert_eq!(nearest("tool_nmuber_19998", names(), 1), ["tool_number_19998"]);
        assert_eq!(
            nearest("größe_ändern", ["grösse_ändern", "grosse_andern"], 1),
            ["grösse_ändern"]
        );
        // However many are long and alike, it takes no longer.
        let alike: Vec<String> =
            (0..10_000).map(|at| format!("{}{at:04}", "ab".repeat(60))).collect();
        assert_eq!(nearest(&"ba".repeat(60), alike.iter().map(String::as_str), 3).len(), 3);
    }

    #[test]
    fn long_names_are_not_looked_at() {
        let long = "a".repeat(1_000_000);
        assert!(nearest(&long, [long.as_str()], 3).is_empty());
        assert!(nearest("aaaa", [long.as_str()], 3).is_empty());
    }
}
