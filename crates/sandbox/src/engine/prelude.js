// What is done to a context before a program sees it. The value is what we need of the language later, as it was before a
// program could change it. Nothing in here looks anything up by name once it is left.
(() => {
  const { defineProperty } = Object;
  const { call, toString } = Function.prototype;
  const method = (own) => call.bind(own);
  const [slice, wellFormed, startsWith, toText] = [
    String.prototype.slice,
    String.prototype.toWellFormed,
    String.prototype.startsWith,
    toString,
  ].map(method);

  // No code from texts: the compiler sees nothing but the files of the program.
  const refused = "texts are not run as code here; write it into the program";
  const refuse = (name, prototype) => {
    const stand_in = { [name]: function () { throw new EvalError(refused); } }[name];
    if (prototype) {
      defineProperty(stand_in, "prototype", { value: prototype, writable: false });
      defineProperty(prototype, "constructor", { value: stand_in, writable: false, configurable: false });
    }
    return stand_in;
  };
  const kinds = [function* () {}, async function () {}, async function* () {}];
  for (const kind of kinds) {
    const prototype = Object.getPrototypeOf(kind);
    refuse(prototype.constructor.name, prototype);
  }
  globalThis.Function = refuse("Function", Function.prototype);
  globalThis.eval = refuse("eval");

  // No code of the program in the middle of making an error.
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;
  // What the engine itself asks for when it waits for a promise.
  defineProperty(Promise.prototype, "constructor", { writable: false, configurable: false });
  defineProperty(Promise, Symbol.species, { configurable: false });
  // No memory shared with anybody, and nothing that waits on it.
  for (const name of ["Atomics", "SharedArrayBuffer", "navigator", "gc"]) delete globalThis[name];

  // The engine goes from one such iterator to the next without looking at its stack, unless there is a call in between.
  const helpers = Object.getPrototypeOf([].values().map(() => {}));
  const next = method(helpers.next);
  defineProperty(helpers, "next", { value: { next() { return next(this); } }.next });

  return {
    head: (text, length) => wellFormed(slice(text, 0, length)),
    length: (text) => text.length,
    isClass: (value) => startsWith(toText(value), "class"),
  };
})();
