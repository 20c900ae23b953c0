/** Arguments and results: trees of tensors and plain values. */
import { OptError } from "../errors/errors";
import { show } from "../errors/show";
import { Tensor } from "../tensor/tensor";
import { showShape } from "../values/shape";

export interface Arguments {
  /** In the order in which they are met. */
  readonly tensors: readonly Tensor[];
  /** One text for each top-level argument: calls with equal texts have one signature. */
  readonly texts: readonly string[];
}

const numbers = new WeakMap<Tensor, number>();
let last = 0;

/** A number that stays with a tensor. */
function numberOf(tensor: Tensor): number {
  const number = numbers.get(tensor) ?? ++last;
  numbers.set(tensor, number);
  return number;
}

function describe(tensor: Tensor, tensors: readonly Tensor[]): string {
  tensor.checkAlive();
  if (tensor.sparse) throw invalid("arguments", "a row-sparse tensor", "Pass toDense().");
  if (tensor.node !== null)
    throw invalid("arguments", "the result of a computation with gradients", "Pass x.detach().");
  const shared = tensors.findIndex(({ storage }) => storage === tensor.storage);
  // Gradients belong to one tensor, so a leaf counts by identity.
  const leaf = tensor.requiresGrad ? `#${numberOf(tensor)}` : "";
  return `${tensor.dtype} ${showShape(tensor.shape)} ${tensor.device.name}${leaf}${shared < 0 ? "" : `=${shared}`}`;
}

type Role = "arguments" | "results";

function invalid(role: Role, got: string, cure: string): OptError {
  const problem = `${role} must be tensors, numbers, strings, booleans, or arrays and plain objects of them, got ${got}.`;
  return new OptError("BAD_ARGUMENT", "compile", problem, cure);
}

/** @param path the lists and objects that the value is in */
function checkBranch(role: Role, value: unknown, path: readonly object[], cure: string): asserts value is object {
  const isList = Array.isArray(value);
  const isPlain = typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
  if ((!isList && !isPlain) || path.includes(value as object)) throw invalid(role, show(value), cure);
}

/** @throws OptError BAD_ARGUMENT for other kinds of results than arguments can have */
export function checkResult(value: unknown, path: readonly object[] = []): void {
  const isLeaf = ["number", "boolean", "string", "undefined"].includes(typeof value) || value === null;
  if (isLeaf || value instanceof Tensor) return;
  checkBranch("results", value, path, "Return a plain object, or a list.");
  for (const item of Object.values(value)) checkResult(item, [...path, value]);
}

/** @throws OptError BAD_ARGUMENT for other kinds of arguments */
export function flattenArguments(args: readonly unknown[]): Arguments {
  const tensors: Tensor[] = [];
  const text = (value: unknown, path: readonly object[]): string => {
    if (typeof value === "number" || typeof value === "boolean") return Object.is(value, -0) ? "-0" : String(value);
    if (typeof value === "string") return JSON.stringify(value);
    if (value === undefined || value === null) return String(value);
    if (value instanceof Tensor) {
      const described = describe(value, tensors);
      tensors.push(value);
      return described;
    }
    checkBranch("arguments", value, path, "Pass a tensor; use other objects from outside.");
    const inner = [...path, value];
    if (Array.isArray(value)) return `[${value.map((item) => text(item, inner)).join()}]`;
    const parts = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${text(item, inner)}`);
    return `{${parts.join()}}`;
  };
  const texts = args.map((arg) => text(arg, []));
  return { tensors, texts };
}

/** A copy of a tree in which each tensor, or what else `isLeaf`, is replaced; other values stay. */
export function mapTree<Leaf>(
  value: unknown,
  isLeaf: (value: unknown) => value is Leaf,
  replace: (leaf: Leaf) => unknown,
): unknown {
  if (isLeaf(value)) return replace(value);
  const map = (item: unknown) => mapTree(item, isLeaf, replace);
  if (Array.isArray(value)) return value.map(map);
  if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, map(item)]));
  return value;
}

/** A copy of a tree in which each tensor is replaced. */
export function mapTensors(value: unknown, replace: (tensor: Tensor) => unknown): unknown {
  return mapTree(value, (leaf) => leaf instanceof Tensor, replace);
}
