/** Loading: whole tensors, slices, or what one rank of another layout holds, verified on the way. */
import { check, checkOptions, OptError, type Tensor } from "@opt/core";
import { byteLengthOf } from "../format/shard";
import type { Json, Skipped, SourceTensor, TensorSource } from "../format/source";
import { isTensor, type PlainTensor } from "../format/tensors";
import { Verification } from "../format/verification";
import type { Rename } from "../formats/names/rename";
import { checkPatterns } from "../layout/layout";
import { checkUsed, nearest } from "../layout/nearest";
import { inBatches } from "../plan/chunks";
import { localFileSystem } from "../platform/local";
import { type ProgressCallback, reporter } from "../stores/progress";
import { exactI32, heldDType } from "./cast";
import { checkedPlace, OPEN_OPTIONS, type OpenOptions, type Place as Origin, useSource } from "./open";
import {
  checkInto,
  type LoadedPlainTensor,
  type Place,
  placeByCopy,
  placeInto,
  plainPlace,
  tensorPlaces,
} from "./places";
import { PlannedSource, planReads, ReadRequest } from "./read-plan";
import { ReadPool } from "./read-pool";
import {
  boxesWanted,
  checkExcluded,
  idlePatterns,
  type Parts,
  SELECTION_OPTIONS,
  type SelectedBox,
  type Selection,
  selectTensors,
  withoutTensors,
} from "./select";

export interface LoadOptions<As extends "tensor" | "plain" = "tensor">
  extends Omit<Selection, "verify">,
    Parts,
    OpenOptions {
  /** Tensors or plain tensors to fill; only their names are loaded, and shapes and dtypes must fit. */
  readonly into?: Readonly<Record<string, Tensor | PlainTensor>>;
  /** New names for what is loaded, by pattern: `{ "encoder.*": "*" }`. `exclude` means the file's names; all other options mean the new ones. */
  readonly rename?: Rename;
  /**
   * Fill `into` with square kernels of Keras, TF.js and flax as the file has them: [in, out], where PyTorch and `@opt/nn` have [out, in].
   * Without it they throw.
   */
  readonly asStored?: boolean;
  /** With `names` or `into`: true (the default) throws where the file lacks what `names` or `into` ask for; false lists that in `missing`. */
  readonly strict?: boolean;
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
  /** What `names` or `into` ask for, and the file lacks. */
  readonly missing: readonly string[];
  /** What the file has, and `into` has no place for. */
  readonly unexpected: readonly string[];
  /** Objects of other people's files that are no data: nothing of them was run. */
  readonly skipped: readonly Skipped[];
  /** Tensors of which some part was read without a checksum. */
  readonly unverified: readonly string[];
  /** Bytes of tensors read from the disk. */
  readonly bytesRead: number;
}

/** See operations.ts. */
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
    rename: "object",
    strict: "boolean",
    asStored: "boolean",
    slices: "object",
    layout: "object",
    rank: "number",
    world: "number",
    as: "string",
    progress: "function",
  });
  const { rank, world, layout, strict, into, names } = options;
  const isOfRank = rank === undefined || world !== undefined || layout !== undefined;
  check(
    isOfRank,
    "BAD_ARGUMENT",
    "loadCheckpoint",
    () => `rank needs a world, got ${rank}.`,
    "Give world or a layout too.",
  );
  const rule = () => `strict needs names or into, got ${strict} alone.`;
  const isOfSome = strict === undefined || names !== undefined || into !== undefined;
  check(isOfSome, "BAD_ARGUMENT", "loadCheckpoint", rule, "Give into: model.stateDict(), or leave strict out.");
  return useSource(path, options, async (source, opened) => loadFrom(await chosen(source, opened), opened));
}

/** Without what is left out, and under the new names. @throws OptError BAD_ARGUMENT, DUPLICATE */
async function chosen(whole: TensorSource, { exclude = [], rename }: LoadOptions<"tensor" | "plain">) {
  const unused = new Set(exclude);
  const source = withoutTensors(whole, exclude, unused);
  checkExcluded(exclude, unused, [whole], source);
  if (rename === undefined) return source;
  const { renamePatterns } = await import("../formats/names/rename");
  const idle = new Set(Object.keys(rename));
  const renamed = renamePatterns(source, rename, idle);
  checkUsed("rename", idle, source.tensors.keys());
  return renamed;
}

