/** Runs one kernel by itself for its tests: own memory, outputs poisoned and guarded, its calls cut into parts one after the other. */
import {
  byteSize,
  type DType,
  type Kind,
  type Launch,
  type LaunchArguments,
  type Memory,
  type Slice,
  type Spec,
  type TypedArray,
  viewElements,
} from "@opt/core/backend";
import { loadFma } from "../emit/fma";
import { type Execution, type KernelSource, numbersOf, type Target } from "../kernel";

const GUARD_BYTES = 64;
const GUARD = 0xa5;
const POISON = 0xff;
const PLAIN: Target = { shared: false, relaxedSimd: false, fused: { f32: false, f64: false } };
await loadFma(PLAIN);

/** Data to be copied in, or the length of an output. */
export interface Argument {
  readonly dtype: DType;
  readonly values: readonly number[] | TypedArray | number;
  /** The slice begins with this element: what lies before is reached by negative strides. */
  readonly start?: number;
}

export const input = (dtype: DType, values: readonly number[] | TypedArray): Argument => ({ dtype, values });
export const output = (dtype: DType, length: number): Argument => ({ dtype, values: length });

/** Numbers between -1 and 1, always the same (xorshift32), rounded to the dtype. */
export function seeded(length: number, seed: number, dtype: "f32" | "f64" = "f32"): TypedArray {
  let state = Math.imul(seed + 1, 0x9e3779b9) | 1;
  const values = dtype === "f32" ? new Float32Array(length) : new Float64Array(length);
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    values[i] = state / 2 ** 31;
  }
  return values;
}

type PlainArguments<K extends Kind> = {
  [P in keyof LaunchArguments[K]]: LaunchArguments[K][P] extends Slice
    ? Argument
    : LaunchArguments[K][P] extends readonly Slice[]
      ? readonly Argument[]
      : LaunchArguments[K][P];
};

const isArgument = (value: unknown): value is Argument =>
  typeof value === "object" && value !== null && "dtype" in value;

/** The contents of every argument after the launch, by name, those of lists by name and number. Throws if a byte beside them has changed. */
export function runKernel<K extends Kind>(
  source: KernelSource<K>,
  spec: Spec<K>,
  launch: PlainArguments<K>,
  options: { parts?: number; target?: Target; base?: number } = {},
): Record<string, TypedArray> {
  const pages = new WebAssembly.Memory({ initial: 1, maximum: 65_536 });
  const memory = pages as unknown as Memory;
  let top = options.base ?? 64;
  const reserve = (bytes: number) => {
    const at = top;
    top = Math.ceil((top + bytes) / 64) * 64;
    const missing = top - pages.buffer.byteLength;
    if (missing > 0) pages.grow(Math.ceil(missing / 65_536));
    return at;
  };
  const guards: [number, number][] = [];
  const place = ({ dtype, values, start = 0 }: Argument): Slice => {
    const length = typeof values === "number" ? values : values.length;
    const bytes = length * byteSize(dtype);
    const guardBefore = reserve(GUARD_BYTES);
    const byteOffset = reserve(bytes + GUARD_BYTES);
    new Uint8Array(pages.buffer, guardBefore, GUARD_BYTES).fill(GUARD);
    new Uint8Array(pages.buffer, byteOffset, bytes).fill(POISON);
    new Uint8Array(pages.buffer, byteOffset + bytes, GUARD_BYTES).fill(GUARD);
    guards.push([guardBefore, GUARD_BYTES], [byteOffset + bytes, GUARD_BYTES]);
    if (typeof values !== "number") viewElements(pages.buffer, byteOffset, length, dtype).set(values);
    return { memory, byteOffset: byteOffset + start * byteSize(dtype), length: length - start };
  };
  const named: [string, Argument, Slice][] = [];
  const placed = Object.fromEntries(
    Object.entries(launch).map(([name, value]) => {
      const put = (argument: Argument, called: string) => {
        const slice = place(argument);
        named.push([called, argument, slice]);
        return slice;
      };
      if (Array.isArray(value) && value.every(isArgument))
        return [name, value.map((each, k) => put(each, `${name}${k}`))];
      return [name, isArgument(value) ? put(value, name) : value];
    }),
  );

  const module = source.emit(spec, options.target ?? PLAIN);
  const imports = { env: { memory: pages, exp: Math.exp, log: Math.log } };
  const exports = new WebAssembly.Instance(new WebAssembly.Module(module.build()), imports).exports as Record<
    string,
    (...args: number[]) => void
  >;
  const execution: Execution = {
    address: (slice) => slice.byteOffset,
    scalar: Number,
    scratch: reserve,
    table(words) {
      const at = reserve(4 * words.length);
      new Int32Array(pages.buffer, at, words.length).set(words);
      return at;
    },
    run(entry, { range, grain = 1 }, ...args) {
      const part = grain * Math.max(1, Math.ceil(range / grain / (options.parts ?? 1)));
      const numbers = numbersOf(execution, args);
      for (let start = 0; start < range; start += part)
        exports[entry]!(start, Math.min(start + part, range), ...numbers);
    },
  };
  source.launch({ kind: spec.kind, kernel: { spec }, ...placed } as unknown as Launch<K>, execution);

  for (const [at, bytes] of guards) {
    if (new Uint8Array(pages.buffer, at, bytes).some((byte) => byte !== GUARD))
      throw new Error(`a guard at ${at} is broken`);
  }
  return Object.fromEntries(
    named.map(([name, { dtype }, { byteOffset, length }]) => [
      name,
      viewElements(pages.buffer, byteOffset, length, dtype),
    ]),
  );
}
