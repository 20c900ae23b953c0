/** Trees of arrays as tensors by name, and back: what checkpoints hold. */
import { defaultDevice, numpy as np, tree } from "@jax-js/jax";
import { check, type Shape, show, Tensor, tensor } from "@opt/core";
import { checkOwned, filledLike, type Leaf, leavesOf, type Tree } from "./leaves";

/**
 * The arrays of a tree as tensors on the device `js`, under their paths (`layers.0.w`): for `saveCheckpoint`, or to train on with Opt. The
 * tree is consumed.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED, DUPLICATE, UNSUPPORTED
 * @example
 * import { numpy } from "@jax-js/jax";
 * const tensors = await toTensors({ layers: [{ w: numpy.zeros([2, 3]) }] }); // { "layers.0.w": Tensor f32 [2, 3] }
 */
export async function toTensors(params: Tree): Promise<Record<string, Tensor>> {
  const leaves = leavesOf("toTensors", "params", params);
  checkOwned("toTensors", leaves);
  const tensors = await Promise.all(leaves.map(({ array }) => tensorOf(array)));
  return Object.fromEntries(leaves.map(({ name }, i) => [name, tensors[i]!]));
}

/** Consumes the array. */
export async function tensorOf(array: np.Array): Promise<Tensor> {
  const { shape } = array;
  return tensor((await array.data()) as Float32Array, { shape, device: "js" });
}

/**
 * A tree like `params`, of tensors by the paths of its leaves; others are left out. `params` is consumed.
 *
 * @throws OptError BAD_STATE if one is missing or has another shape, and nothing was consumed then; further as `toTensors`
 * @example
 * import { numpy } from "@jax-js/jax";
 * const saved = await toTensors({ w: numpy.array([1, 2]) });
 * const { w } = await fromTensors(saved, { w: numpy.zeros([2]) });
 */
export async function fromTensors<Params extends Tree>(
  tensors: Readonly<Record<string, Tensor>>,
  params: Params,
): Promise<Params> {
  const where = "fromTensors";
  const isRecord = typeof tensors === "object" && tensors !== null && !(tensors instanceof Tensor);
  check(
    isRecord,
    "BAD_ARGUMENT",
    where,
    () => `needs tensors by name, got ${show(tensors)}.`,
    "Pass the tensors of loadCheckpoint.",
  );
  const leaves = leavesOf(where, "params", params);
  checkOwned(where, leaves);
  const sources = leaves.map((leaf) => ({ leaf, source: checkedTensor(where, leaf.name, leaf, tensors[leaf.name]) }));
  const arrays = await Promise.all(sources.map(({ leaf, source }) => arrayOf(source, leaf)));
  const structure = tree.structure(params);
  tree.dispose(params);
  return tree.unflatten(structure, arrays) as unknown as Params;
}

/** @throws OptError BAD_STATE, DISPOSED, UNSUPPORTED */
export function checkedTensor(where: string, name: string, { array }: Leaf, value: unknown): Tensor {
  check(
    value instanceof Tensor,
    "BAD_STATE",
    where,
    () => `${name} must be a tensor, got ${show(value)}.`,
    "Pass what was saved of the same tree.",
  );
  check(!value.isDisposed, "DISPOSED", where, () => `${name} was disposed.`, "Keep what was loaded until it is here.");
  const words = (shape: Shape) => `[${shape.join(", ")}]`;
  check(
    words(value.shape) === words(array.shape),
    "BAD_STATE",
    where,
    () => `${name} must have shape ${words(array.shape)}, got ${words(value.shape)}.`,
    "Pass what was saved of the same tree.",
  );
  // jax-js asks of float64 data whether it is a Float16Array, a class that Node has from 24 on.
  const isTaken = array.dtype === "float32" || "Float16Array" in globalThis;
  check(
    isTaken,
    "UNSUPPORTED",
    where,
    () => "jax-js takes float64 data only where the engine has Float16Array.",
    "Use Node 24, or load in float32 and cast.",
  );
  return value;
}

/** In the dtype of the leaf, and on its device. */
export async function arrayOf(source: Tensor, leaf: Leaf): Promise<np.Array> {
  const { array } = leaf;
  const { shape, device } = array;
  if (source.size === 0) return filledLike(leaf, 0); // numpy.array looks for a first element
  const dtype = array.dtype === "float64" ? "f64" : "f32";
  const wide = source.dtype === dtype ? source : source.to(dtype);
  const values = (await wide.data()) as Float32Array<ArrayBuffer>;
  if (wide !== source) wide.dispose();
  return np.array(values, device === defaultDevice() ? { shape } : { shape, device });
}
