//! Words that people use for each other when they look for a tool. Looked at from the question's side only, and worth less
//! than the word itself.

use super::stem::stem;

/// What is done. Servers are not looked for by this.
const VERBS: &[&[&str]] = &[
    &["search", "find", "lookup", "query", "look"],
    &["create", "add", "new", "make", "open", "insert"],
    &["schedule", "book", "plan", "create"],
    &["delete", "remove", "erase", "drop"],
    &["update", "edit", "modify", "change", "patch"],
    &["get", "fetch", "read", "retrieve", "show", "view"],
    &["list", "show", "enumerate", "browse"],
    &["send", "post", "write"],
    &["run", "execute", "start", "launch", "trigger"],
    &["stop", "kill", "cancel", "abort", "terminate"],
    &["upload", "save", "store", "write"],
    &["convert", "transform"],
];

/// What it is done to.
const NOUNS: &[&[&str]] = &[
    &["email", "mail"],
    &["image", "picture", "photo", "screenshot"],
    &["folder", "directory", "dir"],
    &["repository", "repo"],
    &["database", "db"],
    &["message", "msg"],
    &["document", "doc", "docs"],
    &["issue", "ticket", "bug"],
    &["meeting", "event", "appointment"],
    &["pr", "pullrequest"],
    &["web", "internet", "online"],
    &["map", "location", "place"],
    &["chart", "graph", "plot", "diagram"],
];

/// What is done where something is only looked up.
pub(super) fn of_looking() -> impl Iterator<Item = &'static str> {
    let groups = VERBS.iter().filter(|group| group.contains(&"get") || group.contains(&"list"));
    groups.flat_map(|group| group.iter().copied())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Synonym {
    pub(super) word: &'static str,
    pub(super) is_verb: bool,
}

/// The words that stand beside one in a group, in the form of the table.
pub(super) fn of(word: &str) -> Vec<Synonym> {
    let mut scratch = (String::new(), String::new());
    let wanted = stem(word, &mut scratch.0);
    let mut found = Vec::new();
    for (groups, is_verb) in [(VERBS, true), (NOUNS, false)] {
        for group in groups {
            if group.iter().any(|one| stem(one, &mut scratch.1) == wanted) {
                found.extend(group.iter().map(|&word| Synonym { word, is_verb }));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn forms_find_their_group() {
        let of =
            |word: &str| super::of(word).into_iter().map(|other| other.word).collect::<Vec<_>>();
        assert!(of("searching").contains(&"find"));
        assert!(of("tickets").contains(&"issue"));
        assert!(of("weather").is_empty());
    }
}
