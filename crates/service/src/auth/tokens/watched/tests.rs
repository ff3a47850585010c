use std::fs;

use super::*;
use crate::access::Right;

struct Fixture {
    folder: tempfile::TempDir,
    file: TokenList,
    tokens: Tokens,
}

/// A server that looks at its file with every request.
fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let tokens = Tokens::looking_every(TokenPlace::File(path.clone()), Duration::ZERO);
    Fixture { folder, file: TokenList::new(TokenPlace::File(path)), tokens }
}

impl Fixture {
    fn seen(&self, token: &str) -> String {
        match self.tokens.check(token) {
            Ok(principal) => principal.name.to_string(),
            Err(denied) => format!("{} {}", denied.status(), denied.reason()),
        }
    }
}

#[test]
fn tokens_are_let_in_until_they_are_revoked_or_expire() {
    let it = fixture();
    let unknown = "401 the token is not known";
    assert_eq!(it.seen("wfl_nobody"), unknown);
    let (ci, record) = it.file.make("ci", Right::Use, now(), None).unwrap();
    let (old, _) = it.file.make("old", Right::Use, 1, Some(2)).unwrap();
    let (soon, _) = it.file.make("soon", Right::Use, now(), Some(now() + 3_600_000)).unwrap();
    assert_eq!(it.seen(&ci), "ci");
    assert!(it.tokens.has("ci", "use"));
    assert!(!it.tokens.has("ci", "admin") && !it.tokens.has("nobody", "use"));
    assert_eq!(it.seen(&soon), "soon");
    assert_eq!(it.seen(&old), "401 the token has expired");
    // The right id with a wrong secret, and the other way round.
    let other = if ci.ends_with('0') { "1" } else { "0" };
    assert_eq!(it.seen(&format!("{}{other}", &ci[..ci.len() - 1])), unknown);
    assert_eq!(it.seen(&ci.replace(&record.id, "0000000000")), unknown);
    assert_eq!(it.seen(&soon.replace(soon.split('_').nth(1).unwrap(), &record.id)), unknown);
    assert_eq!(it.seen(&ci.to_uppercase()), unknown);
    it.file.revoke("ci").unwrap();
    assert_eq!(it.seen(&ci), unknown);
    assert_eq!(it.seen(&soon), "soon");
    let (again, _) = it.file.make("ci", Right::Use, now(), None).unwrap();
    assert_eq!(it.seen(&again), "ci");
    assert_eq!(it.seen(&ci), unknown);
    fs::remove_file(it.folder.path().join("tokens.json")).unwrap();
    assert_eq!(it.seen(&again), unknown);
}

#[test]
fn a_file_that_cannot_be_used_lets_nobody_in_until_it_is_good_again() {
    let it = fixture();
    let path = it.folder.path().join("tokens.json");
    let (token, _) = it.file.make("ci", Right::Use, now(), None).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let twice = good.replacen("[\n", &format!("[{},", record_in(&good)), 1);
    for bad in [
        "",
        "{}",
        &good[..good.len() / 2],
        &good.replace("\"version\": 1", "\"version\": 2"),
        &good.replace("\"made\"", "\"scopes\": [], \"made\""),
        &good.replace("\"ci\"", "\"c#i\""),
        &twice,
        &" ".repeat(2 * 1024 * 1024),
    ] {
        fs::write(&path, bad).unwrap();
        let short = &bad[..bad.len().min(200)];
        assert!(it.seen(&token).starts_with("503 "), "{short}: {}", it.seen(&token));
        assert!(it.tokens.not_ready().is_some());
        fs::write(&path, &good).unwrap();
        assert_eq!(it.seen(&token), "ci");
        assert_eq!(it.tokens.not_ready(), None);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(it.seen(&token).starts_with("503 "));
}

/// The one token of a file, as it is written.
fn record_in(text: &str) -> String {
    let content: serde_json::Value = serde_json::from_str(text).unwrap();
    content["tokens"][0].to_string()
}

#[cfg(unix)]
#[test]
fn a_file_that_everybody_may_write_lets_nobody_in() {
    use std::os::unix::fs::PermissionsExt as _;
    let it = fixture();
    let path = it.folder.path().join("tokens.json");
    let (token, _) = it.file.make("ci", Right::Use, now(), None).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(it.seen(&token).starts_with("503 "));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(it.seen(&token), "ci");
    it.file.make("more", Right::Use, now(), None).unwrap();
    let kept = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(kept, 0o640, "whoever could read it still can");
}

#[test]
fn a_settled_file_is_not_read_again() {
    let it = fixture();
    let path = it.folder.path().join("tokens.json");
    let (token, _) = it.file.make("ci", Right::Use, now(), None).unwrap();
    let stamp_is_kept = || it.tokens.state.lock().stamp.is_some();
    assert_eq!(it.seen(&token), "ci");
    assert!(!stamp_is_kept(), "it was written a moment ago");
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(it.seen(&token), "ci");
    assert!(stamp_is_kept());
    it.file.revoke("ci").unwrap();
    assert_eq!(it.seen(&token), "401 the token is not known");
}

#[test]
fn the_file_is_looked_at_once_in_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let elsewhere = folder.path().join("elsewhere.json");
    let (token, _) = TokenList::new(TokenPlace::File(elsewhere.clone()))
        .make("ci", Right::Use, now(), None)
        .unwrap();
    let tokens = Tokens::looking_every(TokenPlace::File(path.clone()), LOOK_INTERVAL);
    assert!(tokens.check(&token).is_err());
    fs::rename(elsewhere, path).unwrap();
    assert!(tokens.check(&token).is_err(), "it was looked at just now");
    std::thread::sleep(LOOK_INTERVAL);
    assert!(tokens.check(&token).is_ok());
}
