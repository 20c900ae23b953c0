/** Trees of jax-js arrays as lists of named leaves: it checks them before an array is consumed. */
import { defaultDevice, type JsTree, numpy as np } from "@jax-js/jax";
import { check, type ErrorCode, show } from "@opt/core";

/** Arrays and plain objects, nested as one likes, of arrays. */
export type Tree = JsTree<np.Array>;

/** An array under the path that leads to it: `layers.0.w`. */
export interface Leaf {
  readonly name: string;
  readonly array: np.Array;
}

const DEEPEST = 64;

/** The leaves of a tree, in jax-js' order. A tree that is one array has the name "0". @throws OptError */
export function leavesOf(where: string, what: string, given: unknown): Leaf[] {
  const leaves: Leaf[] = [];
  const visit = (value: unknown, path: readonly string[]): void => {
    check(
      path.length <= DEEPEST,
      "BAD_ARGUMENT",
      where,
      () => `${what} may be nested ${DEEPEST} deep, got more.`,
      "Check for a cycle.",
    );
    if (isBranch(value)) for (const [key, part] of Object.entries(value)) visit(part, [...path, key]);
    else {
      const array = checkedArray(where, [what, ...path].join("."), value);
      leaves.push({ name: path.join(".") || "0", array });
    }
  };
  visit(given, []);
  const names = new Set<string>();
  for (const { name } of leaves) {
    check(
      !names.has(name),
      "DUPLICATE",
      where,
      () => `paths in ${what} must differ, got ${name} twice.`,
      "Rename one.",
    );
    names.add(name);
  }
  return leaves;
}

/** As jax-js tells branches from leaves. */
function isBranch(value: unknown): value is object {
  return Array.isArray(value) || (typeof value === "object" && value !== null && value.constructor === Object);
}

function checkedArray(where: string, what: string, value: unknown): np.Array {
  const isForeign = typeof value === "object" && value !== null && "aval" in value && !(value instanceof np.Array);
  check(
    !isForeign || !("refCount" in value),
    "BAD_ARGUMENT",
    where,
    () => `${what} is an array of another copy of jax-js.`,
    "Import jax-js as an ES module, everywhere: its CommonJS build is another copy.",
  );
  check(
    !isForeign,
    "UNSUPPORTED",
    where,
    () => `${what} is being traced: steps are counted by the program, and compile themselves.`,
    "Call it outside of jit, grad and vmap.",
  );
  check(
    value instanceof np.Array,
    "BAD_ARGUMENT",
    where,
    () => `${what} must be a jax-js array, got ${show(value)}.`,
    "Make it with numpy.array.",
  );
  const isWide = value.dtype === "float32" || value.dtype === "float64";
  check(
    isWide,
    "BAD_DTYPE",
    where,
    () => `${what} must be float32 or float64, got ${value.dtype}.`,
    "Keep parameters in float32, and cast them where they are used.",
  );
  return value;
}

/** Rejects trees that are to be consumed and are not all there. @throws OptError DISPOSED */
export function checkOwned(where: string, leaves: readonly Leaf[]): void {
  const uses = new Map<np.Array, number>();
  for (const { name, array } of leaves) {
    const count = (uses.get(array) ?? 0) + 1;
    uses.set(array, count);
    check(
      count <= array.refCount,
      "DISPOSED",
      where,
      () =>
        array.refCount > 0
          ? `${name} is consumed ${count} times, and has ${array.refCount} references.`
          : `${name} was consumed before.`,
      "Pass tree.ref(params) to use them again.",
    );
  }
}

/** Rejects a tree that is not like the parameters. @throws OptError `code`, BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH */
export function checkAlike(
  where: string,
  what: string,
  code: ErrorCode,
  leaves: readonly Leaf[],
  params: readonly Leaf[],
): void {
  const names = new Set(leaves.map(({ name }) => name));
  const known = new Set(params.map(({ name }) => name));
  const missing = params.find(({ name }) => !names.has(name));
  const unknown = leaves.find(({ name }) => !known.has(name));
  const advice = "Both trees have one structure.";
  check(missing === undefined, code, where, () => `${what} lacks ${missing!.name}, which params has.`, advice);
  check(unknown === undefined, code, where, () => `${what} has ${unknown!.name}, which params lacks.`, advice);
  params.forEach(({ name, array: param }, i) => {
    const { array } = leaves[i]!;
    check(
      leaves[i]!.name === name,
      code,
      where,
      () => `${what} must have the order of params, got ${leaves[i]!.name} in place of ${name}.`,
      advice,
    );
    const [shape, wanted] = [array.shape, param.shape].map((extents) => `[${extents.join(", ")}]`);
    check(
      shape === wanted,
      code === "BAD_STATE" ? code : "BAD_SHAPE",
      where,
      () => `${what}.${name} must have the parameter's shape ${wanted}, got ${shape}.`,
      "Reshape it.",
    );
    check(
      array.dtype === param.dtype,
      code === "BAD_STATE" ? code : "BAD_DTYPE",
      where,
      () => `${what}.${name} must be ${param.dtype} as the parameter, got ${array.dtype}.`,
      "Cast it with astype.",
    );
    check(
      array.device === param.device,
      "DEVICE_MISMATCH",
      where,
      () => `${what}.${name} must be on the parameter's device ${param.device}, got ${array.device}.`,
      "Move it with devicePut.",
    );
  });
}

/** A value, or the parameter itself. Bound to its device no more than the parameter is. */
export function filledLike({ array }: Leaf, value: number | "param"): np.Array {
  if (value === "param") return array.ref;
  const { shape, dtype, device } = array;
  return np.full(shape, value, device === defaultDevice() ? { dtype } : { dtype, device });
}
