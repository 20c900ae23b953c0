/** Loading: whole tensors, slices, or what one rank of another layout holds, verified on the way. */
import { check, checkOptions, empty, hostBytes, OptError, type Tensor } from "@opt/core";
import { Verification } from "../format/checked";
import { bytesPerElement, storedDType, tensorDType } from "../format/dtype";
import type { Json, SourceTensor, TensorSource } from "../format/source";
import { heldDType, isTensor, type PlainTensor, toTensor } from "../format/tensors";
import { type Box, describeBox, elementsIn, fits, wholeOf } from "../layout/box";
import { boxesOfRank, defaultLayout, type Layout, ranksOf } from "../layout/layout";
import { allOf } from "../stores/lanes";
import { type ProgressCallback, reporter } from "../stores/progress";
import { Scratch } from "../stores/scratch";
import { checkedPlace, OPEN_OPTIONS, type OpenOptions, type Place, useSource } from "./open";
import { readAll, TensorReader } from "./reader";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "./select";

/** Half-open [begin, end) per dimension; null, or dimensions left out, for all of it. */
export type Slice = readonly (readonly [begin: number, end: number] | null)[];

export interface LoadedPlainTensor extends PlainTensor {
  readonly data: Uint8Array;
  /** Where in the whole tensor the data lie, and the whole's shape. */
  readonly offset: readonly number[];
  readonly wholeShape: readonly number[];
}

export interface LoadOptions<As extends "tensor" | "plain" = "tensor"> extends Omit<Selection, "verify">, OpenOptions {
  /** Tensors or plain tensors to fill; only their names are loaded, and shapes and dtypes must fit. */
  readonly into?: Readonly<Record<string, Tensor | PlainTensor>>;
  /** Parts of tensors, by name: only their bytes are read. */
  readonly slices?: Readonly<Record<string, Slice>>;
  /** What rank `rank` of this layout holds; without a layout, of `world` ranks that split the first dimension. */
  readonly layout?: Layout;
  readonly rank?: number;
  readonly world?: number;
  /** `plain`: { dtype, shape, data } with data as bytes, for dtypes that tensors cannot hold. */
  readonly as?: As;
  /**
   * True (the default) verifies every stored box that is read whole. A box read in part cannot be verified, and its tensor is listed in
   * `unverified`; "whole" reads such boxes whole to be sure.
   */
  readonly verify?: boolean | "whole";
  readonly progress?: ProgressCallback;
}

export interface Loaded<T> {
  readonly step: number | undefined;
  readonly tensors: Record<string, T>;
  readonly values: { readonly [key: string]: Json };
  /** Tensors of which some part was read without a checksum. */
  readonly unverified: readonly string[];
  /** Bytes of tensors read from the disk. */
  readonly bytesRead: number;
}

/** Files read at once. */
const LANES = 4;
const SCRATCH = 4 << 20;
/** Bytes and tensors that are read together at most: few enough that what is made for them is collected while it is young. */
const BATCH = 4 << 20;
const MOST = 256;

/**
 * Loads a checkpoint of ours (a step, or a run's latest) or of any known system.
 * Nothing is returned, and nothing in `into` changed, unless all of it is whole.
 * Throws MISSING, CORRUPT, BAD_SHAPE, BAD_DTYPE, UNSUPPORTED, REFUSED, IO.
 */
export async function loadCheckpoint(
  path: Place,
  options: LoadOptions<"plain"> & { as: "plain" },
): Promise<Loaded<LoadedPlainTensor>>;
export async function loadCheckpoint(path: Place, options?: LoadOptions): Promise<Loaded<Tensor>>;
export async function loadCheckpoint(
  path: Place,
  options: LoadOptions<"tensor" | "plain"> = {},
): Promise<Loaded<Tensor | LoadedPlainTensor>> {
  checkedPlace("loadCheckpoint", path);
  checkOptions("loadCheckpoint", options, {
    ...OPEN_OPTIONS,
    ...SELECTION_OPTIONS,
    verify: ["boolean", "string"],
    into: "object",
    slices: "object",
    layout: "object",
    rank: "number",
    world: "number",
    as: "string",
    progress: "function",
  });
  const { as, rank, world, layout } = options;
  check(
    as === undefined || ["tensor", "plain"].includes(as),
    "BAD_ARGUMENT",
    "loadCheckpoint",
    () => `as must be "tensor" or "plain", got ${JSON.stringify(as)}.`,
  );
  check(
    rank === undefined || world !== undefined || layout !== undefined,
    "BAD_ARGUMENT",
    "loadCheckpoint",
    () => `rank needs a world, got rank ${rank} alone.`,
    "Give world or a layout too.",
  );
  return useSource(path, options, (source) => loadFrom(source, options));
}

