//! One run of one program: a runtime of its own, which nothing else has seen or will see. Everything happens on the thread that
//! calls `run`, which waits here for the other side's answers.

mod calls;
mod console;
mod failure;
mod missing;
mod modules;
mod prelude;
mod rejections;
mod result;
mod scripts;
mod state;
mod timers;

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Module, Object, Persistent, Promise, Runtime, Value};
use serde_json::value::RawValue;
use typescript::VALUE_NAME;

use crate::border::{Ended, In};
use crate::limits::Limits;
use crate::outcome::Failure;
use crate::program::Program;
use failure::{Why, of_memory, of_stop};
use modules::{Files, Outside};
use prelude::Language;
use scripts::Scripts;
use state::State;
pub(crate) use state::{Gone, Wire};

/// What the language has, without clocks that are finer than needed.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// So much is still done once a program is stopped.
const LAST_JOBS: usize = 8;
/// Memory is full when no more than so much is left of it, or such a part.
const FULL: usize = 64 * 1024;
const FULL_PART: usize = 16;
/// Room for saying why a program failed that has used up its own.
const LAST_WORDS: usize = 1024 * 1024;

/// For programs that nobody gets anything of.
const NO_VALUE: &str = "the program has no value: no function `main`, no default export, and its last statement is no expression";
const NOT_LAST: &str = "the program calls `main` itself, and its last statement is no expression; return from `main` and leave the call to us";

/// An engine that has seen no program yet. It goes to one, and to no other.
pub(crate) struct Fresh {
    // In this order they go, if no program comes.
    language: Language,
    context: Context,
    runtime: Runtime,
}

impl Fresh {
    pub(crate) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        let context = Context::custom::<Intrinsics>(&runtime)?;
        let language = context.with(|ctx| Language::prepare(&ctx))?;
        Ok(Self { language, context, runtime })
    }
}

/// An engine that has one program.
pub(crate) struct Engine {
    // They go in this order: the program's values before its runtime, whatever happens.
    state: Cleared,
    context: Context,
    runtime: Runtime,
    input: Option<Box<RawValue>>,
}

struct Cleared(Rc<State>);

impl Deref for Cleared {
    type Target = Rc<State>;

    fn deref(&self) -> &Rc<State> {
        &self.0
    }
}

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// A value of the program, between two looks at it.
type Kept = Persistent<Value<'static>>;

