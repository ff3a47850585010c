//! The tokens of an issuer: a scope gives a right, and a session is shared by `ISSUER#SUBJECT`.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

use super::actions::said;
use super::house::with;
use crate::Place;
use crate::agent::{LETTER, advance};
use crate::http_server::Listening;

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://mcp.example.com/mcp";

#[test]
fn a_scope_of_an_issuer_is_a_right() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let private = EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref());
    let mut public = Jwk::from_encoding_key(&private, Algorithm::ES256).unwrap();
    public.common.key_id = Some("own".to_owned());
    place.write("jwks.json", json!({"keys": [public]}).to_string());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let token = |subject: &str, scope: &str| {
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": subject, "scope": scope, "exp": now + 3600,
        });
        let header = Header { kid: Some("own".to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, &claims, &private).unwrap()
    };
    let options = ["serve", "--http", "127.0.0.1:0", "--gates", "strict"];
    let oauth = ["--oauth-issuer", ISSUER, "--public-url", AUDIENCE, "--oauth-jwks", "jwks.json"];
    let server = Listening::spawn(place.command(&[&options[..], &oauth].concat()));
    let client = |subject: &str, scope: &str| with(server.address, token(subject, scope));
    let (ann, bea) = (client("ann", "a"), client("bea", "a workflowlookup:approve"));
    let (carl, boss) =
        (client("carl", "workflowlookup:approve"), client("di", "workflowlookup:admin"));

    let start = json!({"workflowId": "letter", "sharedWith": [format!("{ISSUER}#bea")]});
    let session = ann.told("workflow_start", &start)["sessionId"].as_str().unwrap().to_owned();
    ann.told("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    ann.told("workflow_advance", &advance(&session, 1, "send-it", "by post"));
    let of = json!({"sessionId": session});
    assert_eq!(said(&client("carl", "a").call("workflow_status", &of)), "not found");
    assert_eq!(said(&boss.call("workflow_status", &of)), "it waits");
    assert_eq!(said(&bea.call("workflow_start", &start)), "needs `use`");
    // Whoever has both has neither.
    let both = client("bea", "workflowlookup:approve workflowlookup:use");
    let refused = both.call("workflow_status", &of);
    assert_eq!(refused.head.status, 403);
    assert!(refused.head.header("WWW-Authenticate").unwrap().contains("insufficient_scope"));

    let approve = format!("/sessions/{session}/approve");
    for (client, status) in [(&ann, 403), (&boss, 403), (&carl, 404), (&both, 403), (&bea, 200)] {
        assert_eq!(client.endpoint("POST", &approve, &json!({"version": 3})).head.status, status);
    }
    let shown = place.run(&["session", "show", &session]).stdout;
    assert!(shown.contains(&format!("approved by {ISSUER}#bea with a token")), "{shown}");
    server.end();
}
