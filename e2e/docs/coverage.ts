/** Which operations each device has in which dtypes: tried beside the js device, and written as a table. */
import * as core from "@opt/core";
import { type Device, type DType, OptError, type Tensor, tensor } from "@opt/core";
import * as nn from "@opt/nn";
import {
  argumentsOf,
  compareNumbers,
  type Definition,
  definitionsIn,
  operandsOf,
  resultsOf,
  type Tolerance,
} from "@opt/testkit";

const DTYPES = ["f32", "f64", "bf16", "f16", "i32", "u8", "bool", "c64"] as const satisfies readonly DType[];

/** Makes operands of one dtype on one device. */
interface Operands {
  readonly dtype: DType;
  /** [2, 3]; `y` has its shape. */
  readonly x: Tensor;
  readonly y: Tensor;
  /** [2, 2], positive definite. */
  readonly square: Tensor;
  /** [1, 2, 3, 3] and weights [2, 2, 2, 2]. */
  readonly images: Tensor;
  readonly weights: Tensor;
  /** From 0 to 1, [2, 3]. */
  readonly shares: Tensor;
  /** [2, 3] of bool. */
  readonly mask: Tensor;
  /** i32. */
  readonly labels: Tensor;
  index(values: readonly number[], shape: readonly number[]): Tensor;
  /** In the dtype. */
  of(values: readonly number[], shape: readonly number[]): Tensor;
}

type Result = Tensor | readonly Tensor[] | Promise<Tensor>;
type Operation = (operands: Operands) => Result;

const ofTwo = (names: string) =>
  each(
    names,
    (name) =>
      ({ x, y }) =>
        call(name, x, y),
  );

function each(names: string, operation: (name: string) => Operation): Record<string, Operation> {
  return Object.fromEntries(names.split(" ").map((name) => [name, operation(name)]));
}

const FUNCTIONS = { ...core, ...nn } as unknown as Readonly<Record<string, (...given: unknown[]) => Tensor>>;
const call = (name: string, ...given: unknown[]): Tensor => FUNCTIONS[name]!(...given);

const DEFINITIONS = definitionsIn(core);

/** A call as a definition gives it. */
function definedCall(definition: Definition): Operation {
  const { name, domain } = definition;
  return ({ of, index, mask, x, y, shares }) => {
    const operands = operandsOf(definition).map(({ kind, any, letters }, i) => {
      const isPlain = any !== "none" && letters === "";
      const shape = isPlain ? [2, 3] : [...letters].map((letter) => Number(letter) || 2);
      const size = shape.reduce((a, b) => a * b, 1);
      const values = Array.from({ length: size }, (_, place) => place % (kind === "numbers" ? 3 : 2));
      if (kind === "mask") return isPlain ? mask : index(values, shape).to("bool");
      if (kind === "indices") return index(values, shape);
      if (!isPlain) return of(values, shape);
      return domain === undefined ? (i === 1 ? y : x) : shares;
    });
    return resultsOf(call(name, ...argumentsOf(definition, operands, { axis: 1, flag: true })));
  };
}

/** By their definitions. */
const defined = (names: string) =>
  Object.fromEntries(names.split(" ").map((name) => [name, definedCall(DEFINITIONS.get(name)!)]));

