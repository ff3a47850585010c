//! Who does not have what it takes: a server that wants tokens of its own or of an issuer, and everything else that one
//! can show it.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::{Attack, Lane, Target};
use crate::Place;
use crate::agent::Era;
use crate::http_agent::{hello, list, session_of};
use crate::http_client::{Request, Response};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://mcp.example.com/mcp";

pub(super) fn lane() -> Lane {
    Lane { command: prepare, attacks: attacks() }
}

/// A server with tokens of its own and of an issuer. What there is to show lies beside it, each in a file.
fn prepare(place: &Place) -> Command {
    for (name, expires) in [("good", "1d"), ("gone", "1d"), ("short", "1s"), ("other", "1d")] {
        let made = place.run(&["token", "new", name, "--expires", expires]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        place.write(&format!("{name}.token"), made.stdout.trim());
    }
    assert_eq!(place.run(&["token", "revoke", "gone"]).status, 0);
    let key = |id: &str| {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let private = EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref());
        let mut public = Jwk::from_encoding_key(&private, Algorithm::ES256).unwrap();
        public.common.key_id = Some(id.to_owned());
        (Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) }, private, public)
    };
    let ((header, private, public), (strange_header, strange, _)) = (key("own"), key("strange"));
    place.write("jwks.json", json!({"keys": [public]}).to_string());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let good = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "scope": "workflows",
        "iat": now, "exp": now + 3600,
    });
    let with = |field: &str, value: Value| {
        let mut claims = good.clone();
        claims[field] = value;
        claims
    };
    let sign = |claims: &Value| encode(&header, claims, &private).unwrap();
    let signed = sign(&good);
    let claims = signed.split('.').nth(1).unwrap();
    let encoded = |header: Value| URL_SAFE_NO_PAD.encode(header.to_string());
    let public_as_secret = EncodingKey::from_secret(json!(public).to_string().as_bytes());
    let with_secret = Header { kid: Some("own".to_owned()), ..Header::new(Algorithm::HS256) };
    for (name, token) in [
        ("issued", signed.clone()),
        ("old", sign(&with("exp", json!(now - 3600)))),
        ("early", sign(&with("nbf", json!(now + 3600)))),
        ("elsewhere", sign(&with("aud", json!("https://other.example")))),
        ("issuer", sign(&with("iss", json!("https://evil.example")))),
        ("endless", sign(&with("exp", Value::Null))),
        ("narrow", sign(&with("scope", json!("something")))),
        ("none", format!("{}.{claims}.", encoded(json!({"alg": "none", "typ": "JWT"})))),
        ("secret", encode(&with_secret, &good, &public_as_secret).unwrap()),
        ("strange", encode(&strange_header, &good, &strange).unwrap()),
        ("borrowed", encode(&header, &good, &strange).unwrap()),
    ] {
        place.write(&format!("{name}.token"), &token);
    }
    place.command(&[
        "serve",
        "--http",
        "127.0.0.1:0",
        "--oauth-issuer",
        ISSUER,
        "--public-url",
        AUDIENCE,
        "--oauth-jwks",
        "jwks.json",
        "--oauth-scope",
        "workflows",
    ])
}

