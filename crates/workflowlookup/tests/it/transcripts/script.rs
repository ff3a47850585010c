//! The lines of a transcript, as one transport reads them.
//!
//! `>` goes in, `<` is expected back, `#` explains. `<400` is the same over both transports, with this status over HTTP;
//! without a number it is the usual one. Where the transports differ a line names the one that it is for: `<stdio` and
//! `<http` stand for what comes back there, `<http 400` with the status. `>http close 7` closes the stream that answers
//! the request with that id, which is how a modern client takes a request back, and `>http SIGTERM` tells the server to
//! end. A line `@http unknown: a, b` says that over HTTP these methods do not exist, whatever is expected of them below.

/// How a transcript is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    Http,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Send(&'a str),
    /// The stream that answers the request with this id.
    Close(&'a str),
    Terminate,
    Expect {
        /// Over HTTP, where it is not the usual one.
        status: Option<u16>,
        message: &'a str,
    },
    /// Methods that do not exist.
    Unknown(Vec<&'a str>),
    /// For a reader, or for another transport.
    Nothing,
}

impl<'a> Line<'a> {
    /// None where it makes no sense.
    pub(super) fn read(line: &'a str, transport: Transport) -> Option<Self> {
        if line.is_empty() || line.starts_with('#') {
            return Some(Self::Nothing);
        }
        let (mark, rest) = line.split_once(' ')?;
        let (direction, name) = mark.split_at_checked(1)?;
        let is_for_this = match name {
            "stdio" => transport == Transport::Stdio,
            "http" => transport == Transport::Http,
            _ => true,
        };
        if !is_for_this {
            return Some(Self::Nothing);
        }
        match (direction, name) {
            (">", "") => Some(Self::Send(rest)),
            (">", "http") if rest == "SIGTERM" => Some(Self::Terminate),
            (">", "http") if rest.starts_with("close ") => Some(Self::Close(&rest[6..])),
            (">", "stdio" | "http") if rest.starts_with('{') => Some(Self::Send(rest)),
            ("<", "http") if !rest.starts_with(['{', '[']) => {
                let (status, message) = rest.split_once(' ')?;
                Some(Self::Expect { status: Some(status.parse().ok()?), message })
            }
            ("<", "" | "stdio" | "http") => Some(Self::Expect { status: None, message: rest }),
            ("<", status) => {
                Some(Self::Expect { status: Some(status.parse().ok()?), message: rest })
            }
            ("@", "http") => {
                let methods = rest.strip_prefix("unknown: ")?;
                Some(Self::Unknown(methods.split(", ").collect()))
            }
            _ => None,
        }
    }
}

#[test]
fn lines_are_for_both_transports_or_for_one() {
    use Transport::{Http, Stdio};
    let expect = |status, message| Line::Expect { status, message };
    for (line, stdio, http) in [
        ("# a", Some(Line::Nothing), Some(Line::Nothing)),
        ("> nonsense", Some(Line::Send("nonsense")), Some(Line::Send("nonsense"))),
        (">stdio {}", Some(Line::Send("{}")), Some(Line::Nothing)),
        (">http close \"a\"", Some(Line::Nothing), Some(Line::Close("\"a\""))),
        (">http SIGTERM", Some(Line::Nothing), Some(Line::Terminate)),
        ("< {}", Some(expect(None, "{}")), Some(expect(None, "{}"))),
        ("<http {}", Some(Line::Nothing), Some(expect(None, "{}"))),
        ("<http 404 {}", Some(Line::Nothing), Some(expect(Some(404), "{}"))),
        ("<404 {}", Some(expect(Some(404), "{}")), Some(expect(Some(404), "{}"))),
        ("@http unknown: a, b", Some(Line::Nothing), Some(Line::Unknown(vec!["a", "b"]))),
        ("<fax {}", None, None),
        (">http open", Some(Line::Nothing), None),
        ("{}", None, None),
    ] {
        assert_eq!(Line::read(line, Stdio), stdio, "{line}");
        assert_eq!(Line::read(line, Http), http, "{line}");
    }
}
