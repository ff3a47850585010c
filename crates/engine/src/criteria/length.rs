//! `length`: the number of characters is within bounds, both inclusive.

pub(super) fn passes(min: Option<u32>, max: Option<u32>, output: &str) -> bool {
    let length = count(output);
    min.is_none_or(|min| length >= min as usize) && max.is_none_or(|max| length <= max as usize)
}

pub(super) fn advice(min: Option<u32>, max: Option<u32>, wanted: bool, output: &str) -> String {
    let length = count(output);
    if wanted {
        return within(min, max, length);
    }
    // To be outside of the bounds is to be within other ones.
    match (min.filter(|min| *min > 0), max) {
        (None, Some(max)) => within(max.checked_add(1), None, length),
        (Some(min), None) => within(None, Some(min - 1), length),
        (Some(min), Some(max)) => format!(
            "Change the length: it has {length}, and needs fewer than {min} or more than {max} characters."
        ),
        (None, None) => "No length will do: the rule excludes every one.".to_owned(),
    }
}

fn within(min: Option<u32>, max: Option<u32>, length: usize) -> String {
    match (min, max) {
        (Some(min), _) if length < min as usize => {
            let short = min as usize - length;
            format!("Write at least {}: it has {length}, and needs {min}.", more(short))
        }
        (_, Some(max)) => {
            let over = length.saturating_sub(max as usize);
            format!(
                "Shorten it by at least {}: it has {length}, and may have {max}.",
                characters(over)
            )
        }
        _ => format!("Change the length: it has {length} characters."),
    }
}

fn count(output: &str) -> usize {
    output.chars().count()
}

fn more(number: usize) -> String {
    format!("{number} more character{}", if number == 1 { "" } else { "s" })
}

fn characters(number: usize) -> String {
    format!("{number} character{}", if number == 1 { "" } else { "s" })
}
