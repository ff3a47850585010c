//! How keys are got, kept and given up.

use super::*;

/// Everything happens at once.
fn impatient() -> Times {
    Times {
        fetch_interval_min: Duration::ZERO,
        fresh_for: Duration::ZERO,
        usable_for: Duration::from_secs(60),
    }
}

#[tokio::test]
async fn keys_are_rotated() {
    let issuer = Issuer::start("", &[&ED]);
    let times = Times { fetch_interval_min: Duration::ZERO, ..Times::default() };
    let server = server(&issuer, times);
    let (old, new) = (ED.sign(&claims(&issuer)), NEXT.sign(&claims(&issuer)));
    assert_eq!(seen(&server, &issuer, &old).await, "[ISSUER]#anna");
    let unknown = "401 the token was not made with a key of the issuer's";
    assert_eq!(seen(&server, &issuer, &new).await, unknown);
    issuer.publish(&[&ED, &NEXT]);
    assert_eq!(seen(&server, &issuer, &new).await, "[ISSUER]#anna");
    assert_eq!(seen(&server, &issuer, &old).await, "[ISSUER]#anna");
    issuer.publish(&[&NEXT]);
    // It is not asked again for a key that is known. A name that nobody knows makes it.
    assert_eq!(seen(&server, &issuer, &old).await, "[ISSUER]#anna");
    assert_eq!(seen(&server, &issuer, &EC.sign(&claims(&issuer))).await, unknown);
    assert_eq!(seen(&server, &issuer, &old).await, unknown);
    assert_eq!(seen(&server, &issuer, &new).await, "[ISSUER]#anna");
    issuer.publish(&[]);
    assert_eq!(seen(&server, &issuer, &old).await, unknown);
    assert_eq!(seen(&server, &issuer, &new).await, unknown);
}

