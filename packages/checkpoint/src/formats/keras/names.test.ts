/** Whose optimizer state Keras' numbers mean: the order of the layers in the config says it, shapes prove it. */
import { describe, expect, it } from "vitest";
import type { Json, SourceTensor } from "../../format/source";
import type { NamingContext } from "../names/renaming";
import { kerasNames } from "./names";

type Shapes = Record<string, number[]>;

function namesOf(shapes: Shapes, values: { [key: string]: Json } = {}) {
  const tensors = new Map(
    Object.entries(shapes).map(([name, shape]) => [name, { name, shape } as unknown as SourceTensor]),
  );
  const { names, unproven, counter } = kerasNames({ source: { tensors, values } } as unknown as NamingContext);
  return {
    names: Object.fromEntries(names),
    unproven: unproven?.map(({ key, meaning }) => `${key} ${meaning}`),
    counter,
  };
}

/** A model's config: layers by class name, or whole; the optimizer by class name. */
const configOf = (layers: Json, optimizer: Json = { class_name: "Adam" }): { [key: string]: Json } => ({
  config: {
    config: {
      layers: Array.isArray(layers)
        ? layers.map((layer) => (typeof layer === "string" ? { class_name: layer } : layer))
        : layers,
    },
    compile_config: { optimizer },
  },
});

/** Variables of the optimizer from number 2 on, after its counter and learning rate. */
const numbered = (...shapes: number[][]): Shapes =>
  Object.fromEntries([[], [], ...shapes].map((shape, i) => [`optimizer/vars/${i}`, shape]));

const W = [3, 2];
const B = [2];
const DENSE = { "layers/dense/vars/0": W, "layers/dense/vars/1": B };
const DENSE_1 = { "layers/dense_1/vars/0": B, "layers/dense_1/vars/1": [1] };
const ADAM = numbered(W, W, B, B);
const ADAM_NAMES = {
  "optimizer/vars/2": "layers/dense/vars/0.exp_avg",
  "optimizer/vars/3": "layers/dense/vars/0.exp_avg_sq",
  "optimizer/vars/4": "layers/dense/vars/1.exp_avg",
  "optimizer/vars/5": "layers/dense/vars/1.exp_avg_sq",
};

describe("proven are", () => {
  it.each(["Adam", "AdamW", "Nadam"])("the pairs of %s", (optimizer) => {
    const names = namesOf({ ...DENSE, ...ADAM }, configOf(["Dense"], { class_name: optimizer }));
    expect(names).toEqual({ names: ADAM_NAMES, unproven: undefined, counter: "optimizer/vars/0" });
  });

  it("an optimizer that the config names by a word", () => {
    expect(namesOf({ ...DENSE, ...ADAM }, configOf(["Dense"], "Adam")).names).toEqual(ADAM_NAMES);
  });

  it("SGD's momenta", () => {
    expect(namesOf({ ...DENSE, ...numbered(W, B) }, configOf(["Dense"], { class_name: "SGD" })).names).toEqual({
      "optimizer/vars/2": "layers/dense/vars/0.momentum_buffer",
      "optimizer/vars/3": "layers/dense/vars/1.momentum_buffer",
    });
  });

  it("AMSGrad's maxima, which come after all pairs", () => {
    expect(namesOf({ ...DENSE, ...numbered(W, W, B, B, W, B) }, configOf(["Dense"])).names).toEqual({
      ...ADAM_NAMES,
      "optimizer/vars/6": "layers/dense/vars/0.max_exp_avg_sq",
      "optimizer/vars/7": "layers/dense/vars/1.max_exp_avg_sq",
    });
  });

  it("layers of a kind one after another, and states by number, whatever the file's order", () => {
    const shapes = {
      ...DENSE,
      ...DENSE_1,
      "layers/dense_2/vars/0": [1, 5],
      ...numbered(W, W, B, B, B, B, [1], [1], [1, 5], [1, 5]),
    };
    const sorted = Object.fromEntries(Object.entries(shapes).sort(([a], [b]) => (a < b ? -1 : 1)));
    expect(namesOf(sorted, configOf(["Dense", "Dense", "Dense"])).names).toEqual({
      ...ADAM_NAMES,
      "optimizer/vars/6": "layers/dense_1/vars/0.exp_avg",
      "optimizer/vars/7": "layers/dense_1/vars/0.exp_avg_sq",
      "optimizer/vars/8": "layers/dense_1/vars/1.exp_avg",
      "optimizer/vars/9": "layers/dense_1/vars/1.exp_avg_sq",
      "optimizer/vars/10": "layers/dense_2/vars/0.exp_avg",
      "optimizer/vars/11": "layers/dense_2/vars/0.exp_avg_sq",
    });
  });

  it("not counters and rates, of one element or none, nor Nadam's product", () => {
    const shapes = { ...DENSE, "optimizer/vars/0": [1], "optimizer/vars/1": [1], "optimizer/vars/2": [] };
    const states = { "optimizer/vars/3": W, "optimizer/vars/4": W, "optimizer/vars/5": B, "optimizer/vars/6": B };
    expect(Object.keys(namesOf({ ...shapes, ...states }, configOf(["Dense"])).names)).toEqual(Object.keys(states));
  });

  it.each<[string, Json, Shapes, string[]]>([
    [
      "what is trained behind frozen layers",
      { class_name: "Dense", config: { trainable: false } },
      DENSE_1,
      ["dense_1/vars/0", "dense_1/vars/1"],
    ],
    [
      "of batches' norms the scale and the shift",
      "BatchNormalization",
      bn(4),
      ["batch_normalization/vars/0", "batch_normalization/vars/1"],
    ],
    [
      "a norm's scale alone",
      { class_name: "BatchNormalization", config: { center: false } },
      bn(3),
      ["batch_normalization/vars/0"],
    ],
    [
      "no more of a norm without both",
      { class_name: "BatchNormalization", config: { center: false, scale: false } },
      bn(2),
      [],
    ],
    [
      "a layer's parts",
      "LSTM",
      { "layers/lstm/cell/vars/0": [2, 8], "layers/lstm/cell/seed_generator/vars/0": [2] },
      ["lstm/cell/vars/0"],
    ],
    ["classes of registered packages", "my>HTTPDense", { "layers/my_http_dense/vars/0": B }, ["my_http_dense/vars/0"]],
    ["layers without variables", "Flatten", { "layers/flatten_other/vars/0": B }, []],
  ])("%s", (_, layer, shapes, paths) => {
    const layers = layer instanceof Object && "config" in layer && shapes === DENSE_1 ? [layer, "Dense"] : [layer];
    const states = numbered(...paths.map((path) => shapes[`layers/${path}`]!));
    const { names, unproven } = namesOf({ ...DENSE, ...shapes, ...states }, configOf(layers, { class_name: "SGD" }));
    expect(unproven).toBeUndefined();
    expect(Object.values(names)).toEqual(paths.map((path) => `layers/${path}.momentum_buffer`));
  });
});

