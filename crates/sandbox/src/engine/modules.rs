//! What a program can import: its own files, and what the other side offers.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Module, Result};

use super::calls::maker;
use super::failure::throw_at;
use super::scripts::is_relative;
use super::state::State;
use crate::border::{IMPORTS_MAX, SPECIFIER_BYTES_MAX};
use crate::outcome::Kind;
use crate::size;

pub(super) struct Files(pub(super) Rc<State>);
pub(super) struct Outside(pub(super) Rc<State>);

/// Reads all files, and whatever they import. An import that leads nowhere ends the program before it begins: the engine does
/// not always forget a file that it could not read to its end, and must not meet it again.
pub(super) fn declare_all(ctx: &Ctx<'_>, state: &State) -> Result<()> {
    for (name, script) in state.scripts.all() {
        // Some have been read because another file imports them.
        if state.declared.borrow_mut().insert(name.to_owned()) {
            Module::declare(ctx.clone(), name, script.code.as_str())?;
        }
    }
    Ok(())
}

impl Resolver for Files {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let state = &self.0;
        let scripts = &state.scripts;
        let refused =
            |why: &str| Err(throw_at(ctx, state, Kind::Import, why, scripts.import(name)));
        if base.is_empty() {
            // Our own import of the file that is run.
            return Ok(name.to_owned());
        }
        if attributes.is_some() {
            return refused(&format!(
                "`{}` cannot be imported `with` something: everything here is a module",
                size::message(name)
            ));
        }
        if name.len() > SPECIFIER_BYTES_MAX {
            return refused("the name of an import is too long");
        }
        if !is_relative(name) {
            // A file by its bare name would be one that nobody can tell from a module of that name.
            if scripts.get(name).is_some() {
                return refused(&format!(
                    "`{name}` is a file of the program; import it as `./{name}`"
                ));
            }
            return Ok(name.to_owned());
        }
        match scripts.resolve(base, name) {
            Some(file) => Ok(file),
            None => refused(&format!(
                "`{name}` is no file of the program; its files are `{}`",
                scripts.names().join("`, `")
            )),
        }
    }
}

impl Loader for Outside {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let state = &self.0;
        let refused =
            |why: &str| Err(throw_at(ctx, state, Kind::Import, why, state.scripts.import(name)));
        if let Some(script) = state.scripts.get(name) {
            state.declared.borrow_mut().insert(name.to_owned());
            return Module::declare(ctx.clone(), name, script.code.as_str());
        }
        if !state.may_import() {
            return refused(&format!("a program asks for at most {IMPORTS_MAX} modules"));
        }
        match state.import(name) {
            Some(Ok(functions)) => {
                let module = Module::declare(ctx.clone(), name, source(&functions))?;
                module.meta()?.set(MAKE, maker(ctx, state, name)?)?;
                Ok(module)
            }
            Some(Err(why)) => refused(&why),
            // The time is up.
            None => refused("nobody answers"),
        }
    }
}

/// Under this name only the module itself finds who makes its functions.
const MAKE: &str = "make";

/// A module with these functions. Their names are ones that JavaScript allows.
fn source(functions: &[String]) -> String {
    let names: HashSet<&str> = functions.iter().map(String::as_str).collect();
    let mut make = "$make".to_owned();
    while names.contains(make.as_str()) {
        make.insert(0, '$');
    }
    let mut source = format!("const {make} = import.meta.{MAKE};\n");
    for name in functions {
        let _ = writeln!(source, "export const {name} = {make}(\"{name}\");");
    }
    let _ = writeln!(source, "export default {{ {} }};", functions.join(", "));
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_takes_the_name_of_its_maker() {
        let source = source(&["$make".to_owned(), "echo".to_owned()]);
        insta::assert_snapshot!(source, @r#"
        const $$make = import.meta.make;
        export const $make = $$make("$make");
        export const echo = $$make("echo");
        export default { $make, echo };
        "#);
    }
}
