//! Tokens that are really signed, checked with keys that are really fetched.

mod fetching;
mod issuer;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jsonwebtoken::{EncodingKey, encode};
use serde_json::json;

use super::*;
use crate::sessions::now;
use issuer::{Issuer, Mode, Pair};

const AUDIENCE: &str = "https://mcp.example/mcp";

static EC: LazyLock<Pair> = LazyLock::new(|| Pair::new(Algorithm::ES256, "ec"));
static RSA: LazyLock<Pair> = LazyLock::new(|| Pair::new(Algorithm::RS256, "rsa"));
static ED: LazyLock<Pair> = LazyLock::new(|| Pair::new(Algorithm::EdDSA, "ed"));
static NEXT: LazyLock<Pair> = LazyLock::new(|| Pair::new(Algorithm::EdDSA, "next"));

fn oauth(issuer: &Issuer) -> OAuth {
    OAuth {
        issuer: issuer.url.clone(),
        audience: AUDIENCE.to_owned(),
        jwks: None,
        algorithms: ALGORITHMS_BY_DEFAULT.to_vec(),
        scopes: Vec::new(),
    }
}

fn server(issuer: &Issuer, times: Times) -> ResourceServer {
    ResourceServer::with_times(oauth(issuer), times).unwrap()
}

fn in_seconds(seconds: i64) -> i64 {
    i64::try_from(now() / 1000).unwrap() + seconds
}

/// What a good token says.
fn claims(issuer: &Issuer) -> Value {
    json!({"iss": issuer.url, "aud": AUDIENCE, "sub": "anna", "exp": in_seconds(600), "scope": "a b"})
}