impl Engine {
    pub(crate) fn new(
        fresh: rquickjs::Result<Fresh>,
        program: Program,
        limits: Limits,
        wire: Box<dyn Wire>,
        cancelled: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let scripts = Scripts::read(&program)?;
        let Fresh { language, context, runtime } = fresh.map_err(|_| of_memory(&limits))?;
        let state = State::new(limits, scripts, wire, cancelled, language);
        let state = Rc::new(state);
        runtime.set_max_stack_size(state.limits.stack);
        let busy = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            busy.flush();
            let is_stopped = busy.clock.stopped().is_some();
            busy.was_busy.set(is_stopped);
            is_stopped
        })));
        runtime.set_loader(Files(Rc::clone(&state)), Outside(Rc::clone(&state)));
        runtime.set_host_promise_rejection_tracker(Some(rejections::tracker(&state)));
        Ok(Self { state: Cleared(state), context, runtime, input: program.input })
    }

    /// Runs the program to its end. All that it has said is out then, unless the engine panics: calls that were not out are not
    /// made then.
    pub(crate) fn run(&self) -> Ended {
        let ended = self.ended();
        self.state.flush();
        ended
    }

    fn ended(&self) -> Ended {
        let told = |why: Why| self.context.with(|ctx| why.told(&ctx, &self.state));
        // The compiler of the engine does not always survive the end of memory. The size of what it gets is bounded.
        self.context.with(|ctx| prepare(&ctx, &self.state)).map_err(|why| {
            // What nobody has thrown while files were read is wrong with them.
            told(why).while_reading()
        })?;
        let memory = self.state.limits.memory;
        let most = self.used().saturating_add(memory);
        self.runtime.set_memory_limit(most);
        self.go().map_err(|why| {
            let left = most.saturating_sub(self.used());
            self.state.is_full.set(left < FULL.max(memory / FULL_PART));
            self.runtime.set_memory_limit(most.saturating_add(LAST_WORDS));
            told(why)
        })
    }

    /// Bytes that the engine uses.
    fn used(&self) -> usize {
        usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0)
    }

    fn go(&self) -> Result<Option<Box<RawValue>>, Why> {
        let input = self.input.as_deref();
        let loading = self.context.with(|ctx| load(&ctx, &self.state, input))?;
        let exports = self.settled(&loading)?;
        let value = self.context.with(|ctx| value(&ctx, &self.state, exports))?;
        let value = self.settled(&value)?;
        let result = self.context.with(|ctx| result::written(&ctx, &self.state, value))?;
        // It may have done too much while it was written down. What it does after that does not count.
        match of_stop(&self.state) {
            Some(failure) => Err(Why::Failure(failure)),
            None => {
                self.finish();
                Ok(result)
            }
        }
    }

    /// Runs whatever is to be run until the promise is settled; its value, or why there is none.
    fn settled(&self, promise: &Persistent<Promise<'static>>) -> Result<Kept, Why> {
        loop {
            let stopped = self.run_jobs();
            if stopped.is_err() {
                // What was stopped in the middle says where that was, in a job or two.
                let _ = (0..LAST_JOBS).all(|_| self.runtime.execute_pending_job().is_ok());
            }
            let settled = self.context.with(|ctx| result_of(&ctx, promise));
            match (settled, stopped) {
                (Some(Err(thrown)), _) => return Err(thrown),
                (_, Err(stopped)) => return Err(stopped),
                (Some(Ok(value)), Ok(())) => return Ok(value),
                (None, Ok(())) => {}
            }
            let state = &*self.state;
            let next = state.timers.borrow().next();
            if next.is_none() && state.pending.borrow().is_empty() {
                return Err(Why::Unsettled);
            }
            self.wait()?;
        }
    }

    /// Everything that can go on without waiting.
    fn run_jobs(&self) -> Result<(), Why> {
        loop {
            if let Some(failure) = of_stop(&self.state) {
                return Err(Why::Failure(failure));
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // What a program throws is caught before it comes here. It was stopped, or there was no room to go on.
                Err(_) => {
                    let thrown = self.context.with(|ctx| Persistent::save(&ctx, ctx.catch()));
                    return Err(Why::Broken(thrown));
                }
            }
        }
    }

    /// Until an answer is there, or a timer is due.
    fn wait(&self) -> Result<(), Why> {
        let state = &*self.state;
        let next = state.timers.borrow().next();
        let received = state.receive(next);
        self.context.with(|ctx| {
            let done = match received {
                Some(In::Answer { id, answer }) => calls::answer(&ctx, state, id, answer),
                // A module that nobody asked for.
                Some(_) => Ok(()),
                None => timers::fire(&ctx, state),
            };
            done.map_err(|error| Why::of(&ctx, &error))
        })
    }

    /// Calls that the program did not wait for are carried out as well, as far as its time allows.
    fn finish(&self) {
        let state = &*self.state;
        while !state.pending.borrow().is_empty() {
            if self.run_jobs().and_then(|()| self.wait()).is_err() {
                break;
            }
        }
        let _ = self.run_jobs();
        match state.pending.borrow().len() {
            0 => {}
            1 => state.line("error: 1 call was not awaited, and is given up".to_owned()),
            calls => state.line(format!("error: {calls} calls were not awaited, and are given up")),
        }
        self.context.with(|ctx| rejections::tell(&ctx, state));
    }
}

