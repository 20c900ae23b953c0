// What computes along an axis computes what it does along the last one, of numbers whose axes are moved there and back.
import { init, manualSeed, OptError, rand, randperm, Tensor } from "@opt/core";
import "@opt/testkit";
import { expect, it } from "vitest";
import { FUNCTIONS, LAYERS } from "../testing/valid-arguments";
import * as nn from "./index";

await init("js");

const SHAPE = [2, 6, 4];
const numbered = () => randperm(48, { dtype: "f32" }).sub(24).reshape(SHAPE);
const [x, y] = [numbered(), numbered()];

type Along = (x: Tensor, axis: number, move: (x: Tensor) => Tensor) => Tensor;

/** By the axis; `move` gives to what stands beside x the axes of x. */
const ALONG: Readonly<Record<string, Along>> = {
  Softmax: (x, axis) => new nn.Softmax(axis).forward(x),
  LogSoftmax: (x, axis) => new nn.LogSoftmax(axis).forward(x),
  GLU: (x, axis) => new nn.GLU(axis).forward(x),
  normalize: (x, axis) => nn.normalize(x, { axis, p: 3 }),
  // Of logits so far apart draws decide nothing.
  gumbelSoftmax: (x, axis) => nn.gumbelSoftmax(x.mul(1e4), { axis, hard: true }),
  cosineSimilarity: (x, axis, move) => nn.cosineSimilarity(x, move(y), { axis }),
  CosineSimilarity: (x, axis, move) => new nn.CosineSimilarity({ axis }).forward(x, move(y)),
  crossEntropy: (x, axis, move) =>
    nn.crossEntropy(x, move(y).argmax(axis), { axis, ignoreIndex: 0, reduction: "none" }),
  nllLoss: (x, axis, move) => nn.nllLoss(x, move(y).argmax(axis), { axis, ignoreIndex: 0, reduction: "none" }),
  NLLLoss: (x, axis, move) => new nn.NLLLoss({ axis, reduction: "none" }).forward(x, move(y).argmax(axis)),
};

it.each(Object.entries(ALONG))("%s", (_, along) => {
  for (const axis of [0, 1, 2, -1, -2, -3]) {
    const at = (axis + 3) % 3;
    const order = [0, 1, 2].filter((i) => i !== at).concat(at);
    const move = (x: Tensor) => x.permute(order);
    const there = along(move(x), -1, move);
    const back = there.shape.length === 3 ? there.permute([0, 1, 2].map((i) => order.indexOf(i))) : there;
    const found = along(x, axis, (beside) => beside);
    expect(found.shape, `axis ${axis}`).toEqual(back.shape);
    expect(found.dataSync()).toAgreeWith(back.dataSync(), { absolute: 1e-6, relative: 1e-6 });
  }
});

it("each that has the option is here", () => {
  const takesAxis = (args: unknown[]) => args.some((value) => Object.hasOwn(Object(value), "axis"));
  const names = [
    ...Object.entries(FUNCTIONS).filter(([, valid]) => takesAxis(valid())),
    ...Object.entries(LAYERS).filter(([, [made]]) => takesAxis(made())),
  ].map(([name]) => name);
  const ofWeights = /^(weight|spectral)Norm$/;
  expect(names.filter((name) => !ofWeights.test(name) && !(name in ALONG))).toEqual([]);
});

/** Of tensors in pairs, which may have one shape. */
const PAIRS = Object.entries(FUNCTIONS).flatMap(([name, valid]) => {
  const shapes = valid().map((x) => (x instanceof Tensor && x.dtype === "f32" ? String(x.shape) : ""));
  const places = shapes.flatMap((shape, i) =>
    shape !== "" && shapes.indexOf(shape) !== shapes.lastIndexOf(shape) ? i : [],
  );
  return places.map((place) => [name, place, valid] as const);
});

it.each(PAIRS)("%s takes its argument %i with fewer axes as expanded, or not at all", (name, place, valid) => {
  for (const behind of [false, true]) {
    const given = valid().map((x) => (x instanceof Tensor && x.dtype === "f32" ? rand(x.shape) : x));
    const args = given.map((x) => (behind && Object.hasOwn(Object(x), "axis") ? { ...(x as object), axis: -1 } : x));
    const x = args[place] as Tensor;
    const less = x.slice(0, 1).squeeze(0);
    const call = (value: Tensor) => {
      manualSeed(1);
      return (nn as unknown as Record<string, (...args: unknown[]) => Tensor>)[name]!(...args.with(place, value));
    };
    let found: Tensor;
    try {
      found = call(less);
    } catch (error) {
      if (error instanceof OptError) continue;
      throw error;
    }
    const expected = call(less.expand(x.shape));
    expect(found.shape).toEqual(expected.shape);
    expect(found.dataSync()).toAgreeWith(expected.dataSync(), { absolute: 1e-6, relative: 1e-6 });
  }
});
