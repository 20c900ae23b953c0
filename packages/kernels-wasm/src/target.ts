/** Finds out, by trying, what this engine's WebAssembly can do. */
import { OptError } from "@opt/core";
import { fma32, fma64 } from "@opt/core/backend";
import { f32x4, f64x2, ModuleBuilder, v128 } from "./assembler";
import type { Target } from "./kernel";

/** @throws OptError DEVICE_UNAVAILABLE if there is no WebAssembly with SIMD, or compiling it is forbidden */
export function probeTarget(shared: boolean): Target {
  const fail = (problem: string, cause?: unknown) => {
    return new OptError("DEVICE_UNAVAILABLE", "wasm", problem, "The device `js` serves instead.", { cause });
  };
  if (typeof WebAssembly !== "object") throw fail("this engine has no WebAssembly.");
  const binary = emitSimdProbe(false).build();
  if (!WebAssembly.validate(binary)) throw fail("this engine's WebAssembly has no SIMD.");
  try {
    new WebAssembly.Module(binary);
  } catch (cause) {
    const problem = "WebAssembly is blocked, as by a content security policy without 'wasm-unsafe-eval'.";
    throw fail(problem, cause);
  }
  const relaxed = emitSimdProbe(true).build();
  const relaxedSimd = WebAssembly.validate(relaxed);
  return { shared, relaxedSimd, fused: relaxedSimd ? probeFusion(relaxed) : { f32: false, f64: false } };
}

/** The smallest module that needs SIMD, for a worker to try. */
export function simdProbe(): Uint8Array<ArrayBuffer> {
  return emitSimdProbe(false).build();
}

/** Multiply-adds vectors from memory, so that no compiler can compute them beforehand: (0) * (16) + (32) to (48), in both widths. */
function emitSimdProbe(relaxed: boolean): ModuleBuilder {
  const module = new ModuleBuilder({ shared: false });
  for (const [name, shape] of [
    ["f32", f32x4],
    ["f64", f64x2],
  ] as const) {
    module.function({ parameters: [], export: name }, (f) => {
      const [a, b, c] = [v128.load(0), v128.load(16), v128.load(32)];
      f.do(v128.store(48, relaxed ? shape.relaxedMadd(a, b, c) : shape.add(shape.mul(a, b), c)));
    });
  }
  return module;
}

/** a * a - round(a * a) is not 0 exactly if the multiply-add is fused; a has a few more than half of the significand's bits. */
function probeFusion(binary: Uint8Array<ArrayBuffer>): Target["fused"] {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  const exports = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory } }).exports;
  const fuses = (run: unknown, numbers: Float32Array | Float64Array, a: number, fma: typeof fma64) => {
    const lanes = 16 / numbers.BYTES_PER_ELEMENT;
    numbers.fill(a, 0, 2 * lanes).fill(-(a * a), 2 * lanes, 3 * lanes);
    (run as () => void)();
    return numbers.subarray(3 * lanes).every((result) => result === fma(a, a, numbers[2 * lanes]!));
  };
  return {
    f32: fuses(exports.f32, new Float32Array(memory.buffer, 0, 16), 1 + 2 ** -12, fma32),
    f64: fuses(exports.f64, new Float64Array(memory.buffer, 0, 8), 1 + 2 ** -27, fma64),
  };
}