/** The patterns of `names`, and the names in `into`, that the file lacks. @throws OptError BAD_ARGUMENT, MISSING where all must be there */
function missingFrom({ path, tensors, unreadable }: TensorSource, options: LoadOptions<"tensor" | "plain">): string[] {
  const { names, into, strict = true } = options;
  const known = new Map<string, unknown>([...tensors, ...(unreadable ?? [])]);
  const missing = names ? idlePatterns(names, known) : Object.keys(into ?? {}).filter((name) => !known.has(name));
  const [first] = missing;
  if (!strict || first === undefined) return missing;
  if (names) checkUsed("names", missing, tensors.keys());
  const problem = `it holds no tensor ${JSON.stringify(first)}.`;
  throw new OptError("MISSING", path, problem, `${nearest(first, tensors.keys())} strict: false loads the others.`);
}

/** Systems whose kernels are [...window, in, out]: PyTorch has [out, in, ...window]. */
const INPUTS_FIRST = ["Keras", "TF.js", "flax msgpack"];

/** What has the same shape in both orders would silently be transposed. @throws OptError BAD_ARGUMENT */
function checkKernel({ format }: TensorSource, { name, shape }: SourceTensor): void {
  const ours = [...shape.slice(-2).reverse(), ...shape.slice(0, -2)];
  const isSame = shape.length > 1 && `${ours}` === `${shape}` && shape.some((length) => length > 1);
  check(
    !(isSame && INPUTS_FIRST.includes(format)),
    "BAD_ARGUMENT",
    `tensor ${JSON.stringify(name)}`,
    () =>
      `${format} has kernels as [in, out], PyTorch and @opt/nn as [out, in], and [${shape}] does not tell which is meant.`,
    "Load it without into and transpose it, or fill it as it is with asStored: true.",
  );
}

async function loadFrom(source: TensorSource, options: LoadOptions<"tensor" | "plain">) {
  const { into, slices = {}, verify = true } = options;
  checkUsed("slices", idlePatterns(Object.keys(slices), source.tensors), source.tensors.keys());
  if (options.layout) checkPatterns(options.layout, source.tensors.values());
  const verification = new Verification();
  const missing = missingFrom(source, options);
  const absent = new Set(missing);
  const names = (options.names ?? (into && Object.keys(into)))?.filter((name) => !absent.has(name));
  const selection = { ...options, verify: verify !== false, ...(names ? { names } : {}) };
  const selected = selectTensors(source, selection, verification).map((tensor) => {
    const target = into?.[tensor.name];
    const asTensor = target ? isTensor(target) && target.dtype === "i32" : options.as !== "plain";
    return tensor.dtype === "I64" && !tensor.conversion && asTensor ? exactI32(tensor) : tensor;
  });
  const wanted = selected.flatMap((tensor) =>
    boxesWanted(tensor, options, source.tensors.get(tensor.follows ?? "")).map((box) => ({ tensor, box })),
  );
  for (const one of wanted) {
    const target = into?.[one.tensor.name];
    if (target && !options.asStored) checkKernel(source, one.tensor);
    if (target) checkInto(one, target);
    else if (options.as !== "plain") heldDType(one.tensor.name, one.tensor.dtype);
  }
  const isNear = (options.fileSystem ?? localFileSystem).isNear ?? false;
  const looksFirst = into !== undefined && isNear && verify !== false;
  const total = wanted.reduce((sum, one) => sum + byteLengthOf(one), 0);
  const report = reporter(options.progress, looksFirst ? 2 * total : total);
  const pool = new ReadPool();
  const extent = verify === "whole" ? "whole" : "region";
  const read = (targetOf: (one: SelectedBox) => Uint8Array | undefined, done: (one: SelectedBox) => void) =>
    pool.run(function* (room) {
      for (const batch of inBatches(wanted, byteLengthOf)) {
        const request = (one: SelectedBox) =>
          new ReadRequest(new PlannedSource(one.tensor), one.box, targetOf(one), {
            extent,
            done: () => {
              done(one);
              report(byteLengthOf(one));
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
  const openPlace = (one: SelectedBox) => {
    const target = into?.[one.tensor.name];
    const place = !target ? newPlace(one) : isNear ? placeInto(one, target) : placeByCopy(one, target);
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
  const { step, values, skipped = [] } = source;
  const unexpected = into ? [...source.tensors.keys()].filter((name) => !(name in tensors)) : [];
  return { step, tensors, values, missing, unexpected, skipped, unverified, bytesRead: verification.bytesRead };
}