interface Wanted {
  readonly tensor: SourceTensor;
  readonly box: Box;
}

async function loadFrom(
  source: TensorSource,
  options: LoadOptions<"tensor" | "plain">,
): Promise<Loaded<Tensor | LoadedPlainTensor>> {
  const { into, slices = {}, verify = true } = options;
  for (const name of Object.keys(slices)) {
    if (!source.tensors.has(name))
      throw new OptError("MISSING", source.path, `it holds no tensor ${JSON.stringify(name)}.`, "Check the slices.");
  }
  const verification = new Verification();
  const names = options.names ?? (into && Object.keys(into));
  const selection = { ...options, verify: verify !== false, ...(names ? { names } : {}) };
  const selected = selectTensors(source, selection, verification);
  const wanted = selected.flatMap((tensor) => boxesWanted(tensor, options).map((box) => ({ tensor, box })));
  if (into) for (const one of wanted) checkInto(one, into);
  else if (options.as !== "plain") for (const { tensor } of wanted) heldDType(tensor.name, tensor.dtype);
  const total = wanted.reduce((sum, one) => sum + bytesIn(one), 0);
  const report = reporter(options.progress, total);
  const loaded = new Map<string, LoadedPlainTensor | Tensor>();
  // What fills `into` waits until all of it is whole; the rest becomes tensors at once, so that nothing is held twice.
  const place = into || options.as === "plain" ? plainTarget : tensorTarget();
  const batches = batchesOf(wanted);
  const lane = async () => {
    const scratch = new Scratch(SCRATCH);
    for (let next = batches.next(); !next.done; next = batches.next()) {
      const places = next.value.map((one) => {
        const { data, made } = place(one);
        if (made) loaded.set(one.tensor.name, made);
        return { ...one, data, made };
      });
      const requests = places.map(({ tensor, box, data }) => {
        return { reader: new TensorReader(tensor, scratch), region: box, target: data };
      });
      if (verify === "whole") for (const { reader, region } of requests) await reader.verifyWhole(region);
      await readAll(requests, scratch);
      for (const { tensor, box, data, made } of places) {
        if (!made) {
          const plain = plainTensor(tensor, box, data);
          loaded.set(tensor.name, into ? plain : finish(tensor.name, plain, options));
        }
        report(data.length);
      }
    }
  };
  try {
    await allOf(Array.from({ length: LANES }, lane));
  } catch (error) {
    for (const one of loaded.values()) if (isTensor(one)) one.dispose();
    throw error;
  }
  const tensors = Object.fromEntries(
    wanted.map(({ tensor: { name } }) => {
      const one = loaded.get(name)!;
      return [name, isTensor(one) || !into ? one : finish(name, one, options)];
    }),
  );
  const unverified = verify === false ? wanted.map(({ tensor }) => tensor.name) : verification.unverified();
  return { step: source.step, tensors, values: source.values, unverified, bytesRead: verification.bytesRead };
}

function bytesIn({ tensor, box }: Wanted): number {
  return elementsIn(box) * bytesPerElement(tensor.dtype);
}

