import { crossEntropyGradRows, type Kind, layerNormRows, type Spec } from "@opt/core/backend";
import { expect, it } from "vitest";
import { copy } from "./copy";
import { gather } from "./gather";
import { matmul, unfold } from "./of-ops";
import { reduce } from "./reduce/reduce";
import { sumSquares } from "./reduce/sum-squares";
import { rows } from "./rows";
import { input, output, runKernel, seeded } from "./run-kernel";
import { scatterAdd } from "./scatter-add";

const x = input("f32", seeded(1027, 1));
const indices = input("i32", [1, 0, 2, 1]);
const window = { batch: 1, channels: 1, height: 13, width: 79, outHeight: 13, outWidth: 79 } as const;
const taps = { kernel: [3, 3], stride: [1, 1], padding: [1, 1], dilation: [1, 1] } as const;
const normal = [output("f32", 1027), output("f32", 1), output("f32", 1)];

const CASES: [Parameters<typeof runKernel>[0], Record<string, unknown>, Record<string, unknown>][] = [
  [
    matmul,
    { kind: "matmul", transposeA: true, transposeB: true },
    { a: x, b: x, output: output("f32", 25 * 25), batch: 1, m: 25, n: 25, k: 41, strideA: 0, strideB: 0 },
  ],
  [
    matmul,
    { kind: "matmul", transposeA: false, transposeB: false, windows: true },
    {
      ...{ a: x, b: x, output: output("f32", 5 * 1027), batch: 1, m: 5, n: 1027, k: 9, strideA: 0, strideB: 0 },
      window: { ...window, ...taps },
    },
  ],
  [reduce, { kind: "reduce", op: "sum" }, { input: x, output: output("f32", 13), outer: 1, length: 79, inner: 13 }],
  [sumSquares, { kind: "sumSquares" }, { inputs: [x, x], output: output("f32", 2) }],
  [
    copy,
    { kind: "copy", from: "f32", to: "f32" },
    { source: x, target: output("f32", 1027), shape: [13, 79], sourceStrides: [1, 13], targetStrides: [79, 1] },
  ],
  [gather, { kind: "gather" }, { table: x, indices, output: output("f32", 40), rows: 3, width: 10, count: 4 }],
  [scatterAdd, { kind: "scatterAdd" }, { source: x, indices, output: output("f32", 30), rows: 3, width: 10, count: 4 }],
  [
    rows,
    { kind: "rows", program: layerNormRows },
    { inputs: [x, x, x], outputs: normal, scalars: [1e-5], rows: 1, length: 1027, ignoreIndex: 0 },
  ],
  [
    rows,
    { kind: "rows", program: crossEntropyGradRows },
    {
      ...{ inputs: [x, x], labels: indices, outputs: [output("f32", 40)], scalars: [] },
      ...{ rows: 4, length: 10, ignoreIndex: -1 },
    },
  ],
  [unfold, { kind: "unfold" }, { input: x, output: output("f32", 1027 * 9), window: { ...window, ...taps } }],
] as never;

it("computes beyond 2 GiB, where addresses are negative as signed numbers, what it computes below", () => {
  for (const [source, spec, launch] of CASES) {
    const typed = { dtype: "f32", ...spec } as Spec<Kind>;
    const near = runKernel(source, typed, launch as never);
    const across = runKernel(source, typed, launch as never, { base: 2 ** 31 - 2048 });
    expect(across, typed.kind).toEqual(near);
    expect(Object.keys(near).length, typed.kind).toBeGreaterThan(0);
  }
});
