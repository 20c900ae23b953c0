// Ops against PyTorch: dtypes, shapes, values and gradients, with NaN, infinities, ties, empty and 0-dimensional tensors.
import {
  askTorch,
  type CallInput,
  expectAnswer,
  Random,
  type TorchCall,
  torchPython,
  withoutTorch,
} from "@opt/testkit";
import { describe, it } from "vitest";
import * as F from "../functions";
import { eq, ge, gt, le, lt, ne } from "../functions";
import { arange } from "../ranges";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import { sizeOf } from "../values/shape";
import { concat } from "./index";

const random = new Random(7);
const FLOATS = ["f32", "f64", "f16", "bf16"] as const;
const INTEGERS = ["i32", "u8", "bool"] as const;
const EDGES = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0];

/** Quarters with ties, which every dtype holds; `edges` are put among them. */
function input(shape: readonly number[], dtype: DType, { edges = false, requiresGrad = false } = {}): CallInput {
  const whole = (INTEGERS as readonly string[]).includes(dtype);
  const low = dtype === "u8" || dtype === "bool" ? 0 : -6;
  const values = Array.from({ length: sizeOf(shape) }, () => {
    if (edges && random.below(3) === 0) return random.pick(EDGES);
    const number = low + random.below(dtype === "bool" ? 2 : 13);
    return whole ? number : number / 4;
  });
  return { values, shape, dtype, requiresGrad };
}

const COMPARE = { eq, ne, lt, le, gt, ge };
const SHAPES = [[2, 3], [3], [], [2, 0], [1, 3], [2, 1]] as const;
const calls: TorchCall[] = [];
const add = (name: string, inputs: CallInput[], code: string, run: TorchCall["run"]) =>
  calls.push({
    name: `${name} of ${inputs.map(({ shape, dtype }) => `${dtype} [${shape}]`).join(", ")}`,
    inputs,
    code,
    run,
  });

