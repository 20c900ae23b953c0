/** Python objects as `torch.save` writes them: the pickle, and the tensors whose storages follow it. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { elementCount } from "../../layout/box";
import { unsupported } from "../bytes/errors";
import { denseStrides } from "../bytes/strided";
import type { PythonTree } from "../python/tree";
import { PickleWriter } from "../python/write-pickle";
import type { Member } from "../zip/write";
import { torchTypeNames } from "./tensors";

export interface WrittenTensor {
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
}

/** Globals of plain values that are written again; every other one that a file held is left out by its reader already. */
const PLAIN_GLOBAL = /^torch\.(float|bfloat|complex|u?int|bool)\w*$/;
const PLAIN_CALLS: Record<string, [module: string, name: string]> = {
  "torch.Size": ["torch", "Size"],
  "torch.device": ["torch", "device"],
  "builtins.complex": ["__builtin__", "complex"],
  "__builtin__.complex": ["__builtin__", "complex"],
  "_codecs.encode": ["_codecs", "encode"],
};

/**
 * The members of a `torch.save` archive but for its storages, which follow as `archive/data/<number>` in the order of `keys`.
 * Throws UNSUPPORTED for a value that has no plain form.
 */
export function torchArchive(
  tree: PythonTree,
  tensorOf: (name: string) => WrittenTensor,
  where: string,
): { members: Member[]; tensors: string[] } {
  const keys = new Map<string, number>();
  const out = new PickleWriter();
  const write = (value: PythonTree): void => writeTree(out, value, where, writeTensor);
  const writeTensor = (name: string): void => {
    const key = keys.get(name) ?? keys.size;
    keys.set(name, key);
    rebuild(out, tensorOf(name), key);
  };
  write(tree);
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  const tensors = [...keys.keys()];
  const storages = tensors.map((name, key): Member => {
    const { dtype, shape } = tensorOf(name);
    return { name: `archive/data/${key}`, content: elementCount(shape)! * bytesPerElement(dtype) };
  });
  const members: Member[] = [
    { name: "archive/data.pkl", content: out.finish() },
    { name: "archive/byteorder", content: text("little") },
    ...storages,
    { name: "archive/version", content: text("3\n") },
  ];
  return { members, tensors };
}

function rebuild(out: PickleWriter, { dtype, shape }: WrittenTensor, key: number): void {
  const names = torchTypeNames(dtype);
  const count = elementCount(shape)!;
  const numbers = (list: readonly number[]) => () => out.tuple(list.map((n) => () => out.integer(n)));
  const storage = () =>
    out.persistent(() =>
      out.tuple([
        () => out.text("storage"),
        () => out.global(...storageClass(names.storage)),
        () => out.text(String(key)),
        () => out.text("cpu"),
        () => out.integer(names.storage === undefined ? count * bytesPerElement(dtype) : count),
      ]),
    );
  const args = [
    storage,
    () => out.integer(0),
    numbers(shape),
    numbers(denseStrides(shape, "row")),
    () => out.boolean(false),
    () => out.call("collections", "OrderedDict", []),
  ];
  if (names.storage !== undefined) out.call("torch._utils", "_rebuild_tensor_v2", args);
  else out.call("torch._utils", "_rebuild_tensor_v3", [...args, () => out.global("torch", names.dtype)]);
}

function storageClass(name: string | undefined): [module: string, name: string] {
  return name === undefined ? ["torch.storage", "UntypedStorage"] : ["torch", name];
}

function writeTree(out: PickleWriter, tree: PythonTree, where: string, writeTensor: (name: string) => void): void {
  const write = (value: PythonTree) => () => writeTree(out, value, where, writeTensor);
  if (typeof tree !== "object" || tree === null) writeScalar(out, tree);
  else if ("tensor" in tree) writeTensor(tree.tensor);
  else if ("float" in tree) out.float(Number(tree.float));
  else if ("int" in tree) out.integer(BigInt(tree.int));
  else if ("list" in tree) out.list(tree.list.map(write));
  else if ("tuple" in tree) out.tuple(tree.tuple.map(write));
  else if ("set" in tree) out.call("__builtin__", "set", [() => out.list(tree.set.map(write))]);
  else if ("global" in tree && PLAIN_GLOBAL.test(tree.global)) out.global("torch", tree.global.slice("torch.".length));
  else if ("call" in tree && Object.hasOwn(PLAIN_CALLS, tree.call)) {
    out.call(...PLAIN_CALLS[tree.call]!, tree.args.map(write));
  } else if ("dict" in tree) {
    const entries = tree.dict.map(([key, value]) => [write(key), write(value)] as const);
    if (tree.ordered === true) {
      out.call("collections", "OrderedDict", []);
      out.items(entries);
    } else out.dict(entries);
  } else {
    const what = "text" in tree ? tree.text : "global" in tree ? tree.global : tree.call;
    const problem = `${what.slice(0, 100)} has no plain form in a PyTorch file`;
    throw unsupported(where, problem, "Leave it out, or save it as a tensor or a plain value.");
  }
}

function writeScalar(out: PickleWriter, value: null | boolean | number | string): void {
  if (value === null) out.none();
  else if (typeof value === "boolean") out.boolean(value);
  else if (typeof value === "string") out.text(value);
  else if (Number.isInteger(value)) out.integer(value);
  else out.float(value);
}
