//! Numbers that would come out as others. What is not a whole number of 64 bits becomes a floating-point number on its way,
//! and those have about 17 digits: whoever wrote more is told, rather than somebody else's number sent.

use serde_json::Number;

/// The first number of a JSON text that would be changed by reading it, and what it would become.
pub fn changed_number(json: &str) -> Option<(&str, String)> {
    let mut rest = json;
    loop {
        let start = rest.find(|sign: char| sign == '"' || sign == '-' || sign.is_ascii_digit())?;
        rest = &rest[start..];
        if rest.starts_with('"') {
            rest = behind_string(rest);
            continue;
        }
        let is_end =
            |sign: char| !sign.is_ascii_digit() && !matches!(sign, '-' | '+' | '.' | 'e' | 'E');
        let (number, behind) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        rest = behind;
        // What is no number is told by whoever reads it.
        if let Ok(read) = serde_json::from_str::<Number>(number) {
            let becomes = read.to_string();
            if Decimal::of(number) != Decimal::of(&becomes) {
                return Some((number, becomes));
            }
        }
    }
}

fn behind_string(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or("", |end| &text[end + 2..])
}

/// A number by its digits: `0.digits` times ten to the power of the exponent.
#[derive(PartialEq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Nothing where the exponent is beyond all measure.
    fn of(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            // Zero is zero.
            return Some(Self { is_negative: false, digits, exponent: 0 });
        }
        let leading = all.len() - significant.len();
        let before = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(before)?;
        Some(Self { is_negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_stay() {
        for text in [
            "0",
            "-0",
            "0.0e7",
            "1",
            "-1",
            "100",
            "1e2",
            "1.50",
            "0.1",
            "1E+2",
            "-2.5e-3",
            "0.001",
            "18446744073709551615",
            "-9223372036854775808",
            "1e300",
            r#"{"a": "12345678901234567890123", "b\"": [1, 2.5]}"#,
            "true",
            "\"",
            "-",
            "1e999",
            "",
        ] {
            assert_eq!(changed_number(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_do_not() {
        let becomes = |text: &'static str| changed_number(text).unwrap();
        assert_eq!(
            becomes("12345678901234567890123"),
            ("12345678901234567890123", "1.2345678901234568e+22".to_owned())
        );
        assert_eq!(
            becomes(r#"{"a": [1, "2", 0.12345678901234567890]}"#).0,
            "0.12345678901234567890"
        );
        assert_eq!(becomes("-9223372036854775809").0, "-9223372036854775809");
        assert_eq!(becomes("1e-400").1, "0.0");
    }
}
