//! Tells an issuer that a token is not needed any more, where it wants to hear of that. Whoever logs out does not wait long.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::http::{Http, Request};
use super::record::{Login, Shows};

/// Whether the issuer has heard it.
pub(super) async fn revoke(http: &Http, login: &Login, secret: Option<&str>) -> bool {
    let Some(request) = request(login, secret) else { return false };
    let answer = http.send(request).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

fn request(login: &Login, secret: Option<&str>) -> Option<Request> {
    let endpoint = login.revocation_endpoint.as_ref()?;
    // With the one to renew with, issuers end the others too.
    let (token, kind) = match &login.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&login.access_token, "access_token"),
    };
    let mut fields = vec![("token", token.as_str()), ("token_type_hint", kind)];
    let mut request = http::Request::post(endpoint.as_str())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    match (secret, login.client_shows) {
        (Some(secret), Shows::InHeader) => {
            let pair = format!("{}:{}", escaped(&login.client_id), escaped(secret));
            request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)));
        }
        (Some(secret), Shows::InBody) => {
            fields.extend([("client_id", login.client_id.as_str()), ("client_secret", secret)]);
        }
        (None, _) => fields.push(("client_id", &login.client_id)),
    }
    let fields = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
    request.body(fields.collect::<Vec<_>>().join("&").into_bytes()).ok()
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
