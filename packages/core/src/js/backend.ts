/** The js device: plain JavaScript on any engine. It defines what the others must compute, and serves where they cannot open. */

import type { Backend } from "../backend/backend";
import type { Memory } from "../backend/memory";
import { FUSED_KINDS, type Kernel, type Kind, type Launch, type Spec } from "../backend/spec";
import { OptError } from "../errors/errors";
import type { UpdateArrays } from "../rule/stored";
import type { ComputeDType } from "../values/dtype";
import { type CarriedKind, carriedRun } from "./carried";
import { compileMap, compileRule, type MapFunction } from "./compile";
import { copy } from "./copy";
import { matmul } from "./matmul";
import { elements, JsMemory } from "./memory";
import { reduce, sumSquares } from "./reduce";
import { compileRows, type RowsFunction, runRows } from "./rows";
import { forEachRow } from "./strided";

interface RuleKernel extends Kernel<"rule"> {
  readonly run: UpdateArrays;
}

interface MapKernel extends Kernel<"map"> {
  readonly run: MapFunction;
}

interface RowsKernel extends Kernel<"rows"> {
  readonly run: RowsFunction;
}

function runRule({ kernel, tensors, scalars: given }: Launch<"rule">): void {
  const { spec, run } = kernel as RuleKernel;
  const scalars = given.map((scalar) => (typeof scalar === "number" ? scalar : elements(scalar, spec.dtype)[0]!));
  for (const slices of tensors) {
    const arrays = slices.map((slice, slot) => elements(slice, spec.stored?.[slot] ?? spec.dtype));
    run(arrays, scalars, slices[0]?.place);
  }
}

function runMap({ kernel, inputs, output, scalars, shape, strides }: Launch<"map">): void {
  const { spec, run } = kernel as MapKernel;
  const arrays = inputs.map((slice) => elements(slice, spec.dtype));
  const out = elements(output, spec.dtype);
  const length = shape.at(-1)!;
  const steps = strides.map((stride) => stride.at(-1)!);
  forEachRow(shape, strides, (bases, row) => run(arrays, bases, steps, out, row * length, length, scalars));
}

const RUN: { readonly [K in Exclude<Kind, CarriedKind>]: (launch: Launch<K>) => void } = {
  rule: runRule,
  map: runMap,
  copy: (launch) => copy(launch.kernel.spec.from, launch.kernel.spec.to, launch),
  reduce: (launch) => reduce(launch.kernel.spec.op, launch.kernel.spec.dtype as ComputeDType, launch),
  sumSquares: (launch) => sumSquares(launch.kernel.spec, launch),
  matmul,
  rows: (launch) => runRows((launch.kernel as RowsKernel).run, launch),
};

const TOO_MANY_BYTES = 2 ** 40;
const REUSED_BYTES = 1024;
const REUSED_BLOCKS = 64;
const NO_BYTES = new ArrayBuffer(0);

class JsBackend implements Backend {
  readonly name = "js";
  readonly dtypes = ["f32", "f64"] as const;
  readonly sharesMemory = true;
  readonly exact = true;
  readonly portable = true;
  readonly packs = true;
  readonly draws = true;
  readonly fuses = FUSED_KINDS;
  readonly epilogues = true;

  /** Small blocks that were freed, by size: making an ArrayBuffer costs more than most small ops. */
  readonly #freed = new Map<number, ArrayBuffer[]>();

  allocate(bytes: number): Memory {
    const reused = this.#freed.get(bytes)?.pop();
    if (reused !== undefined) return new JsMemory(reused, bytes);
    try {
      // V8 would collect garbage four times before it failed.
      if (bytes >= TOO_MANY_BYTES) throw new RangeError("no typed array is as long");
      return new JsMemory(new ArrayBuffer(bytes), bytes);
    } catch (cause) {
      throw new OptError(
        "OUT_OF_MEMORY",
        "js",
        `cannot allocate ${bytes} bytes.`,
        "Free tensors with dispose() or tidy().",
        { cause },
      );
    }
  }

  reserve(bytes: number): Memory {
    return new JsMemory(NO_BYTES, bytes);
  }

  free(memory: Memory): void {
    const { buffer, bytes } = memory as JsMemory;
    (memory as JsMemory).buffer = NO_BYTES; // a trace may hold the object
    if (bytes > REUSED_BYTES) return; // the garbage collector's work
    const list = this.#freed.get(bytes);
    if (list === undefined) this.#freed.set(bytes, [buffer]);
    else if (list.length < REUSED_BLOCKS) list.push(buffer);
  }

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    new Uint8Array((memory as JsMemory).buffer, byteOffset, bytes.length).set(bytes);
  }

  readSync(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    return new Uint8Array((memory as JsMemory).buffer, byteOffset, bytes).slice();
  }

  hostView(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    return new Uint8Array((memory as JsMemory).buffer, byteOffset, bytes);
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    return this.readSync(memory, byteOffset, bytes);
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const some = spec as unknown as Spec;
    if (some.kind === "rule")
      return { spec, run: compileRule(some.rule.program, some.dtype, some.stored) } as Kernel<K>;
    const dtype = some.kind === "copy" ? undefined : (some.dtype as ComputeDType); // `dtypes` has no others
    if (some.kind === "map") return { spec, run: compileMap(some.program, dtype!) } as Kernel<K>;
    if (some.kind === "rows") return { spec, run: compileRows(some.program, some.dtype) } as Kernel<K>;
    if (some.kind === "matmul" && some.epilogue)
      return { spec, epilogue: compileMap(some.epilogue, dtype!) } as Kernel<K>;
    return { spec };
  }

  launch(launch: Launch): void {
    const run = RUN[launch.kind as keyof typeof RUN] as ((launch: Launch) => void) | undefined;
    if (run === undefined) carriedRun(launch as Launch<CarriedKind>);
    else run(launch);
  }

  async sync(): Promise<void> {}

  close(): void {}
}

/** The backend of the device `js`: plain loops over typed arrays, the reference for all others. */
export function openJsBackend(): Backend {
  return new JsBackend();
}
