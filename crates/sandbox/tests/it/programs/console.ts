console.log("text", 1, -0, 1.5, NaN, 10n, true, null, undefined);
console.info({ a: [1, { b: 2 }] }, [], new Date(0), new Map([[1, 2]]), () => 1, Symbol("x"));
console.warn("careful");
console.error(new TypeError("wrong"), new Error(""));
console.debug("x".repeat(3_000));
const own: any = {};
own.own = own;
console.table(own, { toJSON() { throw 1; } });
console.trace();
