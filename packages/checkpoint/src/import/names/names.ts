/** Names as we give them: parameters keep theirs, an optimizer's state is called `<parameter>.<state>` with PyTorch's words for states. */
import { OptError } from "@opt/core";
import type { SourceTensor, TensorSource } from "../../format/source";
import { followedName } from "../../format/tensors";
import { memorySource, readBytes } from "../bytes/byte-source";
import { wholeTensor } from "../bytes/foreign-tensor";
import { kerasNames } from "./keras-names";
import type { Renaming } from "./renaming";
import { prefixedNames, suffixedNames } from "./state-words";
import { torchNames } from "./torch-names";

const RULES: Record<string, (source: TensorSource) => Renaming> = {
  PyTorch: torchNames,
  "PyTorch DCP": torchNames,
  "MindSpore ckpt": prefixedNames,
  "MindSpore ranks": prefixedNames,
  Keras: kerasNames,
  "TF.js": suffixedNames,
  Paddle: suffixedNames,
};

/**
 * The same checkpoint under our names. `map` comes first: each key is a name, or its beginning up to a dot or slash, and is replaced
 * by its value; what it does not name goes by the format's own rules. Throws DUPLICATE where two names fall together,
 * MISSING for a key that names nothing.
 */
export async function underOurNames(
  source: TensorSource,
  map: Readonly<Record<string, string>> = {},
): Promise<TensorSource> {
  const mapped = mapNames(source, map);
  const rule = RULES[source.format] ?? ((): Renaming => ({ names: new Map() }));
  const renaming = rule(source);
  const renamed = new Map<string, SourceTensor>();
  for (const tensor of source.tensors.values()) {
    const name = mapped.get(tensor.name) ?? renaming.names.get(tensor.name) ?? tensor.name;
    if (renamed.has(name)) {
      throw new OptError(
        "DUPLICATE",
        source.path,
        `two tensors would be called ${JSON.stringify(name)}.`,
        "Use --map.",
      );
    }
    renamed.set(name, { ...tensor, name });
  }
  for (const [name, tensor] of renamed) renamed.set(name, withRole(tensor, renamed));
  for (const step of await stepsOf(source, renaming, renamed)) renamed.set(step.name, step);
  return { ...source, tensors: renamed, close: () => source.close() };
}

function mapNames(source: TensorSource, map: Readonly<Record<string, string>>): Map<string, string> {
  const names = new Map<string, string>();
  for (const [from, to] of Object.entries(map).sort(([a], [b]) => a.length - b.length)) {
    const before = names.size;
    for (const name of source.tensors.keys()) {
      const rest = name.slice(from.length);
      if (name.startsWith(from) && (rest === "" || /^[./]/.test(rest))) names.set(name, to + rest);
    }
    if (names.size === before && !source.tensors.has(from)) {
      const known = [...source.tensors.keys()].slice(0, 3).join(", ");
      throw new OptError(
        "MISSING",
        source.path,
        `the map names ${JSON.stringify(from)}.`,
        `There are ${known} and so on.`,
      );
    }
  }
  return names;
}

function withRole(tensor: SourceTensor, all: ReadonlyMap<string, SourceTensor>): SourceTensor {
  const follows = tensor.follows ?? followedName(tensor.name, all);
  if (follows !== undefined) return { ...tensor, role: "state", follows };
  return { ...tensor, role: tensor.role ?? (tensor.shape.length === 0 ? "scalar" : "param") };
}

/** Steps that are no tensors of their parameters yet: counted once for all, or plain values. Ours are, so that a run can go on. */
async function stepsOf(
  source: TensorSource,
  { counter, steps }: Renaming,
  tensors: ReadonlyMap<string, SourceTensor>,
): Promise<SourceTensor[]> {
  const count = counter === undefined ? undefined : await countOf(source, source.tensors.get(counter));
  const followed = new Set([...tensors.values()].map(({ follows }) => follows));
  return [...followed].flatMap((parameter) => {
    if (parameter === undefined || tensors.has(`${parameter}.step`)) return [];
    const step = steps?.get(parameter) ?? count;
    if (step === undefined) return [];
    const bytes = memorySource(source.path, new Uint8Array(Float32Array.of(step).buffer));
    const tensor = wholeTensor(`${parameter}.step`, { dtype: "F32", shape: [], bytes }, source.path);
    return [{ ...tensor, role: "state" as const, follows: parameter }];
  });
}

async function countOf(source: TensorSource, counter: SourceTensor | undefined): Promise<number | undefined> {
  const [box] = counter?.boxes ?? [];
  if (counter === undefined || box === undefined || counter.shape.some((length) => length !== 1)) return undefined;
  const bytes = { path: source.path, byteLength: box.byteLength, read: box.read.bind(box) };
  const view = new DataView((await readBytes(bytes, 0, box.byteLength)).buffer);
  if (counter.dtype === "I64") return Number(view.getBigInt64(0, true));
  return counter.dtype === "I32" ? view.getInt32(0, true) : undefined;
}
