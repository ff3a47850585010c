//! `contains`: the output has a text, case-sensitively.

pub(super) fn passes(value: &str, output: &str) -> bool {
    output.contains(value)
}

pub(super) fn advice(value: &str, wanted: bool) -> String {
    if wanted {
        format!("Include the text \"{value}\", spelt exactly so.")
    } else {
        format!("Remove the text \"{value}\".")
    }
}
