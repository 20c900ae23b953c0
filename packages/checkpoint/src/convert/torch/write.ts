/** Writes PyTorch `.pt` files: what `torch.load` gives is `{ model, optimizer, ... }`, or what was read from a PyTorch file before. */
import { bytesOf, bytesPerElement } from "../../format/dtype";
import type { SourceTensor, TensorSource } from "../../format/source";
import { unsupported } from "../../formats/bytes/errors";
import {
  PickleCall,
  PickleFloat,
  PickleGlobal,
  PicklePersistent,
  PickleTuple,
} from "../../formats/python/pickle-objects";
import { PLAIN_CALLS, type PythonTree } from "../../formats/python/tree";
import { torchTypeNames } from "../../formats/torch/tensors";
import { elementCount, wholeOf } from "../../layout/box";
import { strides } from "../../plan/runs";
import { streamTensors } from "../../read/stream";
import { SequenceWriter } from "../files/write-sequence";
import { type ExportOptions, writeWhole } from "../files/write-whole";
import { writePickle } from "../python/write-pickle";
import { type Member, zipParts } from "../zip/write";
import { torchObject } from "./write-state-dict";

/**
 * Writes one file for `torch.load(path, weights_only=True)`.
 *
 * @throws OptError UNSUPPORTED for values that have no plain form, MISSING for gaps, IO
 */
export async function writeTorch(
  source: TensorSource,
  path: string,
  options: ExportOptions = {},
): Promise<{ byteLength: number }> {
  const { tree, tensors } = await torchObject(source, "numbered");
  const { members, tensors: names } = torchArchive(tree, (name) => tensors.get(name)!, path);
  return writeWhole(path, options, async (file) => {
    const writer = new SequenceWriter(file);
    writer.announce(zipParts(members));
    const write = (bytes: Uint8Array): Promise<void> => writer.write(bytes);
    await streamTensors(
      names.map((name) => {
        const tensor = tensors.get(name)!;
        return { tensor, targets: [{ box: wholeOf(tensor.shape), write }] };
      }),
      options,
    );
    return writer.finish();
  });
}

/** Globals of plain values that are written again; every other one that a file held is left out by its reader already. */
const PLAIN_GLOBAL = /^torch\.(float|bfloat|complex|u?int|bool)\w*$/;

/**
 * The members of a `torch.save` archive; storages lie in the order of `tensors`.
 *
 * @throws OptError UNSUPPORTED for a value that has no plain form
 */
export function torchArchive(
  tree: PythonTree,
  tensorOf: (name: string) => Pick<SourceTensor, "dtype" | "shape">,
  where: string,
): { members: Member[]; tensors: string[] } {
  const keys = new Map<string, number>();
  const rebuilt = (name: string): PickleCall => {
    const key = keys.get(name) ?? keys.size;
    keys.set(name, key);
    return rebuild(tensorOf(name), key);
  };
  const pickle = writePickle(pickled(tree, where, rebuilt));
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  const tensors = [...keys.keys()];
  const storages = tensors.map((name, key): Member => {
    return { name: `archive/data/${key}`, content: bytesOf(tensorOf(name)) };
  });
  const members: Member[] = [
    { name: "archive/data.pkl", content: pickle },
    { name: "archive/byteorder", content: text("little") },
    ...storages,
    { name: "archive/version", content: text("3\n") },
  ];
  return { members, tensors };
}

function rebuild({ dtype, shape }: Pick<SourceTensor, "dtype" | "shape">, key: number): PickleCall {
  const { dtype: name, storage } = torchTypeNames(dtype);
  const elements = elementCount(shape)!;
  const type = new PickleGlobal(storage === undefined ? "torch.storage.UntypedStorage" : `torch.${storage}`);
  const count = storage === undefined ? elements * bytesPerElement(dtype) : elements;
  const id = new PicklePersistent(new PickleTuple(["storage", type, String(key), "cpu", count]));
  const hooks = new PickleCall("collections.OrderedDict", []);
  const args = [id, 0, new PickleTuple(shape), new PickleTuple(strides(shape, 1)), false, hooks];
  if (storage !== undefined) return new PickleCall("torch._utils._rebuild_tensor_v2", args);
  return new PickleCall("torch._utils._rebuild_tensor_v3", [...args, new PickleGlobal(`torch.${name}`)]);
}

/** What a pickle holds for a tree; `tensor` makes the calls that build tensors. */
function pickled(tree: PythonTree, where: string, tensor: (name: string) => PickleCall): unknown {
  const all = (items: readonly PythonTree[]): unknown[] => items.map((item) => pickled(item, where, tensor));
  if (typeof tree !== "object" || tree === null) return tree;
  if ("tensor" in tree) return tensor(tree.tensor);
  if ("float" in tree) return new PickleFloat(Number(tree.float));
  if ("int" in tree) return BigInt(tree.int);
  if ("list" in tree) return all(tree.list);
  if ("tuple" in tree) return new PickleTuple(all(tree.tuple));
  if ("set" in tree) return new PickleCall("__builtin__.set", [all(tree.set)]);
  if ("global" in tree && PLAIN_GLOBAL.test(tree.global)) return new PickleGlobal(tree.global);
  const call = "call" in tree ? PLAIN_CALLS.get(tree.call) : undefined;
  if (call !== undefined && "call" in tree) return new PickleCall(call, all(tree.args));
  if ("dict" in tree) {
    const ordered = tree.ordered === true ? new PickleCall("collections.OrderedDict", []) : undefined;
    const entries = ordered?.entries ?? new Map<unknown, unknown>();
    for (const pair of tree.dict) {
      const [key, value] = all(pair);
      entries.set(key, value);
    }
    return ordered ?? entries;
  }
  const what = "text" in tree ? tree.text : "global" in tree ? tree.global : tree.call;
  const problem = `${what.slice(0, 100)} has no plain form in a PyTorch file`;
  throw unsupported(where, problem, "Leave it out, or save it as a tensor or a plain value.");
}
