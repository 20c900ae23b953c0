/** Calls of what stands between PyTorch's brackets: read, written in place, and put into a new tensor. Random shapes, indices and values. */
import { type CallInput, Random, type TorchCall } from "@opt/testkit";
import * as F from "../src/functions";
import type { Index } from "../src/ops";
import type { Tensor } from "../src/tensor/tensor";
import type { DType } from "../src/values/dtype";
import { isFloat } from "../src/values/dtype";
import { sizeOf } from "../src/values/shape";

type Shape = readonly number[];

/** One index: how Python writes it, and ours from the inputs that follow x and the value. */
interface Written {
  readonly python: string;
  of(tensors: readonly Tensor[]): Index;
}

const DTYPES = ["f64", "f64", "f32", "bf16", "f16", "i32", "u8", "bool"] as const;

/** `rounds` calls of each kind. The same seed gives the same calls. */
export function indexingCalls(seed: number, rounds: number): TorchCall[] {
  return Array.from({ length: rounds }, (_, round) => callsOf(new Random(seed + round), round)).flat();
}

/** Those whose answers are stored. Compiled functions can't read by a mask, whose count the host has to know. */
export function storedIndexingCalls(): TorchCall[] {
  return indexingCalls(7, 24).filter(({ name, inputs }) => !(name.includes(": at") && inputs.slice(2).some(isMask)));
}

const isMask = ({ dtype }: CallInput) => dtype === "bool";

function callsOf(random: Random, round: number): TorchCall[] {
  const int = (below: number) => random.below(below);
  const numbers = (shape: Shape, dtype: DType, requiresGrad = isFloat(dtype)): CallInput => ({
    values: Array.from({ length: sizeOf(shape) }, () =>
      dtype === "bool" ? int(2) : isFloat(dtype) ? int(200) / 8 - 12 : int(100),
    ),
    shape,
    dtype,
    requiresGrad,
  });
  const dtype = random.pick(DTYPES);
  const shape = Array.from({ length: 1 + int(4) }, () => (int(14) === 0 ? 0 : 1 + int(4)));
  const batch = Array.from({ length: int(3) }, () => 1 + int(3));
  const tensors: CallInput[] = [];
  const letter = () => "cdefgh"[tensors.length - 1];

  const range = (extent: number): Written => {
    const end = () => (int(3) === 0 ? null : int(extent + 3) - (int(2) === 0 ? extent + 1 : 0) || 0);
    const given = [end(), end(), int(2) === 0 ? null : 1 + int(3)] as const;
    return { python: given.map((each) => each ?? "").join(":"), of: () => given };
  };
  const positions = (extent: number): Written => {
    const own = batch.map((e) => (int(4) === 0 ? 1 : e)).slice(int(4) === 0 ? int(batch.length + 1) : 0);
    const start = int(extent);
    const values = Array.from({ length: sizeOf(own) }, (_, i) => ((start + i) % extent) - (int(3) === 0 ? extent : 0));
    tensors.push({ values, shape: own, dtype: "i32" });
    const at = tensors.length - 1;
    return { python: letter()!, of: (given) => given[at]! };
  };
  const mask = (extents: Shape): Written => {
    tensors.push(numbers(extents, "bool"));
    const at = tensors.length - 1;
    return { python: letter()!, of: (given) => given[at]! };
  };

  const index: Written[] = [];
  const hasMask = int(4) === 0;
  const depth = int(shape.length + 1);
  for (let axis = 0; axis < depth; ) {
    const extent = shape[axis]!;
    const kind = int(5);
    if (hasMask && tensors.length === 0 && int(2) === 0) {
      const covered = 1 + int(depth - axis);
      index.push(mask(shape.slice(axis, axis + covered)));
      axis += covered;
      continue;
    }
    if (kind === 0) index.push({ python: ":", of: () => null });
    else if (kind === 1 && extent > 0) {
      const place = int(extent) - (int(2) === 0 ? extent : 0) || 0;
      index.push({ python: String(place), of: () => place });
    } else if (kind > 2 && !hasMask && extent > 0) index.push(positions(extent));
    else index.push(range(extent));
    axis++;
  }
  const python = index.length === 0 ? "..." : `(${index.map((each) => sliced(each.python)).join(", ")},)`;
  const given = (rest: readonly Tensor[]) => index.map((each) => each.of(rest));
  const isMasked = tensors.some((each) => each.dtype === "bool");

  const calls: TorchCall[] = [];
  const add = (name: string, inputs: CallInput[], code: string, run: TorchCall["run"], second: boolean) => {
    const title = `${round}: ${name} ${index.map((each) => each.python).join(", ")} of ${inputs.map((each) => `${each.dtype} [${each.shape}]`).join(", ")}`;
    calls.push({ name: title, inputs, code, run, second });
  };
  const x = numbers(shape, dtype);
  const chosen = shapeOf(shape, index, tensors);
  const fit = chosen.map((extent) => (int(4) === 0 ? 1 : extent)).slice(int(3) === 0 ? int(chosen.length + 1) : 0);
  const value = numbers(int(8) === 0 ? [1, ...fit] : fit, dtype);
  const second = isFloat(dtype);
  // The value is an input here, too, so that the letters of the tensors are alike.
  add(
    "at",
    [x, numbers([], dtype, false), ...tensors],
    `a[${python}].clone()`,
    (a, _, ...rest) => F.at(a!, ...given(rest)),
    second,
  );
  const put = (name: string, inputs: CallInput[], code: string, run: TorchCall["run"]) =>
    add(name, [...inputs, ...tensors], code, run, second);
  put(
    "assign",
    [x, value],
    `y = a * 1 if a.is_floating_point() else a.clone();;y[${python}] = b;;y`,
    (a, b, ...rest) => {
      const y = isFloat(dtype) ? a!.mul(1) : a!.clone();
      y.assign(given(rest), b!);
      return y;
    },
  );
  put(
    "assign a constant and read",
    [x, { ...value, requiresGrad: false }],
    `y = a * 1 if a.is_floating_point() else a.clone();;y[${python}] = 3 if a.dtype != torch.bool else True;;y${isMasked ? "" : `, y[${python}].clone()`}`,
    (a, _, ...rest) => {
      const y = isFloat(dtype) ? a!.mul(1) : a!.clone();
      y.assign(given(rest), dtype === "bool" ? true : 3);
      return isMasked ? y : [y, F.at(y, ...given(rest))];
    },
  );
  put(
    "assign into what needs no gradient",
    [{ ...x, requiresGrad: false }, value],
    `y = a.clone();;y[${python}] = b;;y`,
    (a, b, ...rest) => {
      const y = a!.clone();
      y.assign(given(rest), b!);
      return y;
    },
  );
  put("indexPut", [x, value], `y = a.clone();;y[${python}] = b;;y`, (a, b, ...rest) => F.indexPut(a!, given(rest), b!));
  if (tensors.length > 0 && dtype !== "bool")
    put("indexPut accumulate", [x, value], accumulated(python), (a, b, ...rest) =>
      F.indexPut(a!, given(rest), b!, { accumulate: true }),
    );
  return calls;
}

