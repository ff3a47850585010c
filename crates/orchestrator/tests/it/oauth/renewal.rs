//! Tokens are renewed in time, once, and by one alone.

use std::time::Duration;

use orchestrator::{Error, oauth};

use super::Guarded;
use crate::world::{call, until};

#[tokio::test(flavor = "multi_thread")]
async fn before_it_expires_and_with_what_came_last() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    for (renewed, token) in [(1, 4), (2, 5), (3, 6)] {
        guarded.expire();
        assert_eq!(guarded.said().await, format!("you showed access-token-{token}"));
        // A good one is used as it is.
        assert_eq!(guarded.said().await, format!("you showed access-token-{token}"));
        assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), renewed);
    }
    let renewed = guarded.issuer.asked_for("token refresh_token");
    let used: Vec<&str> = renewed.iter().map(|fields| &*fields["refresh_token"]).collect();
    assert_eq!(used, ["refresh-token-3", "refresh-token-4", "refresh-token-5"]);
    assert!(renewed.iter().all(|fields| fields["resource"] == guarded.issuer.url()));
    assert_eq!(guarded.kept()["logins"][0]["login"]["refreshToken"], "refresh-token-6");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_lives_shortly_is_used_while_it_lives() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.lifetime = Some(50));
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.said().await;
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_want_it() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.expire();
    guarded.issuer.behave(|manners| manners.thinks = Duration::from_millis(100));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let orchestrator = guarded.world.orchestrator.clone();
        calls.spawn(
            async move { orchestrator.call(call("test", "read", serde_json::json!({}))).await },
        );
    }
    for result in calls.join_all().await {
        assert_eq!(result.unwrap().raw["content"][0]["text"], "you showed access-token-4");
    }
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_one_is_refused_there_is_one_more() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.issuer.revoke_access();
    assert_eq!(guarded.said().await, "you showed access-token-4");
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 1);
    // A server that takes none of them does not have us renew for ever.
    guarded.issuer.revoke_access();
    assert!(matches!(guarded.call("read").await, Err(Error::Unauthorized { .. })));
    assert!(guarded.issuer.asked_for("token refresh_token").len() <= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_has_ended_is_said_to_have() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.issuer.revoke_all();
    for _ in 0..2 {
        let Err(Error::Unauthorized { hint, .. }) = guarded.call("read").await else {
            panic!("let in")
        };
        assert!(hint.contains("`workflowlookup mcp login test`"), "{hint}");
    }
    // What was no good once is not tried again.
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 1);
    guarded.login().await.unwrap();
    guarded.said().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_way_to_renew_it_ends_by_itself() {
    let guarded = Guarded::new().await;
    guarded.issuer.behave(|manners| manners.gives_refresh_tokens = false);
    let done = guarded.login().await.unwrap();
    assert!(!done.is_renewable);
    guarded.said().await;
    guarded.expire();
    let before = guarded.issuer.shown().len();
    assert!(matches!(guarded.call("read").await, Err(Error::Unauthorized { .. })));
    assert!(
        guarded.issuer.shown()[before..].iter().all(Option::is_none),
        "an old token is not shown"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_down_ends_no_login() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.issuer.behave(|manners| manners.fails = true);
    // As long as the token is good, it is used.
    let soon =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 40;
    guarded.tamper(|login| login["expiresAt"] = soon.into());
    assert_eq!(guarded.said().await, "you showed access-token-3");
    guarded.expire();
    let error = guarded.call("read").await.unwrap_err();
    assert!(error.retryable() && error.to_string().contains("gives no new token"), "{error}");
    // It is asked once, and then left alone for a while.
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 1);
    guarded.issuer.behave(|manners| manners.fails = false);
    // Another process has not been told no.
    let other = oauth::Logins::new(guarded.file());
    let token =
        orchestrator::pool::Tokens::token(&other, "test", &guarded.connect()).await.unwrap();
    assert_eq!(token.as_deref(), Some("access-token-4"));
    // Whatever it brings, all have it.
    assert_eq!(guarded.said().await, "you showed access-token-4");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_when_nobody_waits_any_more() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.expire();
    guarded.issuer.behave(|manners| manners.thinks = Duration::from_millis(300));
    let connect = guarded.connect();
    let wait = orchestrator::pool::Tokens::token(&guarded.logins, "test", &connect);
    assert!(tokio::time::timeout(Duration::from_millis(20), wait).await.is_err(), "it is given up");
    until("the new token is kept", || {
        guarded.kept()["logins"][0]["login"]["refreshToken"] == "refresh-token-4"
    })
    .await;
    assert_eq!(guarded.said().await, "you showed access-token-4");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_logs_out_meanwhile_stays_out() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.said().await;
    guarded.expire();
    guarded.issuer.behave(|manners| manners.thinks = Duration::from_millis(300));
    let calling = guarded.call("read");
    let leaving = async {
        until("it is being renewed", || {
            guarded.issuer.asked().contains(&"token refresh_token".to_owned())
        })
        .await;
        guarded.logins.logout("test", None).await.unwrap();
    };
    let (_, ()) = tokio::join!(calling, leaving);
    assert_eq!(guarded.logins.state("test", &guarded.connect()).unwrap(), None);
    assert!(!std::fs::read_to_string(guarded.file()).unwrap().contains("token-4"));
}
