use super::*;
use crate::access::Right;
use crate::sessions::now;

const RESOURCE: &str = "https://mcp.example/mcp";

fn oauth() -> OAuth {
    OAuth {
        issuer: "https://login.example".to_owned(),
        audience: RESOURCE.to_owned(),
        jwks: None,
        algorithms: ALGORITHMS_BY_DEFAULT.to_vec(),
        scopes: vec!["workflows".to_owned()],
    }
}

/// What a request with this header gets.
async fn seen(authenticator: &Authenticator, header: Option<&str>) -> String {
    let headers = header.iter().map(|header| header.as_bytes());
    match authenticator.check(headers).await {
        Ok(principal) => principal.name.to_string(),
        Err(denied) => {
            let challenge = denied.challenge(&metadata_url(RESOURCE)).unwrap_or_default();
            format!("{} {}\n{challenge}", denied.status(), denied.reason())
        }
    }
}

#[tokio::test]
async fn tokens_of_our_own_need_no_issuer_and_tell_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let (token, _) =
        TokenList::new(TokenPlace::File(path.clone())).make("ci", Right::Use, now(), None).unwrap();
    let authenticator = Authenticator::new(Some(TokenPlace::File(path)), None).unwrap();
    authenticator.warm();
    assert_eq!(authenticator.not_ready(), None);
    assert_eq!(authenticator.metadata(RESOURCE), None);
    insta::assert_snapshot!(seen(&authenticator, Some(&format!("Bearer {token}"))).await, @"ci");
    insta::assert_snapshot!(seen(&authenticator, None).await, @r#"
    401 there is no `Authorization` header
    Bearer realm="workflowlookup"
    "#);
    insta::assert_snapshot!(seen(&authenticator, Some("Bearer wfl_x")).await, @r#"
    401 the token is not known
    Bearer realm="workflowlookup", error="invalid_token", error_description="the token is not known"
    "#);
    insta::assert_snapshot!(seen(&authenticator, Some("Bearer a.b.c")).await, @r#"
    401 the token is not known
    Bearer realm="workflowlookup", error="invalid_token", error_description="the token is not known"
    "#);
}

#[tokio::test]
async fn an_issuer_is_told_of_where_there_is_one() {
    let authenticator = Authenticator::new(None, Some(oauth())).unwrap();
    insta::assert_snapshot!(seen(&authenticator, None).await, @r#"
    401 there is no `Authorization` header
    Bearer realm="workflowlookup", scope="workflows", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
    "#);
    insta::assert_snapshot!(seen(&authenticator, Some("Bearer wfl_x")).await, @r#"
    401 the token is neither one of ours nor a JWT with a signature that can be checked
    Bearer realm="workflowlookup", error="invalid_token", error_description="the token is neither one of ours nor a JWT with a signature that can be checked", scope="workflows", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
    "#);
    assert!(metadata_url(RESOURCE).ends_with(&metadata_path("/mcp")));
    let document = authenticator.metadata(RESOURCE).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap(), @r#"
    {
      "authorization_servers": [
        "https://login.example"
      ],
      "bearer_methods_supported": [
        "header"
      ],
      "resource": "https://mcp.example/mcp",
      "resource_name": "workflowlookup",
      "scopes_supported": [
        "workflows",
        "workflowlookup:use",
        "workflowlookup:approve",
        "workflowlookup:admin"
      ]
    }
    "#);
}

#[tokio::test]
async fn without_anything_to_hold_it_against_nobody_is_let_in() {
    let authenticator = Authenticator::new(None, None).unwrap();
    for header in [None, Some("Bearer wfl_x"), Some("Bearer a.b.c")] {
        assert!(seen(&authenticator, header).await.starts_with("401"));
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut OAuth)| {
        let mut oauth = oauth();
        change(&mut oauth);
        let refusal = Authenticator::new(None, Some(oauth)).unwrap_err();
        format!("{refusal}\n  try: {}", refusal.hint().unwrap())
    };
    insta::assert_snapshot!(refused(|oauth| oauth.issuer = "http://login.example".to_owned()), @"
    `http://login.example` cannot be an issuer: plain http is only for this machine
      try: write it exactly as the issuer's tokens do, such as `https://login.example`
    ");
    insta::assert_snapshot!(refused(|oauth| oauth.jwks = Some("ftp://a.example".to_owned())), @"
    `ftp://a.example` cannot be where keys are: it does not begin with `https://`
      try: name an address with https, or a file
    ");
    insta::assert_snapshot!(refused(|oauth| oauth.audience.clear()), @"
    the audience is empty
      try: name what the issuer makes tokens out to, mostly the address of this server
    ");
    insta::assert_snapshot!(refused(|oauth| oauth.algorithms.clear()), @"
    the algorithms that were allowed cannot be used
      try: allow ES256, RS256 or EdDSA
    ");
    insta::assert_snapshot!(refused(|oauth| oauth.algorithms = vec!["HS256".parse().unwrap()]), @"
    the algorithms that were allowed cannot be used
      try: allow ES256, RS256 or EdDSA
    ");
    insta::assert_snapshot!(refused(|oauth| oauth.scopes = vec!["a b".to_owned()]), @"
    `a b` cannot be a scope
      try: a scope is one word of visible ASCII, without quotation marks
    ");
    assert_eq!(algorithm("PS512").map(|one| format!("{one:?}")), Ok("PS512".to_owned()));
    for name in ["none", "None", "HS256", "HS512", "es256", ""] {
        assert!(algorithm(name).is_err(), "{name}");
    }
}