/** Small tensors that follow each other are read together, a large one on its own. */
function* batchesOf(wanted: readonly Wanted[]): Generator<Wanted[]> {
  let batch: Wanted[] = [];
  let bytes = 0;
  for (const one of wanted) {
    const more = bytesIn(one);
    if (batch.length > 0 && (bytes + more > BATCH || batch.length === MOST)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(one);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

/** Where the bytes of a tensor are read to: a Tensor's own memory, if its device lets us. */
type Target = (one: Wanted) => { readonly data: Uint8Array; readonly made?: Tensor };

const plainTarget: Target = (one) => ({ data: new Uint8Array(bytesIn(one)) });

function tensorTarget(): Target {
  let isShared = true;
  return (one) => {
    if (!isShared) return plainTarget(one);
    const made = empty(one.box.size, { dtype: tensorDType(one.tensor.dtype)! });
    const data = hostBytes(made, "write");
    if (data) return { data, made };
    made.dispose();
    isShared = false;
    return plainTarget(one);
  };
}

function boxesWanted(tensor: SourceTensor, options: LoadOptions<"tensor" | "plain">): readonly Box[] {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  const slice = options.slices?.[tensor.name];
  if (slice) {
    const { shape } = tensor;
    const box = {
      offset: shape.map((_, d) => slice[d]?.[0] ?? 0),
      size: shape.map((length, d) => (slice[d] ? slice[d][1] - slice[d][0] : length)),
    };
    if (slice.length > shape.length || !fits(box, shape)) {
      throw new OptError(
        "BAD_SHAPE",
        where,
        `slice ${describeBox(box)} leaves the shape [${shape}].`,
        "Use [begin, end) pairs inside it.",
      );
    }
    return [box];
  }
  if (options.rank === undefined) {
    if (!options.layout && options.world === undefined) return [wholeOf(tensor.shape)];
    throw new OptError("BAD_ARGUMENT", "loadCheckpoint", "a layout or world needs a rank.", "Give rank.");
  }
  const layout = options.layout ?? defaultLayout(options.world ?? 1);
  if (!(options.rank >= 0 && options.rank < ranksOf(layout))) {
    throw new OptError(
      "BAD_ARGUMENT",
      "loadCheckpoint",
      `rank must be in [0, ${ranksOf(layout)}), got ${options.rank}.`,
      "Give world.",
    );
  }
  const boxes = boxesOfRank(layout, tensor, options.rank);
  if (boxes.length > 1) {
    throw new OptError(
      "UNSUPPORTED",
      where,
      `rank ${options.rank} holds ${boxes.length} boxes of it.`,
      "Load them by slices.",
    );
  }
  return boxes;
}

function checkInto({ tensor, box }: Wanted, into: Readonly<Record<string, Tensor | PlainTensor>>): void {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  const target = into[tensor.name];
  if (!target) return;
  if (target.shape.length !== box.size.length || target.shape.some((length, d) => length !== box.size[d])) {
    throw new OptError(
      "BAD_SHAPE",
      where,
      `the checkpoint gives [${box.size}], into has [${target.shape}].`,
      "Use the right model.",
    );
  }
  const dtype = storedDType(target.dtype, where);
  if (dtype !== tensor.dtype) {
    const advice = `Ask for the conversion: { dtype: "${target.dtype}" }.`;
    throw new OptError("BAD_DTYPE", where, `the checkpoint gives ${tensor.dtype}, into has ${dtype}.`, advice);
  }
  if (!isTensor(target) && target.data.byteLength !== elementsIn(box) * bytesPerElement(dtype)) {
    throw new OptError(
      "BAD_SHAPE",
      where,
      `data has ${target.data.byteLength} bytes for ${dtype} [${box.size}].`,
      "Fix its length.",
    );
  }
}

function plainTensor(tensor: SourceTensor, { offset, size }: Box, data: Uint8Array): LoadedPlainTensor {
  const { dtype, role, follows, shape: wholeShape } = tensor;
  const roles = { ...(role ? { role } : {}), ...(follows === undefined ? {} : { follows }) };
  return { dtype, shape: size, data, offset, wholeShape, ...roles };
}

function finish(
  name: string,
  plain: LoadedPlainTensor,
  { into, as }: LoadOptions<"tensor" | "plain">,
): Tensor | LoadedPlainTensor {
  const target = into?.[name];
  if (target && isTensor(target)) {
    const source = toTensor(name, storedDType(plain.dtype, name), plain.shape, plain.data);
    target.set(source);
    source.dispose();
    return target;
  }
  if (target) {
    new Uint8Array(target.data.buffer, target.data.byteOffset, target.data.byteLength).set(plain.data);
    return { ...plain, ...target, data: plain.data };
  }
  return as === "plain" ? plain : toTensor(name, storedDType(plain.dtype, name), plain.shape, plain.data);
}