/** Operations on tensors, by the heading of their rows: what has a definition needs no call here. */
const BY_HEADING: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  arithmetic: {
    ...defined("add sub mul div maximum minimum neg abs square fma lerp clamp"),
    pow: ({ x }) => core.pow(x, 2),
    where: ({ x, y, mask }) => core.where(mask, x, y),
    maskedFill: ({ x, mask }) => core.maskedFill(x, mask, 1),
  },
  comparisons: defined("less lt le gt ge eq ne logicalAnd logicalOr isnan isfinite logicalNot all any"),
  functions: defined("exp expm1 tanh erf sin cos sigmoid floor ceil round sign sqrt rsqrt log log1p logaddexp"),
  activations: {
    ...defined("relu gelu silu selu relu6 hardswish mish logsigmoid softplus elu hardtanh leakyRelu prelu glu"),
    ...defined("softmax logSoftmax"),
  },
  reductions: {
    ...defined("sum mean max min argmax argmin prod norm std logsumexp cumsum cumprod logcumsumexp median quantile"),
    var: ({ x }) => core.variance(x, 1),
  },
  order: defined("sort argsort topk"),
  products: {
    ...defined("matmul outer vdot kron cross tensordot cdist"),
    einsum: ({ x, y }) => [core.einsum("ij,kj->ik", x, y), core.einsum("ij->j", x)],
    cholesky: ({ square }) => core.cholesky(square),
    choleskySolve: ({ square }) => core.choleskySolve(square, square),
    solve: ({ square }) => core.solve(square, square),
    ...each(
      "inverse det logdet",
      (name) =>
        ({ square }) =>
          call(name, square),
    ),
    slogdet: ({ square }) => Object.values(core.slogdet(square)),
    triangularSolve: ({ square }) => core.triangularSolve(square, square),
  },
  factors: {
    ...each(
      "qr eigh svd lu",
      (name) =>
        ({ square }) =>
          Object.values(call(name, square)),
    ),
    ...each(
      "eigvalsh svdvals pinv matrixNorm matrixExp",
      (name) =>
        ({ square }) =>
          call(name, square),
    ),
    matrixPower: ({ square }) => core.matrixPower(square, 2),
    lstsq: ({ square }) => core.lstsq(square, square).solution,
  },
  "Fourier transforms": {
    ...each(
      "fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn fftshift ifftshift",
      (name) =>
        ({ x }) =>
          call(name, x),
    ),
  },
  "complex numbers": {
    ...each(
      "real imag conj angle complexAbs",
      (name) =>
        ({ x }) =>
          call(name, x),
    ),
    ...ofTwo("complex polar complexMul"),
    complexEinsum: ({ x, y }) => core.complexEinsum("ij,ij->i", x, y),
  },
  shapes: {
    ...defined("reshape flatten squeeze unsqueeze slice select at split chunk permute transpose expand stack"),
    ...defined("repeat roll flip tril triu unbind repeatInterleave rot90 diag meshgrid trace"),
    concat: ({ x, y }) => core.concat([x, y], 1),
    pad: ({ x }) => core.pad(x, [1, 0], { value: 1 }),
  },
  indices: {
    ...defined("gather gatherAlong scatter scatterAdd indexAdd indexPut"),
    maskedSelect: ({ x, mask }) => core.maskedSelect(x, mask),
    nonzero: ({ x }) => core.nonzero(x),
    unique: async ({ x }) => (await core.unique(x)).values,
    bincount: ({ of }) => core.bincount(of([2, 0, 2], [3])),
  },
  images: {
    ...defined("unfold conv2d convTranspose2d maxPool2d avgPool2d adaptiveAvgPool2d"),
    interpolate: ({ images }) => nn.interpolate(images, { size: 4 }),
    "interpolate, bilinear": ({ images }) => nn.interpolate(images, { size: 5, mode: "bilinear" }),
  },
  "norms and losses": {
    layerNorm: ({ x, of }) => core.layerNorm(x, of([1, 1, 1], [3])),
    normalize: ({ x }) => nn.normalize(x),
    crossEntropy: ({ x, labels }) => nn.crossEntropy(x, labels),
    nllLoss: ({ x, labels }) => nn.nllLoss(x, labels),
    ...ofTwo("mseLoss l1Loss smoothL1Loss huberLoss cosineSimilarity pairwiseDistance"),
    bceWithLogits: ({ x, shares }) => nn.bceWithLogits(x, shares),
    binaryCrossEntropy: ({ shares }) => nn.binaryCrossEntropy(shares, shares),
    scaledDotProductAttention: ({ images }) => nn.scaledDotProductAttention(images, images, images),
  },
  making: {
    clone: ({ x }) => x.clone(),
    zerosLike: ({ x }) => core.zerosLike(x),
    onesLike: ({ x }) => core.onesLike(x),
    set: ({ x, y }) => {
      const z = x.clone();
      z.set(y);
      return z;
    },
    "to, from f32": ({ dtype, of }) => of([0, 1, 3.75, 2], [4]).to("f32").to(dtype),
    bernoulli: ({ shares }) => core.bernoulli(shares, { generator: new core.Generator(1) }),
    multinomial: ({ shares }) => core.multinomial(shares, 2, { generator: new core.Generator(1) }),
  },
};