fn attacks() -> Vec<Attack> {
    let shown = |name, sent, token: &'static str| {
        Attack::new(name, sent, move |target| said(&target.show(&target.token(token))))
    };
    let sent = "a good call with it";
    vec![
        Attack::new("no credentials", "a good call", |target| {
            said(&list(Era::Modern, "").send(target.address()).unwrap())
        }),
        shown("a good token", sent, "good"),
        Attack::new("garbage for a token", sent, |target| said(&target.show("garbage"))),
        Attack::new("a token with one letter changed", sent, |target| {
            let mut token = target.token("good");
            let last = token.pop().unwrap();
            token.push(if last == '0' { '1' } else { '0' });
            said(&target.show(&token))
        }),
        Attack::new("the name of a token", sent, |target| said(&target.show("good"))),
        shown("a token that was revoked", sent, "gone"),
        Attack::new("a token that has ended", "a second after it was good", |target| {
            std::thread::sleep(std::time::Duration::from_millis(1100));
            said(&target.show(&target.token("short")))
        }),
        Attack::new("a password", "`Authorization: Basic …`", |target| {
            let call = list(Era::Modern, "").header("Authorization", "Basic Z29vZDpnb29k");
            said(&call.send(target.address()).unwrap())
        }),
        Attack::new("a token in the query", "`POST /mcp?access_token=…`", |target| {
            let query = format!("/mcp?access_token={}", target.token("good"));
            said(&list(Era::Modern, "").at(&query).send(target.address()).unwrap())
        }),
        Attack::new("a token of 32 KiB", sent, |target| said(&target.show(&"a".repeat(32_768)))),
        Attack::new("a session id of another principal", "with a token of one's own", |target| {
            let (good, other) = (target.token("good"), target.token("other"));
            let bearer = |token| format!("Bearer {token}");
            let request = hello(&json!({})).header("Authorization", &bearer(good));
            let session = session_of(&request.send(target.address()).unwrap());
            let call = list(Era::Legacy, &session).header("Authorization", &bearer(other));
            said(&call.send(target.address()).unwrap())
        }),
        shown("a good token of the issuer", sent, "issued"),
        shown("an expired token of the issuer", sent, "old"),
        shown("one that is not good yet", sent, "early"),
        shown("one that never ends", sent, "endless"),
        shown("one for another audience", sent, "elsewhere"),
        shown("one without the scope", sent, "narrow"),
        shown("one of another issuer", "signed with the right key", "issuer"),
        shown("`alg: none`", "the claims of a good one, unsigned", "none"),
        shown("`alg: HS256`", "signed with the public key as a secret", "secret"),
        shown("a key that the issuer does not have", sent, "strange"),
        shown("a key under another one's name", sent, "borrowed"),
        Attack::new("one letter of a good one changed", "each letter in turn", |target| {
            let token = target.token("issued");
            let mut connection = target.connect();
            let statuses = (0..token.len()).filter(|at| token.as_bytes()[*at] != b'.').map(|at| {
                let mut changed = token.clone().into_bytes();
                // The last letter of a part has bits that nobody looks at; this one is never among them.
                changed[at] = if changed[at] == b'A' { b'g' } else { b'A' };
                let changed = String::from_utf8(changed).unwrap();
                let call =
                    list(Era::Modern, "").header("Authorization", &format!("Bearer {changed}"));
                connection.ask(&call).unwrap().head.status
            });
            let mut statuses: Vec<u16> = statuses.collect();
            statuses.dedup();
            format!("{statuses:?}").replace(['[', ']'], "")
        }),
        Attack::new("a stream of a token that is revoked", "a change, after it was", |target| {
            let made = target.place.run(&["token", "new", "leaving"]);
            let token = format!("Bearer {}", made.stdout.trim());
            // A running server notices within a second.
            let tried = || hello(&json!({})).header("Authorization", &token);
            super::wait_until("the token is known", || {
                tried().send(target.address()).unwrap().head.status == 200
            });
            let session = session_of(&tried().send(target.address()).unwrap());
            let mut stream = target.connect();
            let listen = Request::listen(&session).header("Authorization", &token);
            assert_eq!(stream.begin(&listen).unwrap().status, 200);
            stream.event().unwrap();
            assert_eq!(target.place.run(&["token", "revoke", "leaving"]).status, 0);
            super::wait_until("the token is gone", || {
                tried().send(target.address()).unwrap().head.status == 401
            });
            target
                .place
                .write("workflows/another.json", crate::agent::LETTER.replace("letter", "another"));
            match stream.event() {
                Ok(None) => "the stream ends".to_owned(),
                other => format!("{other:?}"),
            }
        }),
        Attack::new("`/metrics` without a token", "`GET`", |target| {
            said(&Request::new("GET", "/metrics").send(target.address()).unwrap())
        }),
        Attack::new("where to get a token", "`GET` of RFC 9728's document", |target| {
            let path = "/.well-known/oauth-protected-resource/mcp";
            said(&Request::new("GET", path).send(target.address()).unwrap())
        }),
    ]
}

impl Target {
    /// What lies beside the server.
    pub(super) fn token(&self, name: &str) -> String {
        fs::read_to_string(self.place.project().join(format!("{name}.token"))).unwrap()
    }

    fn show(&self, token: &str) -> Response {
        let call = list(Era::Modern, "").header("Authorization", &format!("Bearer {token}"));
        call.send(self.address()).unwrap()
    }
}

/// The status, and what the server wants.
fn said(response: &Response) -> String {
    let challenge = response.head.header("WWW-Authenticate").unwrap_or_default();
    let error = challenge.split(", ").find_map(|part| part.strip_prefix("error="));
    let error = error.map(|error| format!(" {}", error.trim_matches('"')));
    format!("{}{}", response.head.status, error.unwrap_or_default())
}
