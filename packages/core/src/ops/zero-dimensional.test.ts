// Ops along an axis take 0 and -1 for a tensor of shape [], as in PyTorch.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import * as F from "../functions";
import type { Tensor } from "../tensor/tensor";
import { concat } from "./index";

const index = (shape: number[] = []) => tensor(new Int32Array(shape[0] ?? 1), { shape });
const two = () => tensor(2, { shape: [] });

/** Of 1.5, and its gradient; null where it has no gradient. */
const OPS: Record<string, [(x: Tensor, axis: number) => Tensor, number, number | null]> = {
  sum: [(x, axis) => x.sum(axis), 1.5, 1],
  mean: [(x, axis) => x.mean(axis), 1.5, 1],
  max: [(x, axis) => x.max(axis), 1.5, 1],
  min: [(x, axis) => x.min(axis), 1.5, 1],
  prod: [(x, axis) => F.prod(x, axis), 1.5, 1],
  logsumexp: [(x, axis) => F.logsumexp(x, axis), 1.5, 1],
  norm: [(x, axis) => x.norm(2, axis), 1.5, 1],
  std: [(x, axis) => x.std(axis, { correction: 0 }), 0, 0],
  argmax: [(x, axis) => x.argmax(axis), 0, null],
  argmin: [(x, axis) => x.argmin(axis), 0, null],
  any: [(x, axis) => F.any(x, axis), 1, null],
  all: [(x, axis) => F.all(x, axis), 1, null],
  softmax: [(x, axis) => x.softmax(axis), 1, 0],
  logSoftmax: [(x, axis) => x.logSoftmax(axis), 0, 0],
  cumsum: [(x, axis) => F.cumsum(x, axis), 1.5, 1],
  cumprod: [(x, axis) => F.cumprod(x, axis), 1.5, 1],
  logcumsumexp: [(x, axis) => F.logcumsumexp(x, axis), 1.5, 1],
  sort: [(x, axis) => F.sort(x, axis).values, 1.5, 1],
  argsort: [(x, axis) => F.argsort(x, axis), 0, null],
  topk: [(x, axis) => F.topk(x, 1, axis).values, 1.5, 1],
  "places of topk": [(x, axis) => F.topk(x, 1, axis).indices, 0, null],
  flip: [(x, axis) => F.flip(x, axis), 1.5, 1],
  transpose: [(x, axis) => x.transpose(axis, 0), 1.5, 1],
  squeeze: [(x, axis) => x.squeeze(axis), 1.5, 1],
  gatherAlong: [(x, axis) => F.gatherAlong(x, index(), axis), 1.5, 1],
  scatter: [(x, axis) => F.scatter(x, axis, index(), two()), 2, 0],
  "scatter of a number": [(x, axis) => F.scatter(x, axis, index(), 3), 3, 0],
  scatterAdd: [(x, axis) => F.scatterAdd(x, axis, index(), two()), 3.5, 1],
  "scatterAdd of a row": [(x, axis) => F.scatterAdd(x, axis, index([2]), tensor([1, 2])), 4.5, 1],
  indexAdd: [(x, axis) => F.indexAdd(x, axis, index([1]), two()), 3.5, 1],
};

describe.each(Object.entries(OPS))("%s of a number", (_, [run, expected, slope]) => {
  it.each([0, -1])("along %d", (axis) => {
    const x = parameter(1.5);
    const y = run(x, axis);
    expect([y.shape, Number(y.dataSync()[0])]).toEqual([[], expected]);
    expect(y.requiresGrad).toBe(slope !== null);
    if (slope === null) return;
    y.backward();
    expect([x.grad!.shape, x.grad!.dataSync()[0]]).toEqual([[], slope]);
  });

  it("has no other axis", () => {
    for (const axis of [1, -2]) expectCode("BAD_ARGUMENT", () => run(tensor(1.5), axis));
  });
});

it("rows of indices choose a number again and again", () => {
  expect(F.gatherAlong(tensor(1.5), index([2]), 0).tolist()).toEqual([1.5, 1.5]);
  expect(F.gatherAlong(tensor([1, 2]), index(), 0).tolist()).toBe(1);
  expect(F.indexAdd(tensor([1, 2]), 0, index(), tensor([1])).tolist()).toEqual([2, 2]);
});

it("cannot be cut, joined or rolled along an axis", () => {
  const x = tensor(1.5);
  const rejected = [
    () => x.slice(0, 1),
    () => x.select(0, 0),
    () => concat([x, x]),
    () => F.split(x, 1),
    () => F.chunk(x, 1),
    () => F.roll(x, 1, 0),
  ];
  for (const run of rejected) expectCode("BAD_ARGUMENT", run);
  expectCode("BAD_SHAPE", () => F.indexAdd(x, 0, index([2]), tensor([1, 2])));
});