/** All of them: definitions that are in no heading stand behind the functions. */
export const OPERATIONS: Readonly<Record<string, Readonly<Record<string, Operation>>>> = (() => {
  const known = new Set(Object.values(BY_HEADING).flatMap((group) => Object.keys(group)));
  const others = [...DEFINITIONS.keys()].filter((name) => !known.has(name) && !["variance", "oneHot"].includes(name));
  return { ...BY_HEADING, functions: { ...BY_HEADING.functions, ...defined(others.join(" ")) } };
})();

/** Numbers that a dtype has and others round or wrap: of i32 beyond what float32 holds. */
const VALUES: Readonly<Record<DType, readonly number[]>> = {
  ...(Object.fromEntries(
    ["f32", "f64", "bf16", "f16", "c64"].map((dtype) => [dtype, [-1.5, 2, 0.25, 0, 3, -0.75, 1, 5]]),
  ) as Record<"f32" | "f64" | "bf16" | "f16" | "c64", number[]>),
  i32: [-3, 2, 16777217, 0, 40, -16777219, 1, 5],
  u8: [200, 2, 0, 255, 7, 100, 1, 5],
  bool: [1, 0, 1, 1, 0, 1, 0, 1],
};

function operandsOn(device: Device, dtype: DType): Operands {
  const numbers = (values: readonly number[], shape: readonly number[], as: DType) => {
    if (as !== "c64") return tensor([...values], { shape, dtype: as, device });
    const parts = values.flatMap((value, i) => [value, i]);
    return core.viewAsComplex(tensor(parts, { shape: [...shape, 2], device }));
  };
  const of = (values: readonly number[], shape: readonly number[]) => numbers(values, shape, dtype);
  const from = (start: number, shape: readonly number[]) => {
    const size = shape.reduce((a, b) => a * b, 1);
    const given = VALUES[dtype];
    return of(
      Array.from({ length: size }, (_, i) => given[(i + start) % given.length]!),
      shape,
    );
  };
  return {
    dtype,
    of,
    index: (values, shape) => numbers(values, shape, "i32"),
    x: from(0, [2, 3]),
    y: from(3, [2, 3]),
    square: dtype === "bool" ? of([1, 0, 0, 1], [2, 2]) : of([4, 1, 1, 3], [2, 2]),
    images: from(1, [1, 2, 3, 3]),
    weights: from(5, [2, 2, 2, 2]),
    shares: of(
      ["f32", "f64", "bf16", "f16"].includes(dtype) ? [0.5, 0.25, 1, 0.75, 0.125, 0.5] : [1, 0, 1, 1, 1, 0],
      [2, 3],
    ),
    mask: numbers([1, 0, 1, 0, 0, 1], [2, 3], "bool"),
    labels: numbers([2, 0], [2], "i32"),
  };
}

/** What an operation gave: numbers with their dtypes, or why it gave none. */
type Outcome = { readonly dtypes: string; readonly values: readonly ArrayLike<number>[] } | OptError;

async function outcomeOf(device: Device, dtype: DType, run: Operation): Promise<Outcome> {
  try {
    const result = run(operandsOn(device, dtype));
    const list = await Promise.all([result].flat() as (Tensor | Promise<Tensor>)[]);
    const values = await Promise.all(list.map((each) => each.data()));
    return { dtypes: list.map((each) => each.dtype).join(), values };
  } catch (error) {
    if (error instanceof OptError && ["UNSUPPORTED", "BAD_DTYPE"].includes(error.code)) return error;
    throw error;
  }
}

/** Of f64 no device promises js' bits. */
const EXACT: Readonly<Partial<Record<string, Tolerance>>> = { f64: { absolute: 1e-14, relative: 1e-13 } };
/** Other devices differ from js by this: 16-bit results by a rounding. */
const INEXACT: typeof EXACT = {
  ...EXACT,
  f32: { absolute: 1e-6, relative: 1e-5 },
  c64: { absolute: 1e-6, relative: 1e-5 },
  f16: { absolute: 2 ** -14, relative: 2 ** -10 },
  bf16: { absolute: 2 ** -14, relative: 2 ** -7 },
};

