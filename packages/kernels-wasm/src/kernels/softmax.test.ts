import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { crossEntropy, crossEntropyGrad } from "./cross-entropy";
import { input, output, runKernel, seeded } from "./run-kernel";
import { softmax, softmaxGrad } from "./softmax";

const SHAPES = [
  [0, 5],
  [1, 1],
  [3, 5],
  [128, 10],
  [2, 1027],
  [70_001, 3],
] as const;

type DType = "f32" | "f64";
const close = (actual: ArrayLike<number>, expected: number[], dtype: DType, scale = 1) => {
  expect(actual.length).toBe(expected.length);
  const bound = scale * (dtype === "f32" ? 1e-6 : 1e-14);
  const far = expected.findIndex((value, i) => !(Math.abs(actual[i]! - value) <= bound * Math.max(1, Math.abs(value))));
  expect(far === -1 ? "close" : `${actual[far]} at ${far} instead of ${expected[far]}`).toBe("close");
};

const rowsOf = (x: ArrayLike<number>, length: number) =>
  Array.from({ length: x.length / length }, (_, row) => Array.from({ length }, (_, i) => x[row * length + i]!));

function probabilities(row: number[]): number[] {
  const max = Math.max(...row);
  const powers = row.map((value) => Math.exp(value - max));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

const logits = (count: number, dtype: DType) => seeded(count, 5, dtype).map((x) => x * 8);
const labelsFor = (rows: number, classes: number) => Array.from({ length: rows }, (_, row) => (row * 7) % classes);

describe.each(["f32", "f64"] as const)("%s rows", (dtype) => {
  describe.each([false, true])("softmax, log %s", (log) => {
    it.each(SHAPES)("of [%i, %i]", (rows, length) => {
      const x = logits(rows * length, dtype);
      const launch = { input: input(dtype, x), output: output(dtype, x.length), rows, length };
      const y = runKernel(softmax, { kind: "softmax", log, dtype }, launch).output!;
      close(
        y,
        rowsOf(x, length).flatMap((row) => probabilities(row).map((p) => (log ? Math.log(p) : p))),
        dtype,
      );
      expect(runKernel(softmax, { kind: "softmax", log, dtype }, launch, { parts: 3 }).output).toAgreeWith(y);
    });

    it.each(SHAPES)("gradient of [%i, %i]", (rows, length) => {
      const y = seeded(rows * length, 6, dtype);
      const g = seeded(rows * length, 7, dtype);
      const launch = {
        forward: input(dtype, y),
        gradient: input(dtype, g),
        output: output(dtype, y.length),
        rows,
        length,
      };
      const result = runKernel(softmaxGrad, { kind: "softmaxGrad", log, dtype }, launch).output!;
      const gradients = rowsOf(g, length);
      const expected = rowsOf(y, length).flatMap((row, r) => {
        const sum = row.reduce((total, value, i) => total + gradients[r]![i]! * (log ? 1 : value), 0);
        return row.map((value, i) =>
          log ? gradients[r]![i]! - Math.exp(value) * sum : value * (gradients[r]![i]! - sum),
        );
      });
      close(result, expected, dtype, 10);
    });
  });

  it.each(SHAPES)("cross-entropy of [%i, %i]", (rows, classes) => {
    const x = logits(rows * classes, dtype);
    const labels = labelsFor(rows, classes);
    const launch = {
      logits: input(dtype, x),
      labels: input("i32", labels),
      output: output(dtype, rows),
      rows,
      classes,
    };
    const spec = { kind: "crossEntropy", dtype } as const;
    const loss = runKernel(crossEntropy, spec, { ...launch, ignoreIndex: -100 }).output!;
    close(
      loss,
      rowsOf(x, classes).map((row, r) => -Math.log(probabilities(row)[labels[r]!]!)),
      dtype,
    );
    expect(runKernel(crossEntropy, spec, { ...launch, ignoreIndex: -100 }, { parts: 3 }).output).toAgreeWith(loss);
  });

  it.each(SHAPES)("cross-entropy gradient of [%i, %i]", (rows, classes) => {
    const x = logits(rows * classes, dtype);
    const g = seeded(rows, 8, dtype);
    const labels = labelsFor(rows, classes);
    const inputs = { logits: input(dtype, x), labels: input("i32", labels), gradient: input(dtype, g) };
    const launch = { ...inputs, output: output(dtype, x.length), rows, classes, ignoreIndex: -100 };
    const result = runKernel(crossEntropyGrad, { kind: "crossEntropyGrad", dtype }, launch).output!;
    const expected = rowsOf(x, classes).flatMap((row, r) =>
      probabilities(row).map((p, i) => (p - (i === labels[r] ? 1 : 0)) * g[r]!),
    );
    close(result, expected, dtype);
  });

  it("cross-entropy ignores a label, and answers NaN to those out of range", () => {
    const shape = { rows: 4, classes: 2, ignoreIndex: -100 };
    const inputs = { logits: input(dtype, [0, 0, 1, 2, 3, 4, 5, 6]), labels: input("i32", [0, -100, 2, -1]) };
    const spec = { kind: "crossEntropy", dtype } as const;
    const loss = runKernel(crossEntropy, spec, { ...inputs, output: output(dtype, 4), ...shape }).output!;
    close([loss[0]!], [Math.LN2], dtype);
    expect([...loss].slice(1)).toEqual([0, Number.NaN, Number.NaN]);
    const launch = { ...inputs, gradient: input(dtype, [2, 2, 2, 2]), output: output(dtype, 8), ...shape };
    const gradient = runKernel(crossEntropyGrad, { kind: "crossEntropyGrad", dtype }, launch).output!;
    expect([...gradient]).toEqual([-1, 1, 0, 0, ...new Array(4).fill(Number.NaN)]);
  });

  it("knows -infinity as a mask and passes NaN to its row alone", () => {
    const x = [0, -Infinity, 1, Number.NaN, 1e30, 1, 1000, 1000, 1000];
    const launch = { input: input(dtype, x), output: output(dtype, 9), rows: 3, length: 3 };
    const y = [...runKernel(softmax, { kind: "softmax", log: false, dtype }, launch).output!];
    close(
      [y[0]!, y[1]!, y[2]!, ...y.slice(6)],
      [0.2689414213699951, 0, 0.7310585786300049, 1 / 3, 1 / 3, 1 / 3],
      dtype,
    );
    expect(y.slice(3, 6)).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });
});
