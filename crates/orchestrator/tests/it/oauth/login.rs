//! Logging in and out.

use orchestrator::Error;
use orchestrator::oauth::{Error as LoginError, LoggedOut};
use orchestrator::wire::WireLog;
use serde_json::json;

use super::{A_MOMENT, Guarded, browse, entry};
use crate::world::FOR_EVER;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_once_and_is_let_in_from_then_on() {
    let guarded = Guarded::new().await;
    let Err(Error::Unauthorized { status: 401, hint, .. }) = guarded.call("read").await else {
        panic!("let in")
    };
    assert!(hint.contains("`workflowlookup mcp login test`"), "{hint}");
    assert_eq!(guarded.logins.state("test", &guarded.connect()).unwrap(), None);

    let begun = guarded.begin().await.unwrap();
    assert_eq!(begun.issuer(), Some(guarded.issuer.base.as_str()));
    let browser = tokio::spawn(browse(begun.url().to_owned()));
    let done = begun.finish(FOR_EVER).await.unwrap();
    let (status, page) = browser.await.unwrap();
    assert_eq!(status, 200);
    assert!(page.contains("close this window") && !page.contains("secret-code"), "{page}");
    assert_eq!(done.issuer.as_deref(), Some(guarded.issuer.base.as_str()));
    // What the server's challenge asked for.
    assert_eq!((done.scopes, done.is_renewable), (vec!["read".to_owned()], true));

    assert_eq!(guarded.said().await, "you showed access-token-3");
    let asked = ["register", "authorize", "token authorization_code"];
    assert_eq!(guarded.issuer.asked(), asked);
    let [authorize] = &guarded.issuer.asked_for("authorize")[..] else { panic!("asked twice") };
    assert_eq!(authorize["resource"], guarded.issuer.url());
    assert!(authorize["redirect_uri"].starts_with("http://127.0.0.1:"), "{authorize:?}");
    assert_eq!(authorize["code_challenge_method"], "S256");
    let [token] = &guarded.issuer.asked_for("token authorization_code")[..] else {
        panic!("asked twice")
    };
    assert_eq!(
        (&*token["client_id"], &*token["shown secret"]),
        ("client-1", "registered-secret-1")
    );
    let state = guarded.logins.state("test", &guarded.connect()).unwrap().unwrap();
    assert!(state.is_renewable && state.seconds_left.unwrap() > 3500, "{state:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_says_nothing_of_a_login_gets_one_all_the_same() {
    let guarded = Guarded::with(|entry| {
        entry["mcp"].as_object_mut().unwrap().remove("auth");
    });
    let guarded = guarded.await;
    guarded.login().await.unwrap();
    assert_eq!(guarded.said().await, "you showed access-token-3");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_to_this_login_is_turned_away() {
    let guarded = Guarded::new().await;
    let begun = guarded.begin().await.unwrap();
    let url = begun.url().to_owned();
    let finishing = tokio::spawn(begun.finish(FOR_EVER));
    let address = reqwest::Url::parse(&url).unwrap();
    let callback =
        address.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
    for forged in ["?code=c&state=forged", "?code=c", "?error=access_denied&state=forged", ""] {
        let (status, page) = browse(format!("{callback}{forged}")).await;
        assert_eq!(status, 400, "{page}");
    }
    assert_eq!(guarded.issuer.asked(), ["register"]);
    browse(url).await;
    finishing.await.unwrap().unwrap();
    assert_eq!(guarded.said().await, "you showed access-token-3");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_ever() {
    let guarded = Guarded::new().await;
    let begun = guarded.begin().await.unwrap();
    let url = reqwest::Url::parse(begun.url()).unwrap();
    let callback =
        url.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
    let error = begun.finish(A_MOMENT).await.unwrap_err();
    assert!(matches!(error, LoginError::Unfinished { foreign: false, .. }), "{error}");
    insta::assert_snapshot!(error, @"nobody completed the login within 200ms; try again");
    // The port is closed again.
    assert!(reqwest::get(callback).await.is_err());
    assert!(!guarded.file().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_issuer_gets_no_code_exchanged() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.iss = Some("https://evil.example".to_owned()));
    let error = guarded.login().await.unwrap_err();
    assert!(
        matches!(&error, LoginError::WrongIssuer { received, .. } if received == "https://evil.example"),
        "{error}"
    );

    guarded.issuer.behave(|manners| (manners.iss, manners.says_iss) = (None, true));
    let error = guarded.login().await.unwrap_err();
    assert!(matches!(&error, LoginError::NoIssuer { .. }), "{error}");
    assert_eq!(guarded.issuer.asked_for("token authorization_code").len(), 0);

    let base = guarded.issuer.base.clone();
    guarded.issuer.behave(|manners| manners.iss = Some(base));
    guarded.login().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_nobody_in_particular_are_not_used() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.hides_issuer = true);
    let error = guarded.login().await.unwrap_err();
    assert!(error.to_string().contains("/.well-known/elsewhere"), "{error}");
    assert!(guarded.issuer.asked().is_empty(), "nobody was sent anywhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_may_say_no() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.refuses = Some("access_denied"));
    let error = guarded.login().await.unwrap_err();
    insta::assert_snapshot!(error, @"the login was refused: access_denied (not today)");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_is_registered_the_entry_names_a_client() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.registers = false);
    let error = guarded.login().await.unwrap_err();
    assert!(matches!(&error, LoginError::NoRegistration { .. }), "{error}");
    assert!(error.to_string().contains("\"clientId\""), "{error}");

    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut by_hand = entry(&guarded.issuer.url());
    by_hand["mcp"]["auth"] = json!({
        "type": "oauth",
        "clientId": "by-hand",
        "clientSecret": "${SECRET_TOKEN}",
        "scopes": ["read", "all"],
        "callbackPort": port,
    });
    guarded.world.rewrite(&[("test", by_hand)]);
    guarded.login().await.unwrap();
    let [authorize] = &guarded.issuer.asked_for("authorize")[..] else { panic!("asked twice") };
    assert_eq!((&*authorize["client_id"], &*authorize["scope"]), ("by-hand", "read all"));
    assert_eq!(authorize["redirect_uri"], format!("http://localhost:{port}/callback"));
    // What stands in the registry is not copied, and is there when it is needed.
    let kept = std::fs::read_to_string(guarded.file()).unwrap();
    assert!(!kept.contains("s3cr3t"), "{kept}");
    guarded.expire();
    guarded.said().await;
    let [renewed] = &guarded.issuer.asked_for("token refresh_token")[..] else {
        panic!("asked twice")
    };
    assert_eq!((&*renewed["client_id"], &*renewed["shown secret"]), ("by-hand", "s3cr3t-t0ken"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_says_how_to_log_in_a_token_is_needed() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.is_silent = true);
    let error = guarded.login().await.unwrap_err();
    assert!(matches!(error, LoginError::NowhereToLogIn { .. }), "{error}");
    insta::assert_snapshot!(error, @r#"`test` wants a token, and does not say where one logs in; put a token into `mcp.auth`: `{"type": "bearer", "token": "${NAME}"}`"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_asked_for_at_the_next_login() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.write_scope = Some("write"));
    guarded.login().await.unwrap();
    guarded.call("read").await.unwrap();
    let Err(Error::Unauthorized { status: 403, hint, .. }) = guarded.call("write").await else {
        panic!("let in")
    };
    assert!(hint.contains("`workflowlookup mcp login test`"), "{hint}");
    // A token that is good is not renewed for that.
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 0);
    let done = guarded.login().await.unwrap();
    assert_eq!(done.scopes, ["read", "write"]);
    guarded.call("write").await.unwrap();
    guarded.call("read").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_ends_it_on_both_sides() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    let connect = guarded.connect();
    assert_eq!(guarded.logins.logout("test", Some(&connect)).await.unwrap(), LoggedOut::Revoked);
    let [revoked] = &guarded.issuer.asked_for("revoke")[..] else { panic!("asked twice") };
    assert_eq!(
        (&*revoked["token"], &*revoked["token_type_hint"]),
        ("refresh-token-3", "refresh_token")
    );
    let kept = std::fs::read_to_string(guarded.file()).unwrap();
    assert!(!kept.contains("token-3"), "{kept}");
    assert!(matches!(guarded.call("read").await, Err(Error::Unauthorized { .. })));
    assert_eq!(guarded.logins.logout("test", Some(&connect)).await.unwrap(), LoggedOut::Nothing);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_does_not_get_the_token() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    let before = guarded.issuer.shown().len();
    guarded.world.rewrite(&[("test", entry(&format!("{}/other", guarded.issuer.base)))]);
    assert!(matches!(guarded.call("read").await, Err(Error::Unauthorized { .. })));
    assert!(guarded.issuer.shown()[before..].iter().all(Option::is_none));
    // Nor does another server at the same one.
    guarded.world.rewrite(&[("second", entry(&guarded.issuer.url()))]);
    let call = crate::world::call("second", "read", json!({}));
    assert!(matches!(guarded.world.orchestrator.call(call).await, Err(Error::Unauthorized { .. })));
    assert!(guarded.issuer.shown()[before..].iter().all(Option::is_none));
    // Whoever comes back to the first is let in: another project may have meant it all the time.
    guarded.world.rewrite(&[("test", entry(&guarded.issuer.url()))]);
    assert_eq!(guarded.said().await, "you showed access-token-3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_a_token_already_needs_no_login() {
    let guarded = Guarded::with(|entry| {
        entry["mcp"]["auth"] = json!({"type": "bearer", "token": "${SECRET_TOKEN}"});
    });
    let error = guarded.await.login().await.unwrap_err();
    assert!(matches!(error, LoginError::HasToken { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_ever_shown() {
    let mut guarded = Guarded::new().await;
    let path = guarded.folder.path().join("wire.jsonl");
    let tokens = std::sync::Arc::new(guarded.logins.clone());
    guarded.world =
        crate::world::World::with(&[("test", entry(&guarded.issuer.url()))], |options| {
            options.wire = Some(WireLog::open(&path).unwrap());
            options.tokens = Some(tokens);
        });
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.expire();
    guarded.said().await;
    let wire = std::fs::read_to_string(&path).unwrap();
    assert_eq!(wire.matches("you showed ***").count(), 2, "{wire}");
    for secret in ["access-token", "refresh-token", "registered-secret", "secret-code"] {
        assert!(!wire.contains(secret), "{wire}");
    }
    let shown =
        format!("{:?} {:?}", guarded.logins, guarded.logins.state("test", &guarded.connect()));
    assert!(!shown.contains("token-"), "{shown}");
}
