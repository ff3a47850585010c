//! Who a program's calls go to.

use std::future::Future;
use std::pin::Pin;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::border::Thrown;

pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a program can import and call.
pub trait Host: Send + Sync {
    /// What an import leads to, or in words for the program's author why there is nothing.
    fn module<'a>(&'a self, specifier: &'a str) -> Boxed<'a, Result<Module, String>>;

    /// Calls a function of a module that the program has imported; what it returns, as JSON, or what it throws.
    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>>;

    /// Hears that so many calls have begun and so many are over.
    fn progress(&self, _begun: usize, _over: usize) {}

    /// Hears of a line of the console as soon as it is written. They all come back with the result as well.
    fn line(&self, _line: &str) {}
}

/// The functions of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// Whose tools they are.
    pub server: String,
    pub functions: Vec<Function>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// A name that JavaScript allows.
    pub name: String,
    /// What it calls.
    pub tool: String,
}

/// One call of a program.
pub struct Call {
    /// What the program has imported.
    pub module: String,
    pub server: String,
    pub tool: String,
    /// An object.
    pub arguments: Box<RawValue>,
    /// The program does not wait any more.
    pub cancelled: CancellationToken,
    /// To be held while a person is asked.
    pub clock: Clock,
    /// For what the author should know about the answer.
    pub notes: Notes,
}

/// Lines among those of the program's console.
#[derive(Clone)]
pub struct Notes(pub(crate) mpsc::Sender<String>);

impl Notes {
    /// Adds a line, once. It is dropped if too many wait to be added, or if the program has ended.
    pub fn add(&self, note: String) {
        let _ = self.0.try_send(note);
    }
}

/// The program's time.
#[derive(Clone)]
pub struct Clock(pub(crate) watch::Sender<usize>);

/// While there is one, the program's time stands still.
pub struct Hold(watch::Sender<usize>);

impl Clock {
    pub fn hold(&self) -> Hold {
        self.0.send_modify(|holds| *holds += 1);
        Hold(self.0.clone())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.send_modify(|holds| *holds -= 1);
    }
}
