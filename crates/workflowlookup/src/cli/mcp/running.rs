//! Carries out what a command does with upstreams, on one thread, and ends everything that was started for it: when the
//! command is done, and when somebody presses Ctrl-C.

use std::convert::Infallible;
use std::future::Future;

use anyhow::Context as _;
use orchestrator::wire::WireLog;
use orchestrator::{Options, Orchestrator};
use signal_hook::low_level::emulate_default_handler;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::servers::Servers;
use crate::cli::Failure;
use service::logins::tokens;

/// Lets a command act. A signal ends what it does, and then us, once all children have ended; a second one does not wait
/// for them.
pub(super) fn with<T>(
    servers: &Servers,
    wire: Option<WireLog>,
    act: impl AsyncFnOnce(&Orchestrator) -> Result<T, Failure>,
) -> Result<T, Failure> {
    on_this_thread(async {
        // Whoever asks by hand wants all of a result.
        let options =
            Options { wire, tokens: tokens(), result_limit: usize::MAX, ..Options::default() };
        let orchestrator = Orchestrator::new(servers.watched(), options);
        let mut signals = Signals::new()?;
        let acted = tokio::select! {
            biased;
            acted = act(&orchestrator) => Ok(acted),
            signal = signals.next() => Err(signal),
        };
        let again = tokio::select! {
            biased;
            () = orchestrator.close() => None,
            signal = signals.next() => Some(signal),
        };
        match (acted, again) {
            (Ok(acted), None) => acted,
            (Ok(_), Some(signal)) | (Err(signal), _) => match die_of(signal)? {},
        }
    })
}

/// Runs what a command does that speaks with others.
pub(super) fn on_this_thread<T>(
    act: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start what waits for servers")?;
    let done = runtime.block_on(act);
    // What still reads from a terminal is not waited for.
    runtime.shutdown_background();
    done
}

/// What tells us to end.
pub(super) struct Signals([(SignalKind, Signal); 3]);

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map(|signal| (kind, signal));
        let listening = (|| {
            Ok::<_, std::io::Error>([
                listen(SignalKind::interrupt())?,
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
            ])
        })();
        Ok(Self(listening.context("cannot listen to signals")?))
    }

    pub(super) async fn next(&mut self) -> SignalKind {
        let [(first, interrupt), (second, terminate), (third, hangup)] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => *first,
            _ = terminate.recv() => *second,
            _ = hangup.recv() => *third,
        }
    }
}

/// Ends us by the signal itself, as it would have done had nobody listened: a shell that runs us in a script ends the script
/// by that, and sees 130 for Ctrl-C.
pub(super) fn die_of(signal: SignalKind) -> Result<Infallible, Failure> {
    emulate_default_handler(signal.as_raw_value()).context("cannot end by a signal")?;
    std::process::exit(128 + signal.as_raw_value())
}
