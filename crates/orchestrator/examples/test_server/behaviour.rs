//! What a server can do wrong, beside what its tools do (`tools.rs`). Each is one word after `--hostile`.

use std::io::Write as _;
use std::time::Duration;

use super::server::Options;

macro_rules! behaviours {
    ($($(#[$comment:meta])* $name:ident = $word:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Hostile { $($(#[$comment])* $name,)* }

        impl Hostile {
            pub(crate) const ALL: &[(&str, Self)] = &[$(($word, Self::$name),)*];
        }
    };
}

behaviours! {
    /// Says nothing to a question that it does not know.
    IgnoresDiscover = "ignores-discover",
    /// Dies of a question that it does not know.
    DiesOfDiscover = "dies-of-discover",
    /// Answers a question that it does not know with nothing.
    AnswersAnything = "answers-anything",
    NeverInitializes = "never-initializes",
    /// Ends before it says anything.
    DiesAtOnce = "dies-at-once",
    /// An unknown revision of the protocol.
    FromTheFuture = "from-the-future",
    /// Leaves out of the handshake what it can.
    Sloppy = "sloppy",
    /// Writes to standard output what is no message, before every answer.
    Garbage = "garbage",
    /// Answers every request twice.
    Twice = "twice",
    /// Answers something that was not asked, before every answer.
    WrongIds = "wrong-ids",
    /// Writes our ids as texts.
    TextIds = "text-ids",
    /// Goes on when its input is closed and when it is told to end.
    Stubborn = "stubborn",
    /// A list of tools whose pages never end.
    EndlessPages = "endless-pages",
    /// A list of tools whose pages begin anew.
    CircularPages = "circular-pages",
    /// Writes to standard error without an end.
    FloodsStderr = "floods-stderr",
    /// Sends requests of its own without an end.
    FloodsRequests = "floods-requests",
    /// The same, and reads nothing from then on.
    DeafFlood = "deaf-flood",
    /// Sends news without an end.
    FloodsNotifications = "floods-notifications",
    /// Says very much about itself.
    Boasts = "boasts",
    /// Has a tool that is larger than all others together, and one with very many fields.
    LargeTools = "large-tools",
    /// Lists tools that cannot be what it says.
    Lies = "lies",
    /// Agrees to no subscription.
    AgreesToNothing = "agrees-to-nothing",
    /// Knows of no subscriptions at all.
    KnowsNoListening = "knows-no-listening",
}

impl Hostile {
    pub(crate) fn read(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, hostile)| *hostile)
    }
}

/// Before anything is read.
pub(crate) fn begin(options: &Options) {
    std::thread::sleep(options.start_delay);
    for hostile in &options.hostile {
        match hostile {
            Hostile::DiesAtOnce => {
                complain("no configuration, no service");
                std::process::exit(3);
            }
            Hostile::Stubborn => ignore_signals(),
            Hostile::FloodsStderr => {
                std::thread::spawn(|| {
                    loop {
                        complain(&"complaint ".repeat(100));
                    }
                });
            }
            _ => {}
        }
    }
}

pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// After the input was closed.
pub(crate) fn end(options: &Options) {
    if options.hostile.contains(&Hostile::Stubborn) {
        std::thread::sleep(Duration::from_secs(600));
    }
}

fn ignore_signals() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    let flag = Arc::new(AtomicBool::new(false));
    for signal in
        [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT]
    {
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
}
