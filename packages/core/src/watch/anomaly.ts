/** The first number that is not finite, and who made it. */
import type { Backend } from "../backend/backend";
import { isSlice, outputsOf } from "../backend/launches";
import type { Memory, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { kernelText } from "../compile/explain";
import { type WatchedOp, type WatchedTensor, type Watcher, watched } from "../device/watcher";
import { check, OptError } from "../errors/errors";
import { callerLine } from "../host/caller-line";
import { checkBody } from "../host/synchronous";
import { byteSize, type DType, isFloat, viewElements } from "../values/dtype";
import { widen } from "../values/half";
import { showShape, sizeOf } from "../values/shape";

const where = "detectAnomaly";

/** What a launch wrote. */
interface LaunchOutput {
  readonly value: number;
  readonly memory: Memory;
  readonly length: number;
  readonly kernel: string;
  readonly line: string;
  readonly cameIn: boolean;
}

/**
 * Runs `body` and looks at all that each op computes, forward and backward. The first NaN, or infinity from finite numbers, ends it with an
 * error that names the op, the shape and the line of your program. Compiled functions run eagerly. Each step takes several times as long.
 *
 * @throws OptError NOT_FINITE; NOT_SYNC on webgpu; BAD_ARGUMENT; what `body` throws
 * @example
 * const w = parameter([0, 1]);
 * try {
 *   await detectAnomaly(() => w.sqrt().sum().backward());
 * } catch (error) {
 *   console.log(error.message); // infinity in the gradient of sqrt, of shape [2], with its line
 * }
 */
export async function detectAnomaly<Result>(body: () => Result): Promise<Awaited<Result>> {
  checkBody(where, body);
  const detector = new Detector();
  const result = await watched(detector, body);
  detector.end();
  return result;
}

class Detector implements Watcher {
  readonly isEager = true;
  /** Waits for the op that it belongs to. */
  #found: LaunchOutput | undefined;
  /** The one whose gradient is computed. */
  #op: WatchedOp | null = null;
  readonly #outer = callerLine();
  /** Where ops were computed. */
  readonly #lines = new WeakMap<WatchedOp, string>();

  launch({ name, backend }: { readonly name: string; readonly backend: Backend }, launch: Launch, run: () => void) {
    if (this.#op === null) this.end();
    check(
      backend.readSync !== undefined,
      "NOT_SYNC",
      where,
      () => `${name} cannot be read without waiting.`,
      "Run it on js, wasm or cpu.",
    );
    const floats = floatsOf(launch);
    const outputs = outputsOf(launch).filter((slice) => floats.has(slice));
    const inputs = [...floats.keys()].filter((slice) => launch.kind === "rule" || !outputs.includes(slice));
    const before = worstOf(backend, inputs, floats);
    run();
    if (this.#found !== undefined) return;
    for (const slice of outputs) {
      const value = worstOf(backend, [slice], floats);
      if (value === undefined || (!Number.isNaN(value) && (before !== undefined || isGiven(launch)))) continue;
      const { memory, length } = slice;
      const kernel = kernelText(launch.kernel.spec).slice(0, 80);
      this.#found = { value, memory, length, kernel, line: this.#line(), cameIn: before !== undefined };
      return;
    }
  }

  recorded(op: WatchedOp, output: WatchedTensor): void {
    this.#lines.set(op, this.#line());
    const isIts = this.#found?.memory === output.storage.memory;
    this.end(isIts ? `the result of ${op.name}` : undefined, [output]);
  }

  backward<Gradient extends WatchedTensor | null>(op: WatchedOp, run: () => readonly Gradient[]): readonly Gradient[] {
    this.end();
    this.#op = op;
    try {
      const gradients = run();
      const line = this.#lines.get(op);
      this.end(`the gradient of ${op.name}`, gradients, line && `${line}, and backward at `);
      return gradients;
    } finally {
      this.#op = null;
    }
  }

  /** Behind an await no line of the program may be left, as in `fit`: then that of detectAnomaly. */
  #line(): string {
    const line = callerLine();
    return line.includes(":") ? line : this.#outer;
  }

  /** @throws OptError NOT_FINITE */
  end(name?: string, tensors: readonly (WatchedTensor | null)[] = [], before = ""): void {
    const found = this.#found;
    if (found === undefined) return;
    this.#found = undefined;
    const { shape = [found.length] } = tensors.find((each) => each?.storage.memory === found.memory) ?? {};
    const value = Number.isNaN(found.value) ? "NaN" : "infinity";
    const what = name ?? `the kernel "${found.kernel}"`;
    const problem = `all numbers must be finite, got ${value} in ${what}, of shape ${showShape(shape)}, at ${before}${found.line}.`;
    const cure = found.cameIn
      ? "It came in: look at the data and the weights."
      : "What it was computed from is finite.";
    throw new OptError("NOT_FINITE", where, problem, cure);
  }
}

type Floats = Map<Slice, DType>;

/** The slices of a launch that hold floats. */
function floatsOf(launch: Launch): Floats {
  const floats: Floats = new Map();
  const add = (slice: unknown, dtype: string) => {
    if (isSlice(slice) && isFloat(dtype as DType)) floats.set(slice, dtype as DType);
  };
  if (launch.kind === "rule") {
    const { dtype, stored } = launch.kernel.spec;
    for (const slices of launch.tensors)
      for (const [slot, slice] of slices.entries()) add(slice, stored?.[slot] ?? dtype);
  } else if (launch.kind === "copy") {
    const { from, to } = launch.kernel.spec;
    add(launch.source, from);
    // A copy makes no numbers unless it narrows them, and what lies between parts is not its own.
    if (from !== to && launch.target.length === sizeOf(launch.shape)) add(launch.target, to);
  } else {
    const { indices: _, labels: __, ...others } = launch as Launch & Record<string, unknown>;
    for (const each of Object.values(others).flat()) add(each, launch.kernel.spec.dtype);
    const { spec } = launch.kernel;
    if (spec.kind === "reduce" && spec.op === "argmax") floats.delete((launch as Launch<"reduce">).output);
  }
  return floats;
}

/** Infinity is a number of the program itself: a mask, for example. */
function isGiven(launch: Launch): boolean {
  const { spec } = launch.kernel;
  const constants = spec.kind === "map" ? spec.program.nodes.filter(({ op }) => op === "constant") : [];
  const scalars = "scalars" in launch ? launch.scalars : [];
  return [...constants.map(({ value }) => value), ...scalars].some((value) => Math.abs(value as number) === Infinity);
}

/** NaN, else an infinity, else undefined. */
function worstOf(backend: Backend, slices: readonly Slice[], floats: Floats): number | undefined {
  let worst: number | undefined;
  for (const slice of slices) {
    const { memory, byteOffset, length } = slice;
    const dtype = floats.get(slice)!;
    const bytes = backend.readSync!(memory, byteOffset, length * byteSize(dtype));
    for (const value of widen(viewElements(bytes.buffer, bytes.byteOffset, length, dtype), dtype)) {
      if (Number.isNaN(value)) return value;
      if (!Number.isFinite(value)) worst = value;
    }
  }
  return worst;
}
