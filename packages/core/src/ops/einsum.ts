/** Sums of products by Einstein's notation, as matrix products. */

import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { overSamples } from "../tensor/batching";
import type { Tensor } from "../tensor/tensor";
import { showShape, sizeOf } from "../values/shape";
import { checkDevice } from "./check-device";
import { checkTensor } from "./check-tensor";
import { definePrimitive } from "./define-function";
import { elementwise } from "./elementwise/elementwise";
import { matmul } from "./matmul";
import { sum } from "./reduce/reduce";
import { diagonals } from "./shape/diagonals";
import { reshape } from "./shape/shape";

/** A tensor, and what its axes are called: by a letter, or ".2", ".1" for those of an ellipsis, counted from the right. */
interface LabelledTensor {
  readonly tensor: Tensor;
  readonly labels: readonly string[];
}

const where = "einsum";
const ADVICE = 'For example einsum("ij,jk->ik", a, b).';

/**
 * torch.einsum: each operand's axes are named by letters; axes of one name are multiplied together, and those that the result does not name
 * are summed. A name twice in an operand takes its diagonal, "..." stands for further axes, which broadcast as extents of 1 do. Without
 * "->" the result has the axes of the ellipsis and then the names that occur once, in alphabetical order. Several operands are contracted from
 * left to right.
 *
 * @throws OptError BAD_ARGUMENT for a malformed equation; BAD_SHAPE, DEVICE_MISMATCH
 * @example
 * const [a, b] = [ones([2, 3]), ones([3, 4])];
 * einsum("ij,jk->ik", a, b); // the matrix product
 * einsum("ij->j", a); // sums of columns
 */
export const einsum = /* @__PURE__ */ definePrimitive(
  { torch: "torch.einsum('bik,jbk->ij', a, b)", tensors: ["nmk", "lnk"], arguments: ["bik,jbk->ij", "$a", "$b"] },
  (equation: string, ...operands: readonly Tensor[]): Tensor => {
    const samples = overSamples(einsum, equation, ...operands);
    if (samples) return samples;
    const terms = parsed(equation, operands.length);
    for (const [i, operand] of operands.entries()) checkTensor(where, operand, `operand ${i}`);
    checkDevice(where, operands);
    const labels = operands.map((operand, i) => labelsOf(terms.inputs[i]!, operand));
    const result = resultOf(terms.output, labels);
    const extents = extentsOf(operands, labels);
    return tidy(() => {
      const all = operands.map((tensor, i) => withoutRepeats({ tensor, labels: labels[i]! }, extents));
      let product = all[0]!;
      all.slice(1).forEach((next, i) => {
        const needed = new Set([...result, ...all.slice(i + 2).flatMap((later) => later.labels)]);
        product = contracted(product, next, needed);
      });
      const kept = summed(product, (label) => result.includes(label));
      return diagonals(
        kept.tensor,
        result.map((label) => [kept.labels.indexOf(label)]),
      );
    });
  },
);

function parsed(equation: unknown, count: number): { inputs: string[]; output: string | undefined } {
  const text = typeof equation === "string" ? equation.replaceAll(" ", "") : "";
  const [left = "", output, ...more] = text.split("->");
  const inputs = left.split(",");
  const isTerm = (term: string) => /^[a-zA-Z]*(\.\.\.)?[a-zA-Z]*$/.test(term);
  const isWell = typeof equation === "string" && more.length === 0 && [...inputs, output ?? ""].every(isTerm);
  check(
    isWell,
    "BAD_ARGUMENT",
    where,
    () => `the equation must be terms of letters and "...", joined by "," and "->", got ${show(equation)}.`,
    ADVICE,
  );
  check(
    inputs.length === count && count > 0,
    "BAD_ARGUMENT",
    where,
    () => `the equation names ${inputs.length} operands, got ${count}.`,
    ADVICE,
  );
  return { inputs, output };
}

/** Names of `count` axes of an ellipsis. */
const dots = (count: number) => Array.from({ length: count }, (_, i) => `.${count - i}`);

function labelsOf(term: string, { shape }: Tensor): string[] {
  const letters = term.replace("...", "").length;
  const further = shape.length - letters;
  const fits = term.includes("...") ? further >= 0 : further === 0;
  check(
    fits,
    "BAD_ARGUMENT",
    where,
    () => `"${term}" must name the axes of its operand, got ${showShape(shape)}.`,
    'Name each axis, or use "...".',
  );
  const [before = "", after = ""] = term.split("...");
  return [...before, ...dots(further), ...after];
}

