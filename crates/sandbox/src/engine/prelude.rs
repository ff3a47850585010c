//! What is taken out of the language before a program sees it, and what we keep of it for ourselves: the program can change
//! everything that it finds by name.

use std::cell::RefCell;

use rquickjs::context::EvalOptions;
use rquickjs::function::{Constructor, IntoArgs};
use rquickjs::{Ctx, FromJs, Function, Object, Persistent, Result, String as Text, Value};

const SOURCE: &str = include_str!("prelude.js");

/// Parts of the language as they were at first.
#[derive(Default)]
pub(super) struct Language {
    error: RefCell<Option<Persistent<Constructor<'static>>>>,
    head: RefCell<Option<Persistent<Function<'static>>>>,
    length: RefCell<Option<Persistent<Function<'static>>>>,
    is_class: RefCell<Option<Persistent<Function<'static>>>>,
}

impl Language {
    /// Prepares the language for a program.
    pub(super) fn prepare(ctx: &Ctx<'_>) -> Result<Self> {
        let language = Self::default();
        let error: Constructor<'_> = ctx.globals().get("Error")?;
        language.error.replace(Some(Persistent::save(ctx, error)));
        let mut options = EvalOptions::default();
        options.filename = Some("<prelude>".to_owned());
        let kept: Object<'_> = ctx.eval_with_options(SOURCE, options)?;
        for (name, kept_as) in [
            ("head", &language.head),
            ("length", &language.length),
            ("isClass", &language.is_class),
        ] {
            let function: Function<'_> = kept.get(name)?;
            kept_as.replace(Some(Persistent::save(ctx, function)));
        }
        Ok(language)
    }

    /// An error that knows where the program is now.
    pub(super) fn new_error<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let constructor = self.error.borrow().clone();
        match constructor {
            Some(constructor) => constructor.restore(ctx)?.construct(()),
            None => Object::new(ctx.clone()),
        }
    }

    /// The beginning of a text. Without a copy of the whole, for a program's texts can be as large as its memory.
    pub(super) fn head<'js>(
        &self,
        ctx: &Ctx<'js>,
        text: &Text<'js>,
        length: usize,
    ) -> Result<String> {
        let head: Text<'js> = called(ctx, &self.head, (text.clone(), length))?;
        head.to_string()
    }

    /// How many units of UTF-16 a text has.
    pub(super) fn length<'js>(&self, ctx: &Ctx<'js>, text: &Text<'js>) -> Result<usize> {
        called(ctx, &self.length, (text.clone(),))
    }

    pub(super) fn is_class<'js>(&self, ctx: &Ctx<'js>, value: &Value<'js>) -> bool {
        // What is no function of the program's own has no such text.
        called(ctx, &self.is_class, (value.clone(),)).unwrap_or_else(|_| {
            ctx.catch();
            false
        })
    }

    pub(super) fn clear(&self) {
        self.error.take();
        self.head.take();
        self.length.take();
        self.is_class.take();
    }
}

fn called<'js, A: IntoArgs<'js>, R: FromJs<'js>>(
    ctx: &Ctx<'js>,
    function: &RefCell<Option<Persistent<Function<'static>>>>,
    given: A,
) -> Result<R> {
    let function = function.borrow().clone().ok_or(rquickjs::Error::Unknown)?;
    function.restore(ctx)?.call(given)
}