for (const dtype of [...FLOATS, ...INTEGERS]) {
  const isFloat = (FLOATS as readonly string[]).includes(dtype);
  const edged = { edges: isFloat };
  const trained = { requiresGrad: isFloat };
  // PyTorch takes numbers below 0 modulo 256 where u8 meets them, and rejects those above.
  const other = dtype === "u8" ? "u8" : random.pick([...FLOATS, ...INTEGERS]);
  const least = dtype === "u8" ? 0 : -1;
  for (const op of ["eq", "ne", "lt", "le", "gt", "ge"] as const) {
    add(op, [input([2, 3], dtype, edged), input([3], other)], `a.${op}(b)`, (a, b) => a[op](b));
    add(op, [input([4], dtype, edged), input([], other)], `a.${op}(b)`, (a, b) => COMPARE[op](a, b));
    const number = random.pick([0.1, 1, 2.5, least, 0]);
    add(`${op} ${number}`, [input([2, 3], dtype, edged)], `a.${op}(${number})`, (a) => a[op](number));
  }
  for (const shape of SHAPES) {
    const axes = shape.map((_, i) => i);
    const axis = axes.length === 0 ? undefined : random.pick(axes);
    for (const [name, their] of [
      ["min", "amin"],
      ["max", "amax"],
    ] as const) {
      const dims = axis === undefined ? "()" : axis;
      if (shape.length === 0) continue;
      add(
        `${name} over ${axis}`,
        [input(shape, dtype, { ...edged, ...trained })],
        `torch.${their}(a, ${dims}, keepdim=True)`,
        (a) => a[name](axis, true),
      );
    }
    if (dtype !== "bool" && axis !== undefined) {
      add(`argmin over ${axis}`, [input(shape, dtype, edged)], `torch.argmin(a, ${axis})`, (a) => a.argmin(axis));
    }
    if (dtype !== "bool") {
      const [low, high] = [random.pick([least, 0.25, 0, 1]), random.pick([1, 0.75, 2])];
      add(`clamp ${low} ${high}`, [input(shape, dtype, { ...edged, ...trained })], `a.clamp(${low}, ${high})`, (a) =>
        a.clamp(low, high),
      );
      add(`clamp ${low}`, [input(shape, dtype, { ...edged, ...trained })], `a.clamp(${low})`, (a) => a.clamp(low));
      add(`clamp to ${high}`, [input(shape, dtype, { ...edged, ...trained })], `a.clamp(max=${high})`, (a) =>
        F.clamp(a, null, high),
      );
    }
    add(
      "where",
      [input([2, 3], "bool"), input(shape.includes(0 as never) ? [] : shape, dtype, trained), input([], other)],
      "torch.where(a, b, c)",
      (a, b, c) => F.where(a, b, c),
    );
    add("where with a number", [input(shape, "bool"), input(shape, dtype, trained)], "torch.where(a, b, 2)", (a, b) =>
      F.where(a, b, 2),
    );
    add("maskedFill", [input(shape, dtype, trained), input(shape, "bool")], "a.masked_fill(b, 1)", (a, b) =>
      F.maskedFill(a, b, 1),
    );
    add("squeeze", [input(shape, dtype, trained)], "a.squeeze()", (a) => a.squeeze());
    add("unsqueeze", [input(shape, dtype, trained)], "a.unsqueeze(-1)", (a) => a.unsqueeze(-1));
    add("expand", [input(shape, dtype, trained)], `a.expand(2, ${shape.map(() => -1)})`.replace(", )", ")"), (a) =>
      a.expand([2, ...shape.map(() => -1)]),
    );
    if (shape.length > 0) {
      const of = axis!;
      add(`stack at ${of}`, [input(shape, dtype, trained), input(shape, dtype)], `torch.stack([a, b], ${of})`, (a, b) =>
        F.stack([a, b], of),
      );
      add(`split along ${of}`, [input(shape, dtype, trained)], `a.split(2, ${of})`, (a) => F.split(a, 2, of));
      add(`cumsum along ${of}`, [input(shape, dtype, trained)], `a.cumsum(${of})`, (a) => F.cumsum(a, of));
      add("pad", [input(shape, dtype, trained)], "F.pad(a, (2, 1), value=1)", (a) => F.pad(a, [2, 1], { value: 1 }));
      const indices = input(shape, "u8");
      const chosen = {
        ...indices,
        dtype: "i32",
        values: Array.from(indices.values, (v) => v % Math.max(shape[of]!, 1)),
      } as const;
      add(`gather along ${of}`, [input(shape, dtype, trained), chosen], `a.gather(${of}, b.long())`, (a, b) =>
        F.gatherAlong(a, b, of),
      );
      const largest = random.below(2) === 0;
      const k = Math.min(2, shape[of]!);
      // Among equals PyTorch chooses as it likes.
      if (dtype === "bool") continue;
      add(
        `topk along ${of}`,
        [{ ...input(shape, dtype, edged), requiresGrad: false }],
        `a.topk(${k}, ${of}, ${largest ? "True" : "False"}).values`,
        (a) => F.topk(a, k, of, { largest }).values,
      );
    }
    if (isFloat) {
      for (const name of ["var", "std"] as const) {
        const correction = random.pick([0, 1]);
        const keeps = { requiresGrad: (shape[axis ?? 0] ?? 1) > correction };
        add(
          `${name} less ${correction}`,
          [input(shape, dtype, keeps)],
          `a.${name}(${shape.length === 0 ? "" : `dim=${axis}, `}correction=${correction})`,
          (a) => a[name](axis, { correction }),
        );
        add(name, [input(shape, dtype, trained)], `a.${name}()`, (a) => a[name]());
      }
      for (const p of [2, 1, 0, 3, 0.5, -1, Infinity, -Infinity]) {
        const their = String(p).replace("Infinity", "inf");
        const dim = axis === undefined ? "" : `, ${axis}`;
        const keeps = { requiresGrad: p !== 0 };
        add(`norm ${p}`, [input(shape, dtype, keeps)], `a.norm(${their}${dim})`, (a) => a.norm(p, axis));
      }
    }
  }
  for (const [start, end] of [
    [0, -1],
    [1, 2],
    [-2, -1],
    [1, 1],
  ] as const)
    add(`flatten ${start} to ${end}`, [input([2, 3, 4], dtype, trained)], `a.flatten(${start}, ${end})`, (a) =>
      F.flatten(a, start, end),
    );
  if (dtype !== "bool") add("round", [input([3, 7], dtype, trained)], "a.round()", (a) => F.round(a));
  for (const decimals of isFloat ? [1, 3, -1] : [])
    add(`round to ${decimals}`, [input([3, 7], dtype, trained)], `a.round(decimals=${decimals})`, (a) =>
      F.round(a, { decimals }),
    );
  if (dtype !== "u8") {
    add("any", [input([3, 2, 2], dtype)], "a.any(1, keepdim=True)", (a) => F.any(a, 1, true));
    add("all", [input([3, 2, 2], dtype)], "a.all(1, keepdim=True)", (a) => F.all(a, 1, true));
  }
  for (const diagonal of [0, 1, -2]) {
    add(`tril ${diagonal}`, [input([2, 3, 4], dtype, trained)], `a.tril(${diagonal})`, (a) => F.tril(a, diagonal));
    add(`triu ${diagonal}`, [input([4, 3], dtype, trained)], `a.triu(${diagonal})`, (a) => F.triu(a, diagonal));
  }
  add("pad and cut", [input([3, 4], dtype, trained)], "F.pad(a, (-1, 2, 1, -2), value=3)", (a) =>
    F.pad(a, [-1, 2, 1, -2], { value: dtype === "bool" ? 1 : 3 }),
  );
  add("maskedFill with a fraction", [input([3], dtype), input([2, 3], "bool")], "a.masked_fill(b, 2.5)", (a, b) =>
    F.maskedFill(a, b, 2.5),
  );
  if (dtype !== "u8")
    add("where of what is no bool", [input([3], dtype)], "torch.where(a, a, a)", (a) => F.where(a, a, a));
  if (dtype === "bool") {
    for (const op of ["add", "mul"] as const)
      add(op, [input([4], dtype), input([2, 1], dtype)], `a.${op}(b)`, (a, b) => a[op](b));
    add("maximum", [input([4], dtype), input([2, 1], dtype)], "torch.maximum(a, b)", (a, b) => a.maximum(b));
  }
}
for (const dtype of FLOATS) {
  const far = { values: [-100, -20, -3, -0.5, 0, 1.5, 19, 21, 200], shape: [9], dtype, requiresGrad: true } as const;
  add("silu", [far], "F.silu(a)", (a) => F.silu(a));
  add("gelu by tanh", [far], "F.gelu(a, approximate='tanh')", (a) => F.gelu(a, { approximate: "tanh" }));
  add("leakyRelu", [far], "F.leaky_relu(a, 0.1)", (a) => F.leakyRelu(a, 0.1));
  add("softplus", [far], "F.softplus(a)", (a) => F.softplus(a));
  add("softplus with beta", [far], "F.softplus(a, 0.5, 5)", (a) => F.softplus(a, 0.5, 5));
}
add(
  "clamp by tensors",
  [
    input([3, 4], "f32", { edges: true, requiresGrad: true }),
    input([4], "f32", { requiresGrad: true }),
    input([3, 1], "f32", { requiresGrad: true }),
  ],
  "a.clamp(b, c)",
  (a, b, c) => a.clamp(b, c),
);
add("clamp by NaN", [input([3], "f32")], "a.clamp(nan, 1)", (a) => a.clamp(Number.NaN, 1));
add("clamp of nothing", [input([3], "f32")], "a.clamp()", (a) => a.clamp());
add(
  "norms of zeros",
  [{ values: [0, 0], shape: [2], dtype: "f32", requiresGrad: true }],
  "[a.norm(p) for p in (2, 1, 3, 0.5, -1, inf)]",
  (a) => [2, 1, 3, 0.5, -1, Infinity].map((p) => a.norm(p)),
);
add("std of equals", [{ values: [2, 2], shape: [2], dtype: "f32", requiresGrad: true }], "a.std()", (a) => a.std());
add("oneHot", [{ values: [2, 0, 3], shape: [3, 1], dtype: "i32" }], "F.one_hot(a.long(), 4)", (a) => F.oneHot(a, 4));
add("oneHot out of range", [{ values: [4], shape: [1], dtype: "i32" }], "F.one_hot(a.long(), 4)", (a) =>
  F.oneHot(a, 4),
);
add("squeeze of axes", [input([1, 2, 1], "f32")], "a.squeeze((0, 1))", (a) => a.squeeze([0, 1]));
add("split by sizes", [input([4], "f32", { requiresGrad: true })], "a.split([1, 0, 3])", (a) => F.split(a, [1, 0, 3]));
add("split by wrong sizes", [input([4], "f32")], "a.split([1, 2])", (a) => F.split(a, [1, 2]));
add("split of 0", [input([4], "f32")], "a.split(0)", (a) => F.split(a, 0));
add("split of nothing", [input([0], "f32")], "a.split(2)", (a) => F.split(a, 2));
add("topk of too many", [input([2], "f32")], "a.topk(3).values", (a) => F.topk(a, 3).values);
add(
  "topk with its gradient",
  [{ values: [3, 1, 2, 5], shape: [4], dtype: "f32", requiresGrad: true }],
  "list(a.topk(3))",
  (a) => Object.values(F.topk(a, 3)) as Tensor[],
);
add("stack of other shapes", [input([2], "f32"), input([3], "f32")], "torch.stack([a, b])", (a, b) => F.stack([a, b]));
add("expand of what does not fit", [input([2], "f32")], "a.expand(3)", (a) => a.expand([3]));
for (const [args, code] of [
  [[5], "5"],
  [[2, 9, 3], "2, 9, 3"],
  [[5, 0, -2], "5, 0, -2"],
  [[0, 1, 0.3], "0, 1, 0.3"],
  [[3, 3], "3, 3"],
  [[3, 0], "3, 0"],
  [[0, 1, 0], "0, 1, 0"],
] as const) {
  add(`arange ${args}`, [], `torch.arange(${code})`, () => (arange as (...numbers: number[]) => Tensor)(...args));
}
add(
  "a cumsum over the edge",
  [{ values: [2 ** 31 - 1, 1, 1], shape: [3], dtype: "i32" }],
  "a.cumsum(0).to(torch.int32)",
  (a) => F.cumsum(a, 0),
);
add("a long cumsum", [input([1000], "f64", { requiresGrad: true })], "a.cumsum(0)", (a) => F.cumsum(a, 0));
add("concat of stacked", [input([2, 2], "bf16", { requiresGrad: true })], "torch.cat([a, a])", (a) => concat([a, a]));

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