function resultOf(output: string | undefined, labels: readonly (readonly string[])[]): string[] {
  const all = labels.flat();
  const ellipsis = dots(Math.max(...labels.map((list) => list.filter((label) => label[0] === ".").length)));
  if (output === undefined) {
    const once = all.filter((label) => label[0] !== "." && all.indexOf(label) === all.lastIndexOf(label));
    return [...ellipsis, ...once.sort()];
  }
  const [before = "", after = ""] = output.split("...");
  const result = [...before, ...(output.includes("...") ? ellipsis : []), ...after];
  for (const label of result) {
    const isThere = all.includes(label);
    check(isThere, "BAD_ARGUMENT", where, () => `the result names "${label}", which no operand has.`, ADVICE);
  }
  const areDifferent = new Set(result).size === result.length;
  check(areDifferent, "BAD_ARGUMENT", where, () => `the result must name each axis once, got "${output}".`, ADVICE);
  return result;
}

/** The extent of each label: axes that have it agree, or those of other operands are 1. */
function extentsOf(operands: readonly Tensor[], labels: readonly (readonly string[])[]): Map<string, number> {
  const extents = new Map<string, number>();
  operands.forEach(({ shape }, k) => {
    const own = labels[k]!;
    own.forEach((label, axis) => {
      const [extent, first, known = 1] = [shape[axis]!, shape[own.indexOf(label)]!, extents.get(label)];
      const other = extent === first ? known : first;
      const isSame = extent === other || (extent === first && (extent === 1 || other === 1));
      check(
        isSame,
        "BAD_SHAPE",
        where,
        () => `axes "${label}" must have one extent, got ${other} and ${extent}.`,
        "Other operands may have 1.",
      );
      extents.set(label, known === 1 ? extent : known);
    });
  });
  return extents;
}

/** Each label once; axes of extent 1 that others stretch are dropped. */
function withoutRepeats({ tensor, labels }: LabelledTensor, extents: ReadonlyMap<string, number>): LabelledTensor {
  const unique = [...new Set(labels)];
  const groups = unique.map((label) => labels.flatMap((each, axis) => (each === label ? [axis] : [])));
  const single = unique.length === labels.length ? tensor : diagonals(tensor, groups);
  const kept = unique.filter((label, axis) => single.shape[axis] === extents.get(label));
  return {
    tensor: reshape(
      single,
      kept.map((label) => extents.get(label)!),
    ),
    labels: kept,
  };
}

/** Sums over the axes that are not needed. */
function summed({ tensor, labels }: LabelledTensor, isNeeded: (label: string) => boolean): LabelledTensor {
  const axes = labels.flatMap((label, axis) => (isNeeded(label) ? [] : [axis]));
  return axes.length === 0 ? { tensor, labels } : { tensor: sum(tensor, axes), labels: labels.filter(isNeeded) };
}

function contracted(a: LabelledTensor, b: LabelledTensor, needed: ReadonlySet<string>): LabelledTensor {
  const left = summed(a, (label) => needed.has(label) || b.labels.includes(label));
  const right = summed(b, (label) => needed.has(label) || a.labels.includes(label));
  const shared = left.labels.filter((label) => right.labels.includes(label));
  const batch = shared.filter((label) => needed.has(label));
  const inner = shared.filter((label) => !needed.has(label));
  const rows = left.labels.filter((label) => !shared.includes(label));
  const columns = right.labels.filter((label) => !shared.includes(label));
  const labels = [...batch, ...rows, ...columns];
  const extent = (label: string) => {
    const axis = left.labels.indexOf(label);
    return axis >= 0 ? left.tensor.shape[axis]! : right.tensor.shape[right.labels.indexOf(label)]!;
  };
  const shapeOf = (list: readonly string[]) => list.map(extent);
  const size = (list: readonly string[]) => sizeOf(shapeOf(list));
  const groups = shapeOf(batch);
  if (inner.length === 0) {
    const stretched = columns.map(() => 1);
    const factors = [
      reshape(inOrder(left, [...batch, ...rows]), [...groups, ...shapeOf(rows), ...stretched]),
      reshape(inOrder(right, [...batch, ...columns]), [...groups, ...rows.map(() => 1), ...shapeOf(columns)]),
    ];
    return { tensor: elementwise("mul", factors), labels };
  }
  const transposeB = isOrder(right, [...batch, ...columns, ...inner]);
  const [m, k, n] = [size(rows), size(inner), size(columns)];
  const product = matmul(
    reshape(inOrder(left, [...batch, ...rows, ...inner]), [...groups, m, k]),
    reshape(transposeB ? right.tensor : inOrder(right, [...batch, ...inner, ...columns]), [
      ...groups,
      ...(transposeB ? [n, k] : [k, n]),
    ]),
    { transposeB },
  );
  return { tensor: reshape(product, shapeOf(labels)), labels };
}

const isOrder = ({ labels }: LabelledTensor, order: readonly string[]) =>
  order.every((label, i) => labels[i] === label);

function inOrder(x: LabelledTensor, order: readonly string[]): Tensor {
  if (isOrder(x, order)) return x.tensor;
  return diagonals(
    x.tensor,
    order.map((label) => [x.labels.indexOf(label)]),
  );
}