/// What a program finds when it begins.
fn prepare(ctx: &Ctx<'_>, state: &Rc<State>) -> Result<(), Why> {
    let failed = |error: rquickjs::Error| Why::of(ctx, &error);
    console::set(ctx, state).map_err(failed)?;
    timers::set(ctx, state).map_err(failed)?;
    modules::declare_all(ctx, state).map_err(failed)
}

/// Begins to run the file that is run.
fn load(
    ctx: &Ctx<'_>,
    state: &State,
    input: Option<&RawValue>,
) -> Result<Persistent<Promise<'static>>, Why> {
    let failed = |error: rquickjs::Error| Why::of(ctx, &error);
    let input = match input {
        Some(input) => ctx.json_parse(input.get()).map_err(failed)?,
        None => Value::new_undefined(ctx.clone()),
    };
    ctx.globals().set("input", input.clone()).map_err(failed)?;
    state.input.replace(Some(Persistent::save(ctx, input)));
    let loading = Module::import(ctx, state.scripts.entrypoint()).map_err(failed)?;
    Ok(Persistent::save(ctx, loading))
}

/// What the program says is its value: what `main` returns, or its default export, or its last expression. Whatever it is, it is
/// awaited: a promise, or something that behaves like one.
fn value(ctx: &Ctx<'_>, state: &State, exports: Kept) -> Result<Persistent<Promise<'static>>, Why> {
    let failed = |error: rquickjs::Error| Why::of(ctx, &error);
    let exports = exports.restore(ctx).map_err(failed)?;
    let value = match exports.as_object() {
        Some(exports) => value_of(ctx, state, exports).map_err(failed)?,
        // It exports a `then` of its own.
        None => exports,
    };
    // Without the `then` of promises, which may be another.
    if let Some(promise) = value.as_promise() {
        return Ok(Persistent::save(ctx, promise.clone()));
    }
    let (promise, resolve, _) = ctx.promise().map_err(failed)?;
    resolve.call::<_, ()>((value,)).map_err(failed)?;
    Ok(Persistent::save(ctx, promise))
}

fn value_of<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    exports: &Object<'js>,
) -> rquickjs::Result<Value<'js>> {
    let none = || Ok(Value::new_undefined(ctx.clone()));
    let Some(script) = state.scripts.get(state.scripts.entrypoint()) else { return none() };
    let input = state.input.borrow().clone();
    let called = |function: &Function<'js>| match input {
        Some(input) => function.call((input.restore(ctx)?,)),
        None => function.call(()),
    };
    if script.has_main && !script.calls_main {
        let main: Value<'js> = exports.get("main")?;
        return match main.as_function() {
            Some(main) => called(main),
            None => Ok(main),
        };
    }
    // A program that calls its `main` has said what it is for, and its last expression may be what came of it.
    if script.has_value && (script.calls_main || !script.has_default) {
        return exports.get(VALUE_NAME);
    }
    if script.has_default {
        let default: Value<'js> = exports.get("default")?;
        // A class is exported to be used, not to be called.
        return match default.as_function().filter(|_| !state.language.is_class(ctx, &default)) {
            Some(default) => called(default),
            None => Ok(default),
        };
    }
    state.note(match script.has_main {
        true => NOT_LAST,
        false => NO_VALUE,
    });
    none()
}

/// What came of a promise, if it is settled.
fn result_of(ctx: &Ctx<'_>, promise: &Persistent<Promise<'static>>) -> Option<Result<Kept, Why>> {
    let failed = |error: rquickjs::Error| Why::of(ctx, &error);
    let promise = match promise.clone().restore(ctx) {
        Ok(promise) => promise,
        Err(error) => return Some(Err(failed(error))),
    };
    let result = promise.result::<Value<'_>>()?;
    Some(result.map(|value| Persistent::save(ctx, value)).map_err(failed))
}

/// Reads a program as `run` does; the files that it imports and does not have.
pub(crate) fn read(program: &Program) -> Result<Vec<String>, Failure> {
    Scripts::read(program).map(|scripts| scripts.missing())
}