/** Ranges are slices outside of brackets. */
function sliced(text: string): string {
  if (!text.includes(":")) return text;
  return `slice(${text
    .split(":")
    .map((part) => part || "None")
    .concat("None", "None")
    .slice(0, 3)
    .join(", ")})`;
}

/** Each place of x by its number: so PyTorch's index_put adds where brackets would write. */
const accumulated = (python: string) =>
  `n = torch.arange(a.numel()).reshape(a.shape)[${python}];;a.reshape(-1).index_put((n.reshape(-1),), b.expand(n.shape).reshape(-1) if b.dim() <= n.dim() else b.reshape(b.shape[b.dim() - n.dim():]).expand(n.shape).reshape(-1), accumulate=True).reshape(a.shape)`;

/** The shape that the index chooses, as PyTorch has it: for values that fit. */
function shapeOf(shape: Shape, index: readonly Written[], tensors: readonly CallInput[]): number[] {
  const wide: { at: number; shape: Shape }[] = [];
  const rest: { axis: number; extent: number }[] = [];
  let axis = 0;
  let used = 0;
  for (const { python } of index) {
    if (/^[c-h]$/.test(python)) {
      const tensor = tensors[used++]!;
      const isMask = tensor.dtype === "bool";
      const count = Array.from(tensor.values).filter((each) => each !== 0).length;
      if (isMask || tensor.shape.length > 0) wide.push({ at: axis, shape: isMask ? [count] : tensor.shape });
      axis += isMask ? tensor.shape.length : 1;
    } else if (python.includes(":")) {
      const [start, end, step] = python.split(":").map((part) => (part ? Number(part) : undefined));
      const extent = shape[axis]!;
      const cut = (place: number) => Math.min(Math.max(place < 0 ? place + extent : place, 0), extent);
      const length = Math.max(cut(end ?? extent) - cut(start ?? 0), 0);
      rest.push({ axis, extent: Math.ceil(length / (step ?? 1)) });
      axis++;
    } else axis++;
  }
  for (; axis < shape.length; axis++) rest.push({ axis, extent: shape[axis]! });
  if (wide.length === 0) return rest.map(({ extent }) => extent);
  const rank = Math.max(...wide.map((each) => each.shape.length));
  const batch = Array.from({ length: rank }, (_, i) => {
    const extents = wide.map((each) => each.shape.at(i - rank) ?? 1);
    return extents.find((extent) => extent !== 1) ?? 1;
  });
  const [first, last] = [wide[0]!.at, wide.at(-1)!.at];
  const isSplit = rest.some((each) => each.axis > first && each.axis < last);
  const before = isSplit ? 0 : rest.filter((each) => each.axis < first).length;
  const extents = rest.map(({ extent }) => extent);
  return [...extents.slice(0, before), ...batch, ...extents.slice(before)];
}
