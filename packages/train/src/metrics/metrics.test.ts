import { type DType, init, type Tensor, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import type { Metric } from "./metric";
import { accuracy, f1, meanAbsoluteError, perplexity } from "./metrics";

beforeEach(() => init("js"));

const logits = [
  [2, 1, 0, -1],
  [0, 3, 1, 2],
  [1, 0, 2, 3],
  [3, 2, 1, 0],
];
const labels = [0, 3, 2, 2];

/** Of three rows, the last one is not counted. */
const ignoring = [0, 3, -100];
const three = logits.slice(0, 3);

// f1: scikit-learn's f1_score([0, 3, 2, 2], [0, 1, 3, 0], average="macro", labels=range(4)) = (2/3 + 0 + 0 + 0) / 4.
// perplexity: exp of torch's cross_entropy of these rows.
it.each<[string, Metric, unknown, unknown, number]>([
  ["accuracy", accuracy(), logits, labels, 1 / 4],
  ["accuracy of the best two", accuracy({ topK: 2 }), logits, labels, 3 / 4],
  ["accuracy of more than there are", accuracy({ topK: 9 }), logits, labels, 1],
  ["accuracy of one logit", accuracy(), [[2], [-1], [3]], [1, 1, 1], 2 / 3],
  ["accuracy of sequences", accuracy(), [logits, logits], [labels, labels], 1 / 4],
  ["mean absolute error", meanAbsoluteError(), [[1], [3]], [2, 5], 1.5],
  ["f1", f1({ classes: 4 }), logits, labels, 1 / 6],
  ["f1 of one logit", f1({ classes: 2 }), [[2], [-1], [3]], [1, 1, 1], 0.8 / 2],
  ["perplexity", perplexity(), logits, labels, 4.2215],
  ["accuracy without -100", accuracy(), three, ignoring, 1 / 2],
  ["accuracy of the best two without -100", accuracy({ topK: 2 }), three, ignoring, 1],
  ["accuracy of one logit without -100", accuracy(), [[2], [-1], [3]], [1, 1, -100], 1 / 2],
  ["f1 without -100", f1({ classes: 4 }), three, ignoring, 1 / 4],
  ["f1 of one logit without -100", f1({ classes: 2 }), [[2], [-1], [3]], [1, 1, -100], 2 / 3 / 2],
  ["perplexity without -100", perplexity(), three, ignoring, 2.56047],
  ["accuracy of a logit for each of several numbers", accuracy(), logits, logits.map(() => [1, 1, 0, 0]), 9 / 16],
])("%s", (_, metric, output, target, value) => {
  metric.update(tensor(output as number[]), tensor(target as number[], { dtype: "i32" }));
  expect(metric.value()).toBeCloseTo(value, 4);
});

it("a logit each has targets of its shape or of its rows, in any dtype", () => {
  const value = (output: number[] | number[][], target: number[] | number[][], dtype: DType) => {
    const metric = accuracy();
    metric.update(tensor(output as number[]), tensor(target as number[], { dtype }));
    return metric.value();
  };
  const wide = (row: number[]) => row.map((each) => [each]);
  const [row, target] = [
    [2, -1, 3],
    [1, 1, 1],
  ] as [number[], number[]];
  for (const dtype of ["f32", "i32", "u8", "bool"] as const)
    for (const [output, expected] of [
      [row, target],
      [wide(row), target],
      [wide(row), wide(target)],
    ] as const)
      expect(value(output, expected, dtype)).toBeCloseTo(2 / 3, 6);
});

describe("a metric", () => {
  it("adds up over batches and ranks, and begins anew", () => {
    const [all, one, other] = [f1({ classes: 4 }), f1({ classes: 4 }), f1({ classes: 4 })] as const;
    const target = tensor(labels, { dtype: "i32" });
    all.update(tensor(logits), target);
    for (const [metric, from, to] of [
      [one, 0, 1],
      [other, 1, 4],
    ] as const)
      metric.update(tensor(logits.slice(from, to)), target.slice(from, to));
    const together = one.state().map((sum, i) => sum + other.state()[i]!);
    expect(together).toEqual(all.state());
    expect(one.value(together)).toBe(all.value());
    one.update(tensor(logits.slice(1)), target.slice(1));
    expect(one.state()).toEqual(all.state());
    one.reset();
    expect(one.state()).toEqual(new Array(12).fill(0));
  });
});

it.each([accuracy(), f1({ classes: 4 })])("$name names the cure for one-hot targets", (metric) => {
  const update = () => metric.update(tensor(logits), tensor(logits.map(() => [1, 0, 0, 0])));
  expectCode("BAD_ARGUMENT", update);
  expect(update).toThrow(/targets must be class numbers, got f32 of the outputs' shape \[4,4\]\. Return target.argmax/);
});

it.each<[string, () => unknown]>([
  ["topK", () => accuracy({ topK: 0 })],
  ["classes", () => f1({ classes: 1 })],
  ["an option", () => f1({ class: 2 } as never)],
])("rejects wrong arguments: %s", (_, make) => expectCode("BAD_ARGUMENT", make));

it.each([accuracy(), accuracy({ topK: 2 }), f1({ classes: 4 }), perplexity()])(
  "$name of outputs of any dtype is that of their numbers",
  (metric) => {
    const value = (output: Tensor) => {
      metric.reset();
      metric.update(output, tensor(labels, { dtype: "i32" }));
      return metric.value();
    };
    for (const dtype of ["f16", "bf16", "f64"] as const) {
      const output = tensor(logits, { dtype });
      expect(value(output)).toBeCloseTo(value(output.to("f32")), 6);
    }
  },
);