/** By operation, the dtypes that a device has. `faults`: what differs from js, or is rejected without naming operation, dtype and cure. */
export interface Coverage {
  readonly cells: Readonly<Record<string, readonly DType[]>>;
  readonly faults: readonly string[];
}

/** What js gives, by operation and dtype: each device is compared with it. */
const OF_JS = new Map<string, Awaited<ReturnType<typeof outcomeOf>>>();

export async function coverageOf(device: Device, js: Device): Promise<Coverage> {
  const cells: Record<string, DType[]> = {};
  const faults: string[] = [];
  for (const [name, run] of Object.values(OPERATIONS).flatMap((group) => Object.entries(group))) {
    cells[name] = [];
    for (const dtype of DTYPES) {
      const key = `${name} ${dtype}`;
      const right = OF_JS.get(key) ?? (await outcomeOf(js, dtype, run));
      OF_JS.set(key, right);
      const found = await outcomeOf(device, dtype, run);
      const fault = (text: string) => faults.push(`${name} of ${dtype} on ${device.name}: ${text}`);
      if (found instanceof OptError) {
        const [word] = name.split(",");
        const isNamed =
          found.message.startsWith(`[${word}]`) && / (f32|f64|c64|i32|u8|bool|f16|bf16)\b/.test(found.message);
        if (!isNamed || !/[.?!] [A-Z].*\.$/.test(found.message)) fault(found.message);
      } else if (right instanceof OptError) fault(`js says ${right.message}`);
      else {
        cells[name]!.push(dtype);
        if (found.dtypes !== right.dtypes) fault(`gives ${found.dtypes}, js ${right.dtypes}`);
        found.dtypes.split(",").forEach((as, i) => {
          const tolerance = (device.portable ? EXACT : INEXACT)[as] ?? "bits";
          const { agrees, message } = compareNumbers(found.values[i]!, right.values[i]!, tolerance);
          if (!agrees) fault(message);
        });
      }
    }
  }
  return { cells, faults };
}

const shown = (dtypes: readonly DType[]): string =>
  dtypes.length === DTYPES.length ? "all" : dtypes.length === 0 ? "none" : dtypes.join(" ");

/** The page's tables: operations of one heading with the same cells share a row. `columns`: the cells of each device. */
export function coverageTables(columns: Readonly<Record<string, Coverage["cells"]>>): string {
  const devices = Object.keys(columns);
  const tables = Object.entries(OPERATIONS).map(([heading, operations]) => {
    const rows = new Map<string, string[]>();
    for (const name of Object.keys(operations)) {
      const cells = devices.map((device) => shown(columns[device]![name]!)).join(" | ");
      rows.set(cells, [...(rows.get(cells) ?? []), name]);
    }
    const lines = [...rows].map(([cells, names]) => `| ${names.map((name) => `\`${name}\``).join(", ")} | ${cells} |`);
    const title = heading[0]!.toUpperCase() + heading.slice(1);
    return [`| ${title} | ${devices.join(" | ")} |`, `|${"---|".repeat(devices.length + 1)}`, ...lines].join("\n");
  });
  return tables.join("\n\n");
}

/** The cells of each device by operation, as the page has them. */
export function coverageIn(page: string): Record<string, Record<string, string>> {
  const columns: Record<string, Record<string, string>> = {};
  let devices: readonly string[] = [];
  for (const line of page.split("\n").filter((line) => line.startsWith("|"))) {
    const [first, ...cells] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()) as [string, ...string[]];
    const names = [...first.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    if (names.length === 0 && !first.startsWith("-")) devices = cells;
    for (const [i, device] of devices.entries()) {
      columns[device] ??= {};
      for (const name of names) columns[device][name] = cells[i]!;
    }
  }
  return columns;
}

/** As the page shows them. */
export const cellsOf = ({ cells }: Coverage): Record<string, string> =>
  Object.fromEntries(Object.entries(cells).map(([name, dtypes]) => [name, shown(dtypes)]));
