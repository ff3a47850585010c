//! The trace that a client says it is in: W3C Trace Context, as `_meta` carries it. What is malformed is as good as not
//! there.

/// A place in a trace, from which a call came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: u128,
    pub(crate) parent: u64,
    pub(super) flags: u8,
    /// What others have added, to be passed on as it is.
    pub(super) state: Option<String>,
}

/// Who traces has decided that this one is recorded.
const SAMPLED: u8 = 0x01;
/// The part that every version begins with: version, trace, parent and flags.
const KNOWN_BYTES: usize = 55;
/// How many members a `tracestate` may have, and how long the key and the value of each may be.
const MEMBERS_MAX: usize = 32;
const PART_BYTES_MAX: usize = 256;

impl Context {
    pub(crate) fn read(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let known = traceparent.get(..KNOWN_BYTES)?;
        let mut parts = known.split('-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace = hexadecimal(parts.next()?, 32)?;
        let parent = hexadecimal(parts.next()?, 16)?;
        let flags = hexadecimal(parts.next()?, 2)?;
        // A later version may say more, but the first four parts are the same.
        let is_whole = match version {
            0 => traceparent.len() == KNOWN_BYTES,
            0xff => false,
            _ => {
                traceparent[KNOWN_BYTES..].is_empty() || traceparent[KNOWN_BYTES..].starts_with('-')
            }
        };
        if !is_whole || parts.next().is_some() || trace == 0 || parent == 0 {
            return None;
        }
        let state = tracestate.filter(|state| is_state(state)).map(str::to_owned);
        Some(Self {
            trace,
            parent: u64::try_from(parent).ok()?,
            flags: u8::try_from(flags).ok()?,
            state,
        })
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// A number of exactly so many digits, in small letters.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_good = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_whole = text.len() == digits && text.bytes().all(is_good);
    is_whole.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

fn is_state(text: &str) -> bool {
    let members = text.split(',').map(|member| member.trim_matches([' ', '\t']));
    let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
    let mut keys: Vec<&str> = Vec::with_capacity(members.len());
    for member in &members {
        match member.split_once('=') {
            Some((key, value)) if is_key(key) && is_value(value) => keys.push(key),
            _ => return false,
        }
    }
    keys.sort_unstable();
    let is_repeated = keys.windows(2).any(|pair| pair[0] == pair[1]);
    !members.is_empty() && members.len() <= MEMBERS_MAX && !is_repeated
}

fn is_key(key: &str) -> bool {
    let good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    let begins = |part: &str| part.starts_with(|first: char| first.is_ascii_alphanumeric());
    let mut parts = key.splitn(2, '@');
    key.len() <= PART_BYTES_MAX && parts.all(|part| begins(part) && part.bytes().all(good))
}

fn is_value(value: &str) -> bool {
    let good = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b',' && byte != b'=';
    !value.is_empty() && value.len() <= PART_BYTES_MAX && value.bytes().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_good_one_is_read() {
        let context =
            Context::read(GOOD, Some("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE")).unwrap();
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.parent, 0x00f0_67aa_0ba9_02b7);
        assert!(context.is_sampled());
        assert_eq!(context.state.as_deref(), Some("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE"));
        let not_sampled = Context::read(&GOOD.replace("-01", "-00"), None).unwrap();
        assert!(!not_sampled.is_sampled());
    }

    #[test]
    fn a_later_version_may_say_more() {
        let later = GOOD.replacen("00-", "cc-", 1);
        assert!(Context::read(&later, None).is_some());
        assert!(Context::read(&format!("{later}-what-comes"), None).is_some());
        assert!(Context::read(&format!("{later}x"), None).is_none());
        assert!(Context::read(&format!("{GOOD}-more"), None).is_none(), "not in this one");
    }

    #[test]
    fn what_is_malformed_is_not_there() {
        for odd in [
            "",
            "00",
            "00-0-0-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0ü",
        ] {
            assert_eq!(Context::read(odd, None), None, "{odd}");
        }
    }

    #[test]
    fn a_state_that_is_malformed_is_left_behind() {
        let many: Vec<String> = (0..33).map(|number| format!("k{number}=v")).collect();
        for odd in
            ["", ",", "a", "=b", "a=", "A=b", "a=b,a=c", "a=b=c", "a@=b", "a=ü", &many.join(",")]
        {
            let context = Context::read(GOOD, Some(odd)).unwrap();
            assert_eq!(context.state, None, "{odd}");
        }
        for good in ["a=b", "a=b,,c=d", "tenant@system=x y", "0a/*_-=~", &many[..32].join(",")] {
            let context = Context::read(GOOD, Some(good)).unwrap();
            assert_eq!(context.state.as_deref(), Some(good));
        }
    }
}
