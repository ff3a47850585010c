//! Servers that do not begin well.

use crate::row::Row;

pub(super) fn rows() -> Vec<Row> {
    let hostile = |does, word: &'static str| Row::process(does, &["--hostile", word]);
    vec![
        hostile("never answers `initialize`", "never-initializes")
            .at_first()
            .in_vain()
            .only(&["legacy"]),
        hostile("says nothing to `server/discover`", "ignores-discover").only(&["legacy"]),
        hostile("dies of `server/discover`", "dies-of-discover").only(&["legacy"]),
        hostile("ends before it says anything", "dies-at-once").at_first(),
        hostile("speaks a revision that nobody knows", "from-the-future")
            .at_first()
            .only(&["legacy"]),
        hostile("says 50 MiB about itself", "boasts").at_first().only(&["legacy"]),
        hostile("leaves out of its handshake what it can", "sloppy").only(&["legacy"]),
    ]
}
