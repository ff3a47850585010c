//! "Did you mean": the name nearest to one that does not exist.

/// Comparing takes time and room: longer names are not looked at.
const LENGTH_MAX: usize = 128;
/// How many names are compared letter by letter; those that share the most letters come first.
const COMPARED_MAX: usize = 1_000;

/// The candidate nearest to `name`, where one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LENGTH_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    let letters = Letters::of(&lower);
    let mut promising = Vec::new();
    let mut beginning: Option<&str> = None;
    for candidate in candidates.into_iter().filter(|candidate| candidate.len() <= LENGTH_MAX) {
        let (least, longer) = letters.distance(candidate);
        if least <= distance_max(longer) {
            promising.push((least, candidate));
        }
        let begins = lower.len() >= 3
            && candidate.len() >= 2
            && (candidate.starts_with(&*lower) || lower.starts_with(candidate));
        if begins && beginning.is_none_or(|best| (candidate.len(), candidate) < (best.len(), best))
        {
            beginning = Some(candidate);
        }
    }
    promising.sort_unstable();
    let mut best: Option<(usize, bool, &str)> = None;
    for (least, candidate) in promising.into_iter().take(COMPARED_MAX) {
        // No candidate from here on can be nearer.
        if best.is_some_and(|(distance, ..)| least > distance) {
            break;
        }
        let other = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&lower, &other);
        let length = lower.chars().count().max(other.chars().count());
        // Of two that are equally near, people seldom get the first letter wrong.
        let differs_at_once = lower.chars().next() != other.chars().next();
        let score = (distance, differs_at_once, candidate);
        if distance <= distance_max(length) && best.is_none_or(|best| score < best) {
            best = Some(score);
        }
    }
    best.map(|(.., candidate)| candidate).or(beginning)
}

/// How many letters may differ: a third of them, and never more than half.
fn distance_max(length: usize) -> usize {
    length.div_ceil(3).min(length / 2)
}

/// How often each letter occurs, some letters taken together. Cheap to compare, and what is far apart
/// here is at least as far apart letter by letter.
struct Letters {
    counts: [u8; 64],
    count: usize,
}

impl Letters {
    fn of(lower: &str) -> Self {
        let mut letters = Self { counts: [0; 64], count: 0 };
        for letter in lower.chars() {
            letters.counts[letter as usize % 64] += 1;
            letters.count += 1;
        }
        letters
    }

    /// The least distance that a name can have, and how many letters the longer one has.
    fn distance(&self, name: &str) -> (usize, usize) {
        let mut left = self.counts;
        let (mut count, mut common) = (0, 0);
        for letter in name.chars() {
            let lower = if letter.is_ascii() {
                letter.to_ascii_lowercase()
            } else {
                letter.to_lowercase().next().unwrap_or(letter)
            };
            let left = &mut left[lower as usize % 64];
            if *left > 0 {
                *left -= 1;
                common += 1;
            }
            count += 1;
        }
        let longer = self.count.max(count);
        (longer - common, longer)
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let names = ["prompt", "title", "requireConfirmation", "id"];
        assert_eq!(nearest("promt", names), Some("prompt"));
        assert_eq!(nearest("Title", names), Some("title"));
        assert_eq!(nearest("requiresConfirmation", names), Some("requireConfirmation"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("anything", []), None);
    }

    #[test]
    fn the_first_letter_breaks_a_tie() {
        assert_eq!(nearest("vr", ["or", "and", "var"]), Some("var"));
    }

    #[test]
    fn half_of_the_letters_agree() {
        assert_eq!(nearest("x", ["y", "z"]), None);
        assert_eq!(nearest("X", ["y", "x"]), Some("x"));
        assert_eq!(nearest("ab", ["cd"]), None);
    }

    #[test]
    fn a_longer_name_is_found_by_its_beginning() {
        let names = ["abcd", "authenticate-people", "auth-long-story-of-it"];
        assert_eq!(nearest("auth", names), Some("authenticate-people"));
        assert_eq!(nearest("identifier", ["id", "i"]), Some("id"));
    }

    #[test]
    fn all_of_many_names_are_looked_at() {
        let names: Vec<String> = (0..20_000).map(|at| format!("workflow-{at:05}")).collect();
        let names = || names.iter().map(String::as_str).chain(["zebra-crossing"]);
        assert_eq!(nearest("zebra-crosing", names()), Some("zebra-crossing"));
        assert_eq!(nearest("workflow-1999", names()), Some("workflow-01999"));
        assert_eq!(nearest("workflwo-19999", names()), Some("workflow-19999"));
    }
}
