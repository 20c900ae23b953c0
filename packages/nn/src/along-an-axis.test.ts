// What computes along an axis computes what it does along the last one, of numbers whose axes are moved there and back.
import { init, randperm, type Tensor } from "@opt/core";
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
  ...Object.fromEntries(
    (["crossEntropy", "nllLoss"] as const).map((name) => [
      name,
      (x, axis, move) => nn[name](x, move(y).argmax(axis), { axis, ignoreIndex: 0, reduction: "none" }),
    ]),
  ),
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
