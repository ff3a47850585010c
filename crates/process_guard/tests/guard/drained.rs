//! What children say on their standard error: any amount of it, of any kind.

use process_guard::Child;
use process_guard::stderr::{KEPT_LINES, LINE_BYTES, LastWords, drain};
use tokio::io::AsyncWriteExt as _;

use crate::processes::{Mark, bounded};

/// Everything that was handed on, and the last words.
async fn drained(script: &str) -> (Vec<String>, LastWords) {
    let mark = Mark::new();
    let Child { stderr, mut guarded, stdin: _stdin, stdout: _stdout } = mark.sh(script).await;
    let last_words = LastWords::default();
    let mut told = Vec::new();
    bounded(drain(stderr, last_words.clone(), |line| told.push(line.to_owned()))).await;
    assert_eq!(bounded(guarded.exited()).await.unwrap().code(), Some(0));
    (told, last_words)
}

#[tokio::test]
async fn lines_are_handed_on_as_text() {
    let script = r"printf 'one\n\ntwo\r\n\033[31mred\033[0m\a\tafter\rover\n\377\376\nunended' >&2";
    let (told, last_words) = drained(script).await;
    assert_eq!(told, ["one", "", "two", "red after over", "\u{fffd}\u{fffd}", "unended"]);
    assert_eq!(last_words.lines(), told);
    insta::assert_snapshot!(format!("it ended{last_words}"), @"
    it ended; its last words:
      one
      
      two
      red after over
      ��
      unended
    ");
    assert_eq!(LastWords::default().to_string(), "");
}

/// Left-out lines are counted: nothing is lost unsaid.
fn counted(told: &[String]) -> u64 {
    let count = |line: &String| match line.strip_suffix(" more lines were left out)") {
        Some(count) => count.trim_start_matches('(').parse().unwrap(),
        None => 1,
    };
    told.iter().map(count).sum()
}

#[tokio::test]
async fn a_flood_of_lines_neither_stalls_nor_fills_anything() {
    let line = "x".repeat(63);
    let script = format!("yes {line} | head -c 104857600 >&2; echo end >&2");
    let (told, last_words) = drained(&script).await;
    assert_eq!(counted(&told), 104_857_600 / 64 + 1);
    assert!(told.len() < 10_000, "{}", told.len());
    assert_eq!(last_words.lines().len(), KEPT_LINES);
    assert_eq!(last_words.lines().last().unwrap(), "end");
}

#[tokio::test]
async fn a_line_without_end_is_cut() {
    let (told, last_words) =
        drained("head -c 104857600 /dev/zero | tr '\\0' x >&2; echo >&2").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0], format!("{}…", "x".repeat(LINE_BYTES)));
    assert_eq!(last_words.lines(), told);
}

/// Time stands still, and goes on where everybody waits.
#[tokio::test(start_paused = true)]
async fn whoever_falls_silent_after_a_flood_is_told_about() {
    let (reader, mut writer) = tokio::io::duplex(1 << 20);
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let drained = tokio::spawn(drain(reader, LastWords::default(), move |line| {
        sender.send(line.to_owned()).unwrap();
    }));
    writer.write_all("line\n".repeat(60).as_bytes()).await.unwrap();
    for _ in 0..50 {
        assert_eq!(told.recv().await.unwrap(), "line");
    }
    assert_eq!(told.recv().await.unwrap(), "(10 more lines were left out)");
    writer.write_all(b"again\n").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "again");
    drop(writer);
    drained.await.unwrap();
    assert_eq!(told.recv().await, None);
}
