//! Tables that are no wider than the terminal: the longest cells become shorter until all fit.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: usize = 2;
/// No column becomes narrower than this.
const NARROWEST: usize = 8;

/// Cuts cells of the columns that may be cut, of the widest one first.
pub(super) fn fit(headings: &[&str], rows: &mut [Vec<String>], may_be_cut: &[usize], width: usize) {
    let width_of = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([headings[column].width()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..headings.len()).map(width_of).collect();
    let gaps = GAP * headings.len().saturating_sub(1);
    let narrowest = |column: usize| headings[column].width().max(NARROWEST);
    let mut too_much = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
    // One at a time, so that long columns share what is missing.
    while too_much > 0 {
        let can_give = may_be_cut.iter().copied().filter(|at| widths[*at] > narrowest(*at));
        let Some(widest) = can_give.max_by_key(|at| widths[*at]) else { break };
        widths[widest] -= 1;
        too_much -= 1;
    }
    for row in rows {
        for at in may_be_cut {
            if row[*at].width() > widths[*at] {
                row[*at] = cut(&row[*at], widths[*at]);
            }
        }
    }
}

/// As much of a text as there is room for, with a sign that there is more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut cut = String::new();
    let mut room = width.saturating_sub(1);
    for letter in text.chars() {
        let needed = letter.width().unwrap_or(0);
        if needed > room {
            break;
        }
        room -= needed;
        cut.push(letter);
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[[&str; 3]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect()
    }

    #[test]
    fn the_widest_gives_first() {
        let headings = ["ID", "WHERE", "TITLE"];
        let wide =
            rows(&[["a", "0123456789012345678901234567890123456789", "a title of twenty one"]]);
        let shown = |width| {
            let mut rows = wide.clone();
            fit(&headings, &mut rows, &[1, 2], width);
            rows[0].join("  ")
        };
        assert_eq!(shown(80), "a  0123456789012345678901234567890123456789  a title of twenty one");
        insta::assert_snapshot!([60, 50, 40, 30, 20, 3].map(shown).join("\n"), @"
        a  01234567890123456789012345678901…  a title of twenty one
        a  0123456789012345678901…  a title of twenty one
        a  0123456789012345…  a title of twent…
        a  01234567890…  a title of …
        a  0123456…  a title…
        a  0123456…  a title…
        ");
    }

    #[test]
    fn letters_that_are_wide_count_twice() {
        assert_eq!(cut("名名名名", 6), "名名…");
        assert_eq!(cut("name", 3), "na…");
    }
}
