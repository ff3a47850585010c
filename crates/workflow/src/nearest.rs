//! "Did you mean": the name nearest to one that does not exist.

/// The candidate nearest to `name`, where one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let scored = candidates.into_iter().map(|candidate| {
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
