import { describe, expect, it } from "vitest";
import { f32, f32x4, f64, i32, ModuleBuilder, v128 } from ".";

function instantiate<T>(module: ModuleBuilder, memory: WebAssembly.Memory, imports: WebAssembly.ModuleImports = {}) {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(module.build()), { env: { memory, ...imports } });
  return instance.exports as T;
}

describe("ModuleBuilder", () => {
  it("writes a SIMD loop over imported memory", () => {
    const module = new ModuleBuilder({ shared: false });
    module.function({ parameters: ["i32", "i32", "f32"], export: "scale" }, (f, start, end, factor) => {
      const pointer = f.local("i32");
      const factors = f.local("v128", f32x4.splat(factor));
      f.for(pointer, start, end, 16, () => f.do(v128.store(pointer, f32x4.mul(v128.load(pointer), factors))));
    });
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
    const data = new Float32Array(memory.buffer, 32, 8).fill(3);
    instantiate<{ scale(a: number, b: number, c: number): void }>(module, memory).scale(32, 64, 0.5);
    expect([...data]).toEqual(new Array(8).fill(1.5));
  });

  it("calls imports and own functions, with control flow and results", () => {
    const module = new ModuleBuilder({ shared: true });
    const square = module.function({ parameters: ["f64"], result: "f64" }, (_f, x) => f64.mul(x, x));
    const host = module.import("twice", { parameters: ["f64"], result: "f64" });
    module.function({ parameters: ["i32"], result: "f64", export: "run" }, (f, n) => {
      const sum = f.local("f64");
      const i = f.local("i32");
      f.for(i, 0, n, 1, () => {
        const x = f64.convertI32S(i);
        f.if(
          i32.and(i, 1),
          () => f.set(sum, f64.add(sum, square(x))),
          () => f.set(sum, f64.sub(sum, host(x))),
        );
      });
      return sum;
    });
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const { run } = instantiate<{ run(n: number): number }>(module, memory, { twice: (x: number) => 2 * x });
    expect(run(4)).toBe(1 + 9 - 2 * 2);
    expect(run(0)).toBe(0);
  });

  it.each([0, -0, 1, -1, 63, 64, -64, -65, 128, 2 ** 31 - 1, -(2 ** 31), 1e-45, Number.NaN, Infinity])(
    "encodes the constant %s",
    (value) => {
      const module = new ModuleBuilder({ shared: false });
      module.function({ parameters: [], result: "i32", export: "i" }, () => i32.const(value));
      module.function({ parameters: [], result: "f32", export: "f" }, () => f32.const(value));
      const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
      const { i, f } = instantiate<{ i(): number; f(): number }>(module, memory);
      expect(i()).toBe(value | 0);
      expect(f()).toBe(Math.fround(value));
    },
  );
});