/// The same with one claim changed; null takes it away.
fn with(issuer: &Issuer, name: &str, value: Value) -> Value {
    let mut claims = claims(issuer);
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

async fn seen(server: &ResourceServer, issuer: &Issuer, token: &str) -> String {
    match server.check(token).await {
        Ok(principal) => principal.name.replace(&issuer.url, "[ISSUER]"),
        Err(denied) => format!("{} {}", denied.status(), denied.reason()),
    }
}

#[tokio::test]
async fn good_tokens_are_let_in_whatever_they_are_signed_with() {
    let issuer = Issuer::start("", &[&EC, &RSA, &ED]);
    let server = server(&issuer, Times::default());
    for pair in [&*EC, &*RSA, &*ED] {
        let token = pair.sign(&claims(&issuer));
        assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna", "{}", pair.id);
        // Not every issuer names its keys.
        let header = Header { kid: None, ..pair.header() };
        let token = encode(&header, &claims(&issuer), &pair.private).unwrap();
        assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna", "{}", pair.id);
        let header = Header { typ: Some("at+JWT".to_owned()), ..pair.header() };
        let token = encode(&header, &claims(&issuer), &pair.private).unwrap();
        assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna", "{}", pair.id);
    }
    let several = json!(["https://other.example", AUDIENCE]);
    let token = EC.sign(&with(&issuer, "aud", several));
    assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna");
    let exp = in_seconds(600);
    let principal = server.check(&EC.sign(&with(&issuer, "exp", json!(exp)))).await.unwrap();
    assert_eq!(principal.until, Some(u64::try_from(exp).unwrap() * 1000));
}

#[tokio::test]
async fn what_a_token_says_decides() {
    let issuer = Issuer::start("", &[&ED]);
    let server = server(&issuer, Times::default());
    let leeway = i64::try_from(LEEWAY_SECONDS).unwrap();
    let mut table = String::new();
    for (name, value) in [
        ("exp", json!(in_seconds(10 - leeway))),
        ("exp", json!(in_seconds(-10 - leeway))),
        ("exp", json!(0)),
        ("exp", json!(-1)),
        ("exp", json!("soon")),
        ("exp", json!(null)),
        ("exp", json!(1e300)),
        ("nbf", json!(in_seconds(leeway - 10))),
        ("nbf", json!(in_seconds(leeway + 10))),
        ("nbf", json!("soon")),
        ("aud", json!("https://other.example")),
        ("aud", json!([])),
        ("aud", json!(null)),
        ("aud", json!("https://mcp.example/mcp/")),
        ("iss", json!("https://other.example")),
        ("iss", json!(format!("{}/", issuer.url))),
        ("iss", json!([issuer.url])),
        ("iss", json!(null)),
        ("sub", json!(null)),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!("a\nb")),
        ("sub", json!("a".repeat(256))),
        ("sub", json!("https://other.example#anna")),
    ] {
        let token = ED.sign(&with(&issuer, name, value.clone()));
        let seen = seen(&server, &issuer, &token).await;
        let now = i64::try_from(now() / 1000).unwrap();
        let value = match value.as_i64() {
            Some(time) if time > 1_000_000 => {
                // Told to ten seconds: the test may take one.
                format!("now{:+}", ((time - now) as f64 / 10.0).round() as i64 * 10)
            }
            _ => value.to_string().replace(&issuer.url, "[ISSUER]"),
        };
        let value = value.replace(&"a".repeat(256), "aaa…");
        table.push_str(&format!("{name} {value}: {seen}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    exp now-20: [ISSUER]#anna
    exp now-40: 401 the token has expired
    exp 0: 401 the token has expired
    exp -1: 401 the token lacks `exp`, `iss`, `aud` or `sub`
    exp "soon": 401 the token cannot be read
    exp null: 401 the token lacks `exp`, `iss`, `aud` or `sub`
    exp 1e+300: 401 the token lacks `exp`, `iss`, `aud` or `sub`
    nbf now+20: [ISSUER]#anna
    nbf now+40: 401 the token is not good yet
    nbf "soon": 401 the token cannot be read
    aud "https://other.example": 401 the token is made out to somebody else
    aud []: 401 the token is made out to somebody else
    aud null: 401 the token lacks `exp`, `iss`, `aud` or `sub`
    aud "https://mcp.example/mcp/": 401 the token is made out to somebody else
    iss "https://other.example": 401 the token is another issuer's
    iss "[ISSUER]/": 401 the token is another issuer's
    iss ["[ISSUER]"]: 401 the token cannot be read
    iss null: 401 the token lacks `exp`, `iss`, `aud` or `sub`
    sub null: 401 the token lacks `exp`, `iss`, `aud` or `sub`
    sub "": 401 the token has a subject that cannot be used
    sub 7: 401 the token cannot be read
    sub "a\nb": 401 the token has a subject that cannot be used
    sub "aaa…": 401 the token has a subject that cannot be used
    sub "https://other.example#anna": [ISSUER]#https://other.example#anna
    "#);
}

#[tokio::test]
async fn a_token_does_not_decide_how_it_is_checked() {
    let issuer = Issuer::start("", &[&EC, &RSA, &ED]);
    let server = server(&issuer, Times::default());
    let good = ED.sign(&claims(&issuer));
    let parts: Vec<&str> = good.split('.').collect();
    // `{"alg":"none","kid":"ed"}` and `{"alg":"nOnE"}`
    let none = format!("eyJhbGciOiJub25lIiwia2lkIjoiZWQifQ.{}.", parts[1]);
    let none_signed = format!("eyJhbGciOiJub25lIiwia2lkIjoiZWQifQ.{}.{}", parts[1], parts[2]);
    let odd_none = format!("eyJhbGciOiJuT25FIn0.{}.", parts[1]);
    let changed = |at: usize| {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let as_secret = |pair: &Pair, field: &str| {
        let key = pair.public()[field].as_str().unwrap().to_owned();
        let header = Header { alg: Algorithm::HS256, ..pair.header() };
        let secret = EncodingKey::from_secret(key.as_bytes());
        encode(&header, &claims(&issuer), &secret).unwrap()
    };
    let headed = |pair: &Pair, change: fn(&mut Header)| {
        let mut header = pair.header();
        change(&mut header);
        encode(&header, &claims(&issuer), &pair.private).unwrap()
    };
    let stranger = Pair::new(Algorithm::EdDSA, "ed");
    let mut table = String::new();
    for (what, token) in [
        ("good", good.clone()),
        ("alg none", none),
        ("alg none with a signature", none_signed),
        ("alg nOnE", odd_none),
        ("HS256 with the RSA key as secret", as_secret(&RSA, "n")),
        ("HS256 with the EC key as secret", as_secret(&EC, "x")),
        ("an algorithm that is not allowed", headed(&RSA, |header| header.alg = Algorithm::PS256)),
        (
            "the name of a key of another kind",
            headed(&EC, |header| header.kid = Some("rsa".into())),
        ),
        ("somebody else's key under the same name", stranger.sign(&claims(&issuer))),
        ("an unknown name", headed(&ED, |header| header.kid = Some("who".into()))),
        ("critical extensions", headed(&ED, |header| header.crit = Some(vec!["b64".into()]))),
        ("a logout token", headed(&ED, |header| header.typ = Some("logout+jwt".into()))),
        ("a header bit changed", changed(5)),
        ("a claim's bit changed", changed(parts[0].len() + 10)),
        ("a bit of the signature changed", changed(good.len() - 20)),
        ("truncated", good[..good.len() - 5].to_owned()),
        ("without a signature", format!("{}.{}.", parts[0], parts[1])),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("five parts", format!("{good}.a.b")),
        ("dots", "....".to_owned()),
        ("garbage", "abc".to_owned()),
        ("nothing", String::new()),
        ("huge", format!("{}.{}.{}", parts[0], "A".repeat(1_000_000), parts[2])),
    ] {
        table.push_str(&format!("{what}: {}\n", seen(&server, &issuer, &token).await));
    }
    insta::assert_snapshot!(table, @"
    good: [ISSUER]#anna
    alg none: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    alg none with a signature: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    alg nOnE: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    HS256 with the RSA key as secret: 401 the token is signed in a way that is not allowed here
    HS256 with the EC key as secret: 401 the token is signed in a way that is not allowed here
    an algorithm that is not allowed: 401 the token is signed in a way that is not allowed here
    the name of a key of another kind: 401 the signature of the token does not fit
    somebody else's key under the same name: 401 the signature of the token does not fit
    an unknown name: 401 the token was not made with a key of the issuer's
    critical extensions: 401 the token has critical extensions, and none is known here
    a logout token: 401 the JWT is something else than an access token
    a header bit changed: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    a claim's bit changed: 401 the signature of the token does not fit
    a bit of the signature changed: 401 the signature of the token does not fit
    truncated: 401 the token cannot be read
    without a signature: 401 the signature of the token does not fit
    two parts: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    five parts: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    dots: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    garbage: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    nothing: 401 the token is neither one of ours nor a JWT with a signature that can be checked
    huge: 401 the signature of the token does not fit
    ");
}

#[tokio::test]
async fn a_scope_gives_a_right_and_two_give_none() {
    let issuer = Issuer::start("", &[&EC]);
    let server = server(&issuer, Times::default());
    let mut table = String::new();
    for scope in [
        json!(null),
        json!("a b"),
        json!("workflowlookup:use"),
        json!("a workflowlookup:approve b"),
        json!(["workflowlookup:admin"]),
        json!("workflowlookup:approver Workflowlookup:admin"),
        json!("workflowlookup:use workflowlookup:approve"),
        json!(["workflowlookup:admin", "workflowlookup:approve"]),
        json!("workflowlookup:admin workflowlookup:use"),
    ] {
        let seen = match server.check(&EC.sign(&with(&issuer, "scope", scope.clone()))).await {
            Ok(principal) => principal.right.to_string(),
            Err(denied) => format!("{} {}", denied.status(), denied.reason()),
        };
        table.push_str(&format!("{scope}: {seen}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    null: use
    "a b": use
    "workflowlookup:use": use
    "a workflowlookup:approve b": approve
    ["workflowlookup:admin"]: admin
    "workflowlookup:approver Workflowlookup:admin": use
    "workflowlookup:use workflowlookup:approve": 403 the token has the scopes `workflowlookup:use` and `workflowlookup:approve`, and may have one of them only
    ["workflowlookup:admin","workflowlookup:approve"]: 403 the token has the scopes `workflowlookup:approve` and `workflowlookup:admin`, and may have one of them only
    "workflowlookup:admin workflowlookup:use": 403 the token has the scopes `workflowlookup:use` and `workflowlookup:admin`, and may have one of them only
    "#);
}

#[tokio::test]
async fn scopes_are_asked_for_and_found_in_either_form() {
    let issuer = Issuer::start("", &[&ED]);
    let scopes = vec!["a".to_owned(), "b".to_owned()];
    let server = ResourceServer::new(OAuth { scopes, ..oauth(&issuer) }).unwrap();
    let mut table = String::new();
    for (name, value) in [
        ("scope", json!("b x a")),
        ("scope", json!(["a", "b"])),
        ("scope", json!("a")),
        ("scope", json!("ab")),
        ("scope", json!("")),
        ("scope", json!(7)),
        ("scope", json!(null)),
    ] {
        let token = ED.sign(&with(&issuer, name, value.clone()));
        table.push_str(&format!("{value}: {}\n", seen(&server, &issuer, &token).await));
    }
    let mut both = with(&issuer, "scope", json!("a"));
    both["scp"] = json!(["b"]);
    table.push_str(&format!("both: {}\n", seen(&server, &issuer, &ED.sign(&both)).await));
    insta::assert_snapshot!(table, @r#"
    "b x a": [ISSUER]#anna
    ["a","b"]: [ISSUER]#anna
    "a": 403 the token is not good for this: it lacks a scope
    "ab": 403 the token is not good for this: it lacks a scope
    "": 403 the token is not good for this: it lacks a scope
    7: 403 the token is not good for this: it lacks a scope
    null: 403 the token is not good for this: it lacks a scope
    both: [ISSUER]#anna
    "#);
}
