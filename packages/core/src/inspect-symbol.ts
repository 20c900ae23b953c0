/** By which Node asks for what console.log writes: what a user looks for, not the memory and caches behind it. */
export const inspectSymbol: unique symbol = Symbol.for("nodejs.util.inspect.custom");
