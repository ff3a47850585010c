//! "Did you mean": the name nearest to one that does not exist.

/// Comparing takes time and room: longer names, and more of them, are not looked at.
const LENGTH_MAX: usize = 128;
const CANDIDATES_MAX: usize = 1_000;

/// The candidate nearest to `name`, where one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LENGTH_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    let candidates = candidates.into_iter().filter(|candidate| candidate.len() <= LENGTH_MAX);
    let scored = candidates.take(CANDIDATES_MAX).map(|candidate| {
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        (distance, candidate)
    });
    let (distance, candidate) = scored.min()?;
    let length = name.chars().count().max(candidate.chars().count());
    // A third of the letters may differ; or one is the beginning of the other.
    let begins =
        lower.len() >= 3 && (candidate.starts_with(&*lower) || lower.starts_with(candidate));
    (distance <= length.div_ceil(3) || begins).then_some(candidate)
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
}