#[tokio::test]
async fn made_up_names_do_not_make_us_ask_often() {
    let issuer = Issuer::start("", &[&ED]);
    let server = Arc::new(server(&issuer, Times::default()));
    let token = |id: String| {
        let header = Header { kid: Some(id), ..ED.header() };
        encode(&header, &claims(&issuer), &ED.private).unwrap()
    };
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let (server, token) = (Arc::clone(&server), token(format!("made up {number}")));
            tokio::spawn(
                async move { server.check(&token).await.map_err(|denied| denied.status()) },
            )
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Err(401));
    }
    assert_eq!(seen(&server, &issuer, &ED.sign(&claims(&issuer))).await, "[ISSUER]#anna");
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn old_keys_do_while_the_issuer_is_away_but_not_for_ever() {
    let issuer = Issuer::start("", &[&ED]);
    let times = Times { usable_for: Duration::from_secs(3), ..impatient() };
    let server = server(&issuer, times);
    let token = ED.sign(&claims(&issuer));
    assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna");
    issuer.behave(Mode::Slow(Duration::from_millis(500)));
    let begun = Instant::now();
    assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna");
    assert!(begun.elapsed() < Duration::from_millis(400), "nobody waits for new keys");
    issuer.behave(Mode::Dead);
    let begun = Instant::now();
    let away = "503 the issuer's keys cannot be had now; the server's log says why";
    loop {
        let seen = seen(&server, &issuer, &token).await;
        if seen == away {
            break;
        }
        assert_eq!(seen, "[ISSUER]#anna");
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(server.not_ready().is_some());
    issuer.behave(Mode::Good);
    assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna");
    assert_eq!(server.not_ready(), None);
}

#[tokio::test]
async fn an_issuer_that_misbehaves_is_given_up_in_time_and_asked_again() {
    let issuer = Issuer::start("", &[&ED]);
    let token = ED.sign(&claims(&issuer));
    let other = "{\"issuer\": \"x\", \"jwks_uri\": 7}";
    for mode in [
        Mode::Dead,
        Mode::Status(404),
        Mode::Status(500),
        Mode::Text(""),
        Mode::Text("<html>"),
        Mode::Text("{\"keys\": []}"),
        Mode::Text(other),
        Mode::Redirecting,
        Mode::Endless,
        Mode::Pretending,
        Mode::Slow(Duration::from_secs(8)),
    ] {
        let server = server(&issuer, impatient());
        issuer.behave(mode.clone());
        let begun = Instant::now();
        let seen_now = seen(&server, &issuer, &token).await;
        assert!(seen_now.starts_with("503 "), "{mode:?}: {seen_now}");
        assert!(begun.elapsed() < Duration::from_secs(7), "{mode:?}");
        issuer.behave(Mode::Good);
        assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna", "after {mode:?}");
    }
}

#[tokio::test]
async fn what_went_wrong_is_said_with_its_place() {
    let issuer = Issuer::start("/realm", &[&ED]);
    let said = |mode: Mode, jwks: Option<String>| {
        let server =
            ResourceServer::with_times(OAuth { jwks, ..oauth(&issuer) }, impatient()).unwrap();
        issuer.behave(mode);
        let issuer = issuer.clone();
        async move {
            let _ = server.check(&ED.sign(&claims(&issuer))).await;
            let why = server.not_ready().unwrap();
            let host = issuer.url.trim_end_matches("/realm");
            why.replace(host, "[HOST]").replace("; ", ";\n")
        }
    };
    insta::assert_snapshot!(said(Mode::Status(404), None).await, @"
    the issuer's keys cannot be had: `[HOST]/.well-known/oauth-authorization-server/realm`: it answered with the status 404;
    `[HOST]/.well-known/openid-configuration/realm`: it answered with the status 404;
    `[HOST]/realm/.well-known/openid-configuration`: it answered with the status 404
    ");
    insta::assert_snapshot!(said(Mode::Pretending, None).await, @"
    the issuer's keys cannot be had: `[HOST]/.well-known/oauth-authorization-server/realm`: it describes the issuer `https://other.example`;
    `[HOST]/.well-known/openid-configuration/realm`: it answered with the status 404;
    `[HOST]/realm/.well-known/openid-configuration`: it answered with the status 404
    ");
    insta::assert_snapshot!(said(Mode::Redirecting, None).await, @"
    the issuer's keys cannot be had: `[HOST]/.well-known/oauth-authorization-server/realm`: it answered with the status 302;
    `[HOST]/.well-known/openid-configuration/realm`: it answered with the status 302;
    `[HOST]/realm/.well-known/openid-configuration`: it answered with the status 302
    ");
    let keys = Some(format!("{}/keys", issuer.url));
    insta::assert_snapshot!(said(Mode::Endless, keys.clone()).await, @"the issuer's keys cannot be had: `[HOST]/realm/keys`: the answer is larger than 524288 bytes");
    insta::assert_snapshot!(said(Mode::Text("[]"), keys).await, @"the issuer's keys cannot be had: `[HOST]/realm/keys`: they are no set of keys: invalid length 0, expected struct Written with 1 element at line 1 column 2");
    insta::assert_snapshot!(said(Mode::Good, Some("missing.json".to_owned())).await, @"the issuer's keys cannot be had: `missing.json`: No such file or directory (os error 2)");
}

#[tokio::test]
async fn keys_are_found_wherever_they_are() {
    let issuer = Issuer::start("/realms/one", &[&ED]);
    let token = ED.sign(&claims(&issuer));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, json!({"keys": [ED.public()]}).to_string()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    for (mode, jwks) in [
        (Mode::Good, None),
        (Mode::OpenId, None),
        (Mode::Pretending, Some(format!("{}/keys", issuer.url))),
        (Mode::Dead, Some(file)),
    ] {
        issuer.behave(mode.clone());
        let server = ResourceServer::new(OAuth { jwks, ..oauth(&issuer) }).unwrap();
        assert_eq!(seen(&server, &issuer, &token).await, "[ISSUER]#anna", "{mode:?}");
    }
}

#[tokio::test]
async fn keys_are_fetched_ahead_and_by_one_thread() {
    let issuer = Issuer::start("", &[&ED]);
    issuer.behave(Mode::Slow(Duration::from_millis(200)));
    let server = Arc::new(server(&issuer, Times::default()));
    server.warm();
    assert!(server.not_ready().is_some());
    let token = ED.sign(&claims(&issuer));
    let checks: Vec<_> = (0..50)
        .map(|_| {
            let (server, token) = (Arc::clone(&server), token.clone());
            tokio::spawn(async move { server.check(&token).await.is_ok() })
        })
        .collect();
    // Whoever goes away takes nothing with them.
    checks[0].abort();
    for check in checks.into_iter().skip(1) {
        assert!(check.await.unwrap());
    }
    assert_eq!(issuer.asked(), 1);
    assert_eq!(server.not_ready(), None);
}

#[tokio::test]
async fn an_address_with_https_is_asked_with_tls_only() {
    let issuer = Issuer::start("", &[&ED]);
    let url = issuer.url.replace("http://", "https://");
    let server = ResourceServer::new(OAuth { issuer: url, ..oauth(&issuer) }).unwrap();
    assert!(seen(&server, &issuer, &ED.sign(&claims(&issuer))).await.starts_with("503 "));
    assert_eq!(issuer.asked(), 0);
}
