//! The `Authorization` headers of a request: which token is presented, if one is.

use super::denied::{Denied, Why};

/// An issuer that lists somebody's groups makes long tokens, but hardly this long.
pub(super) const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The one token that is presented.
pub(super) fn presented<'a>(
    headers: impl IntoIterator<Item = &'a [u8]>,
) -> Result<&'a str, Denied> {
    let mut headers = headers.into_iter();
    let Some(header) = headers.next() else {
        return Err(Denied::new(Why::Missing, "there is no `Authorization` header"));
    };
    // Which of them counts, two programs could see differently.
    if headers.next().is_some() {
        let reason = "there is more than one `Authorization` header";
        return Err(Denied::new(Why::Malformed, reason));
    }
    let header = header.trim_ascii();
    let end = header.iter().position(|byte| *byte == b' ').unwrap_or(header.len());
    let (scheme, token) = (&header[..end], header[end..].trim_ascii_start());
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        let reason = "the `Authorization` header is not `Bearer` and a token";
        return Err(Denied::new(Why::Missing, reason));
    }
    if token.is_empty() {
        let reason = "there is no token behind `Bearer`";
        return Err(Denied::new(Why::Missing, reason));
    }
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Denied::new(Why::Invalid, "the token is too long"));
    }
    let text = std::str::from_utf8(token).ok().filter(|_| token.iter().all(is_of_tokens));
    text.ok_or_else(|| Denied::new(Why::Invalid, "the token has characters that no token has"))
}

/// RFC 6750, `b64token`.
fn is_of_tokens(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_is_presented_or_it_is_said_what_is_wrong() {
        let long = format!("Bearer {}", "a".repeat(TOKEN_BYTES_MAX + 1));
        let longest = format!("Bearer {}", "a".repeat(TOKEN_BYTES_MAX));
        type Case<'a> = (&'a [&'a [u8]], Result<&'a str, u16>);
        let cases: &[Case<'_>] = &[
            (&[b"Bearer abc"], Ok("abc")),
            (&[b"bearer  abc "], Ok("abc")),
            (&[b"BEARER a-b.c_d~e+f/g=="], Ok("a-b.c_d~e+f/g==")),
            (&[longest.as_bytes()], Ok(&longest[7..])),
            (&[], Err(401)),
            (&[b""], Err(401)),
            (&[b"  "], Err(401)),
            (&[b"Bearer"], Err(401)),
            (&[b"Bearer "], Err(401)),
            (&[b"Basic YTpi"], Err(401)),
            (&[b"abc"], Err(401)),
            (&[b"Bearerabc"], Err(401)),
            (&[b"Bearer abc, Bearer def"], Err(401)),
            (&[b"Bearer a\tb"], Err(401)),
            (&[b"Bearer \xff\xfe"], Err(401)),
            (&["Bearer näher".as_bytes()], Err(401)),
            (&[long.as_bytes()], Err(401)),
            (&[b"Bearer abc", b"Bearer abc"], Err(400)),
            (&[b"", b"Bearer abc"], Err(400)),
        ];
        for (headers, expected) in cases {
            let presented = presented(headers.iter().copied());
            let seen = presented.map_err(|denied| denied.status());
            assert_eq!(seen, *expected, "{headers:?}");
        }
    }
}
