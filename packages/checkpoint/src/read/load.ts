/** Loading: whole tensors, slices, or what one rank of another layout holds, verified on the way. */
import { check, checkOptions, OptError, show, type Tensor } from "@opt/core";
import type { Json, TensorSource } from "../format/source";
import { isTensor, type PlainTensor } from "../format/tensors";
import { Verification } from "../format/verification";
import { inBatches } from "../plan/chunks";
import { localFileSystem } from "../platform/local";
import { type ProgressCallback, reporter } from "../stores/progress";
import { exactI32, heldDType } from "./cast";
import { checkedPlace, OPEN_OPTIONS, type OpenOptions, type Place as Origin, useSource } from "./open";
import {
  checkInto,
  type LoadedPlainTensor,
  type Place,
  placeInto,
  plainPlace,
  stagedInto,
  tensorPlaces,
} from "./places";
import { PlannedSource, planReads, ReadRequest } from "./read-plan";
import { ReadPool } from "./read-pool";
import {
  boxesWanted,
  bytesIn,
  type Parts,
  SELECTION_OPTIONS,
  type Selection,
  selectTensors,
  type Wanted,
} from "./select";

export interface LoadOptions<As extends "tensor" | "plain" = "tensor">
  extends Omit<Selection, "verify">,
    Parts,
    OpenOptions {
  /** Tensors or plain tensors to fill; only their names are loaded, and shapes and dtypes must fit. */
  readonly into?: Readonly<Record<string, Tensor | PlainTensor>>;
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

/**
 * Loads a checkpoint of ours (a step, or a run's latest) or of any known system.
 * Nothing is returned, and nothing in `into` changed, unless all of it is whole: files of this machine are read once to see that, and
 * again into the tensors' own memory; `verify: false` leaves out the first. A second reading that fails leaves tensors filled in part.
 * Throws MISSING, CORRUPT, BAD_SHAPE, BAD_DTYPE, UNSUPPORTED, REFUSED, IO.
 */
export async function loadCheckpoint(
  path: Origin,
  options: LoadOptions<"plain"> & { as: "plain" },
): Promise<Loaded<LoadedPlainTensor>>;
export async function loadCheckpoint(path: Origin, options?: LoadOptions): Promise<Loaded<Tensor>>;
export async function loadCheckpoint(
  path: Origin,
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
  const { as, rank, world, layout, verify, into = {} } = options;
  const isVerify = typeof verify !== "string" || verify === "whole";
  const wrongVerify = () => `verify must be true, false or "whole", got ${show(verify)}.`;
  check(isVerify, "BAD_ARGUMENT", "loadCheckpoint", wrongVerify);
  for (const [name, target] of Object.entries(into)) {
    const isPlace = isTensor(target) || (ArrayBuffer.isView(target?.data) && Array.isArray(target.shape));
    const problem = () => `into.${name} must be a Tensor or { dtype, shape, data }, got ${show(target)}.`;
    check(isPlace, "BAD_ARGUMENT", "loadCheckpoint", problem);
  }
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
  const selected = selectTensors(source, selection, verification).map((tensor) => {
    const target = into?.[tensor.name];
    const asTensor = target ? isTensor(target) && target.dtype === "i32" : options.as !== "plain";
    return tensor.dtype === "I64" && asTensor ? exactI32(tensor) : tensor;
  });
  const wanted = selected.flatMap((tensor) => boxesWanted(tensor, options).map((box) => ({ tensor, box })));
  for (const one of wanted) {
    const target = into?.[one.tensor.name];
    if (target) checkInto(one, target);
    else if (options.as !== "plain") heldDType(one.tensor.name, one.tensor.dtype);
  }
  const isNear = (options.fileSystem ?? localFileSystem).isNear ?? false;
  const looksFirst = into !== undefined && isNear && verify !== false;
  const total = wanted.reduce((sum, one) => sum + bytesIn(one), 0);
  const report = reporter(options.progress, looksFirst ? 2 * total : total);
  const pool = new ReadPool();
  const extent = verify === "whole" ? "whole" : "region";
  const read = (targetOf: (one: Wanted) => Uint8Array | undefined, done: (one: Wanted) => void) =>
    pool.run(function* (room) {
      for (const batch of inBatches(wanted, bytesIn)) {
        const request = (one: Wanted) =>
          new ReadRequest(new PlannedSource(one.tensor), one.box, targetOf(one), {
            extent,
            done: () => {
              done(one);
              report(bytesIn(one));
            },
          });
        yield* planReads(batch.map(request), room);
      }
    });
  if (looksFirst)
    await read(
      () => undefined,
      () => {},
    );
  const newPlace = options.as === "plain" ? plainPlace : tensorPlaces();
  const open = new Map<string, Place>();
  const loaded = new Map<string, Tensor | LoadedPlainTensor>();
  const finish = (name: string) => {
    loaded.set(name, open.get(name)!.finish());
    open.delete(name);
  };
  const openPlace = (one: Wanted) => {
    const target = into?.[one.tensor.name];
    const place = !target ? newPlace(one) : isNear ? placeInto(one, target) : stagedInto(one, target);
    open.set(one.tensor.name, place);
    return place.data;
  };
  try {
    await read(openPlace, ({ tensor }) => {
      // What a far store gave waits until all of it is whole; the rest is finished at once, so that nothing is held twice.
      if (isNear || !into) finish(tensor.name);
    });
    for (const name of [...open.keys()]) finish(name);
  } catch (error) {
    for (const place of open.values()) place.drop?.();
    for (const [name, one] of loaded) if (isTensor(one) && one !== into?.[name]) one.dispose();
    throw error;
  }
  const tensors = Object.fromEntries(wanted.map(({ tensor: { name } }) => [name, loaded.get(name)!]));
  const unverified = verify === false ? wanted.map(({ tensor }) => tensor.name) : verification.unverified();
  return { step: source.step, tensors, values: source.values, unverified, bytesRead: verification.bytesRead };
}
