//! The file that tokens are kept in.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use orchestrator::Error;
use orchestrator::oauth::{Error as LoginError, Unkept};

use super::Guarded;

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_can_read_it() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&guarded.file()), 0o600);
    let folder = guarded.file().parent().unwrap().to_owned();
    assert_eq!(mode(&folder), 0o700);
    // So it is with everything beside it, and after it was replaced.
    guarded.expire();
    guarded.said().await;
    for entry in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_others_can_read_is_not_used() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    let before = guarded.issuer.shown().len();
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(guarded.file(), Permissions::from_mode(mode)).unwrap();
        let Err(Error::Connect { why, .. }) = guarded.call("read").await else {
            panic!("used with {mode:o}")
        };
        assert!(why.contains("can be read by others") && why.contains("chmod 600"), "{why}");
        let error = guarded.begin().await.err().unwrap();
        assert!(matches!(error, LoginError::Unkept(Unkept::ReadByOthers { .. })), "{error}");
    }
    assert_eq!(guarded.issuer.shown().len(), before, "nothing was sent");
    std::fs::set_permissions(guarded.file(), Permissions::from_mode(0o600)).unwrap();
    guarded.said().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_others_can_write_to_is_not_used() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    let folder = guarded.file().parent().unwrap().to_owned();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let error = guarded.login().await.unwrap_err();
    assert!(matches!(error, LoginError::Unkept(Unkept::WrittenByOthers { .. })), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_says_where_and_shows_nothing() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    let text = std::fs::read_to_string(guarded.file()).unwrap();
    for (broken, expected) in [
        (text.replace("\"accessToken\": \"", "\"accessToken\": 5, \"x\": \""), "in line"),
        (text[..text.len() / 2].to_owned(), "in line"),
        (text.replacen("\"version\": 1", "\"version\": 9", 1), "later version"),
        (" ".repeat(5 * 1024 * 1024), "more than"),
    ] {
        std::fs::write(guarded.file(), broken).unwrap();
        let Err(Error::Connect { why, .. }) = guarded.call("read").await else { panic!("used") };
        assert!(why.contains(expected) && !why.contains("token-"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_counts_at_once() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    assert_eq!(guarded.said().await, "you showed access-token-3");
    std::fs::remove_file(guarded.file()).unwrap();
    assert!(matches!(guarded.call("read").await, Err(Error::Unauthorized { .. })));
}
