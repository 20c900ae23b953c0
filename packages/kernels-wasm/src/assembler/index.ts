/**
 * A small writer of WebAssembly binaries. Values are typed code that nests like an expression; statements are methods of a function:
 *
 *     f.for(i, start, end, 16, () => f.do(v128.store(i, f32x4.add(v128.load(i), one))))
 */
export { FunctionBuilder } from "./function";
export { type Callable, MAXIMUM_PAGES, ModuleBuilder } from "./module";
export { f32, f64, i32, memory, select } from "./scalar";
export { f32x4, f64x2, i8x16, i16x8, i32x4, i64x2, shuffle32, truncF32x4, v128 } from "./simd";
export type { Effect, Local, Operand, Value } from "./value";
