//! Small wordings that several commands need.

pub fn plural(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// A text of somebody else's on one line of ours, so that it cannot pass for a line of ours; cut where it is
/// longer than so many characters.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = if line.is_empty() { "" } else { " " };
        for letter in space.chars().chain(word.chars()) {
            if chars == chars_max {
                line.pop();
                line.push('…');
                return line;
            }
            line.push(letter);
            chars += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_text_becomes_one_line() {
        assert_eq!(one_line(" two\nlines,\t and  a tab ", 40), "two lines, and a tab");
        assert_eq!(one_line("exactly", 7), "exactly");
        assert_eq!(one_line("näher an", 6), "näher…");
        assert_eq!(one_line(&"名".repeat(1000), 3), "名名…");
        assert_eq!(one_line(" \n", 3), "");
    }
}