function bn(count: number): Shapes {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`layers/batch_normalization/vars/${i}`, [4]]));
}

describe("nothing is guessed", () => {
  const list = (...shapes: number[][]) =>
    shapes.map((shape, i) => `optimizer/vars/${i + 2} <parameter of [${shape.join(", ")}]>.<state>`);
  const all = { ...DENSE, ...ADAM };

  it.each<[string, Shapes, { [key: string]: Json }, string[]]>([
    ["without a config", all, {}, list(W, W, B, B)],
    ["without the optimizer's name", all, configOf(["Dense"], null), list(W, W, B, B)],
    ["where the name is a number", all, configOf(["Dense"], { class_name: 1 }), list(W, W, B, B)],
    ["of optimizers that are not known", all, configOf(["Dense"], "Lamb"), list(W, W, B, B)],
    ["of what objects have", all, configOf(["Dense"], "toString"), list(W, W, B, B)],
    ["without layers", all, configOf({}), list(W, W, B, B)],
    ["of an invalid layer", all, configOf([null, "Dense"]), list(W, W, B, B)],
    ["of a layer without a class", all, configOf([{ class_name: 3 }, "Dense"]), list(W, W, B, B)],
    [
      "of a model in the model",
      all,
      configOf(["Dense", { class_name: "Functional", config: { layers: [] } }]),
      list(W, W, B, B),
    ],
    ["of one other shape", { ...DENSE, ...numbered(W, W, B, [3]) }, configOf(["Dense"]), list(W, W, B, [3])],
    ["of too few", { ...DENSE, ...numbered(W, W, B) }, configOf(["Dense"]), list(W, W, B)],
    ["of one too many", { ...DENSE, ...numbered(W, W, B, B, W) }, configOf(["Dense"]), list(W, W, B, B, W)],
    [
      "of maxima of another shape",
      { ...DENSE, ...numbered(W, W, B, B, W, W) },
      configOf(["Dense"]),
      list(W, W, B, B, W, W),
    ],
    [
      "of older files",
      { "optimizer_weights/m": B, "my/optimizer/vars/9": B },
      {},
      ["optimizer_weights/m <parameter of [2]>.<state>"],
    ],
  ])("%s", (_, shapes, values, unproven) => {
    expect(namesOf(shapes, values)).toEqual({ names: {}, unproven, counter: "optimizer/vars/0" });
  });
});
