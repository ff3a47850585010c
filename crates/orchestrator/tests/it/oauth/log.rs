//! What is logged about logins.

use std::process::{Command, Stdio};

use super::{Guarded, browse};
use crate::world::FOR_EVER;

/// Says that nobody else is in the process.
const ALONE: &str = "TEST_LOG_ALONE";

/// In a process of its own: who logs and who listens is decided once for all threads.
#[test]
fn no_log_has_a_secret_in_it() {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", "oauth::log::the_log_of_a_login", "--nocapture"]).env(ALONE, "1");
    let done = alone.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

/// What that process does. On one thread, so that nothing is logged that is not heard.
#[tokio::test]
async fn the_log_of_a_login() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    #[derive(Clone, Default)]
    struct Heard(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let heard = Heard::default();
    let writer = heard.clone();
    // As the product does, only what we say ourselves, and all of that.
    let ours = tracing_subscriber::filter::filter_fn(|event| {
        event.target().starts_with("orchestrator") || event.target().starts_with("oauth2")
    });
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let subscriber = tracing_subscriber::layer::SubscriberExt::with(subscriber, ours);
    let _listening = tracing::subscriber::set_default(subscriber);

    let guarded = Guarded::new().await;
    let begun = guarded.begin().await.unwrap();
    let url = begun.url().to_owned();
    let browser = tokio::spawn(browse(url.clone()));
    begun.finish(FOR_EVER).await.unwrap();
    browser.await.unwrap();
    guarded.said().await;
    guarded.expire();
    guarded.said().await;
    guarded.issuer.revoke_all();
    guarded.call("read").await.unwrap_err();
    guarded.logins.logout("test", None).await.unwrap();
    let log = String::from_utf8(heard.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("its token was renewed") && log.contains("you showed ***"), "{log}");
    let state = url.split("state=").nth(1).unwrap().split('&').next().unwrap();
    for secret in
        ["access-token", "refresh-token", "registered-secret", "secret-code", "an-id-token", state]
    {
        assert!(!log.contains(secret), "{secret} in\n{log}");
    }
}
