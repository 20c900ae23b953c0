// Every optimizer over trees of jax-js arrays: the numbers of its class up to the roundings of jax-js, and nothing left behind.
import { defaultDevice, devicePut, init, jit, numpy as np, tree } from "@jax-js/jax";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import {
  type BaseOptions,
  type GroupOptions,
  l2,
  type OptimizerClass,
  parameter,
  type Tensor,
  tensor,
} from "@opt/core";
import { NAdam } from "@opt/nadam";
import { SGD } from "@opt/sgd";
import { sample, triesAll } from "@opt/testkit";
import { optimizerRuns } from "@opt/testkit/optimizers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { watchSlots } from "../testing/live-slots";
import type { Tree } from "./leaves";
import { fromTensors, toTensors } from "./tensors";
import { applyUpdates, type GradientTransformation, gradientTransformation, type State } from "./transformation";

await init("cpu", "wasm");
defaultDevice("wasm");

type Options = Readonly<Record<string, unknown>>;
const named = (name: string, optimizer: unknown, options: Options = {}) =>
  [
    name,
    optimizer as OptimizerClass<BaseOptions>,
    { lr: 0.05, ...options } as Partial<BaseOptions> & GroupOptions,
  ] as const;
const OPTIMIZERS = [
  named("NAdam, l2", NAdam, { weightDecay: 0.1 }),
  named("NAdam, small beta1, decoupled", NAdam, { betas: [0.4, 0.9], weightDecay: 0.1, decoupledWeightDecay: true }),
  named("AMSGrad", Adam, { amsgrad: true, weightDecay: 0.01, maximize: true }),
  named("Adam, clipped, with a penalty", Adam, { clip: { value: 0.2 }, regularizer: l2(0.1) }),
  named("AdamW, its norm clipped", AdamW, { clip: { norm: 0.5, value: 0.3 }, maximize: true }),
  named("AdamW, cautious decay", AdamW, { weightDecay: 0.1, decay: "cautious" }),
  named("SGD, nesterov", SGD, { momentum: 0.9, nesterov: true, weightDecay: 0.1 }),
  ...(await optimizerRuns())
    .filter(({ isElementwise }) => isElementwise)
    .map(({ title, Optimizer, options }) => named(title, Optimizer, options)),
];

/** Both ways to new parameters. */
const WAYS = ["update", "step"] as const;

function stepped<Params extends Tree>(
  way: (typeof WAYS)[number],
  tx: GradientTransformation,
  ...given: [grads: Params, state: State<Params>, params: Params]
): [Params, State<Params>] {
  if (way === "step") return tx.step(...given);
  const params = tree.ref(given[2]);
  const [updates, state] = tx.update(...given);
  return [applyUpdates(params, updates), state];
}

const SHAPES = { b: [3], layers: [{ w: [4, 3] }, { w: [5] }] };
const sizes = { b: 3, "layers.0.w": 12, "layers.1.w": 5 };
const random = (seed: number, i: number) => Math.sin(12.9898 * (seed + 1) + 78.233 * i);

const values = (seed: number) =>
  Object.values(sizes).map((size, leaf) =>
    Float32Array.from(Array.from({ length: size }, (_, i) => random(seed + 7 * leaf, i))),
  );

function treeOf([b, first, second]: Float32Array<ArrayBuffer>[], dtype: np.DType) {
  const array = (data: Float32Array<ArrayBuffer>, shape: number[]) => np.array(data, { shape }).astype(dtype);
  return {
    b: array(b!, SHAPES.b),
    layers: [{ w: array(first!, SHAPES.layers[0]!.w) }, { w: array(second!, SHAPES.layers[1]!.w) }],
  };
}

const listOf = (params: ReturnType<typeof treeOf>) =>
  Promise.all(tree.leaves<np.Array>(params).map(async (leaf) => [...(await leaf.data())]));

/** The class and the transformation, by the same gradients. */
async function bothAfter(
  way: (typeof WAYS)[number],
  steps: number,
  optimizer: OptimizerClass<BaseOptions>,
  options: Partial<BaseOptions> & GroupOptions,
  dtype: np.DType,
) {
  const own: Tensor[] = values(0).map((data) => parameter(data, { dtype: dtype === np.float64 ? "f64" : "f32" }));
  const trained = new optimizer(own, options);
  const tx = gradientTransformation(optimizer, options);
  let params = treeOf(values(0), dtype);
  let state = tx.init(tree.ref(params));
  for (let t = 1; t <= steps; t++) {
    const gradients = values(100 * t);
    own.forEach((param, i) => {
      param.grad = tensor(gradients[i]!, { dtype: param.dtype });
    });
    trained.step();
    [params, state] = stepped(way, tx, treeOf(gradients, dtype), state, params);
  }
  return { theirs: (await listOf(params)).flat(), ours: own.flatMap((param) => [...param.dataSync()]) };
}

const KINDS = [
  ["update", np.float32, 2e-6],
  ["update", np.float64, 1e-14],
  ["step", np.float32, 2e-6],
  ["step", np.float64, 1e-14],
] as const;

describe.each(OPTIMIZERS.map((each, i) => [...each, triesAll ? KINDS : [KINDS[i % 4]!]] as const))(
  "%s",
  (_, optimizer, options, kinds) => {
    it.each(kinds)("has by %s the numbers of the class in %s", async (way, dtype, tolerance) => {
      const { theirs, ours } = await bothAfter(way, triesAll ? 30 : 8, optimizer, options, dtype);
      expect(theirs.length).toBe(20);
      // Relative to the largest: without an estimate of the Hessian, Sophia's are millions.
      const largest = Math.max(1, ...ours.map(Math.abs));
      theirs.forEach((value, i) => {
        expect(Math.abs(value - ours[i]!) / largest).toBeLessThan(tolerance);
      });
    });
  },
);

it.each(sample(OPTIMIZERS.filter(([name]) => !name.includes("norm"))))(
  "gives long arrays the bits of short ones: %s",
  async (...given) => {
    const [, optimizer, options] = given;
    const tx = gradientTransformation(optimizer, options);
    const half = 2 ** 13;
    const whole = (seed: number) => Float32Array.from({ length: 2 * half }, (_, i) => random(seed, i));
    const halves = (seed: number) => [0, half].map((from) => np.array(whole(seed).slice(from, from + half)));
    let [params, parts]: [np.Array, np.Array[]] = [np.array(whole(0)), halves(0)];
    let [state, states] = [tx.init(params.ref), tx.init(tree.ref(parts))];
    for (let t = 1; t <= 3; t++) {
      [params, state] = tx.step(np.array(whole(t)), state, params);
      [parts, states] = tx.step(halves(t), states, parts);
    }
    const bytes = async (array: np.Array) => Buffer.from((await array.data()).buffer);
    const [long, short] = [await bytes(params), Buffer.concat(await Promise.all(parts.map(bytes)))];
    expect(Buffer.compare(long, short)).toBe(0);
  },
);

it("takes another learning rate for a step, and one array for a tree", async () => {
  const tx = gradientTransformation(SGD, { lr: 1 });
  const params = np.array([1, 2]);
  const state = tx.init(params.ref);
  const [updates] = tx.update(np.array([1, 1]), state, params.ref, { lr: 0.5 });
  expect(await applyUpdates(params, updates).js()).toEqual([0.5, 1.5]);
});

it("takes empty trees, empty arrays and scalars", async () => {
  const tx = gradientTransformation(AdamW, { lr: 1, weightDecay: 0 });
  const [, state] = tx.update({}, tx.init({}), {});
  expect(state).toEqual({ step: 1, exp_avg: {}, exp_avg_sq: {} });
  const params = () => [np.array(1), np.zeros([0, 3])];
  const [updates] = tx.update(params(), tx.init(params()), params());
  const [scalar, empty] = applyUpdates(params(), updates);
  expect((await scalar!.data())[0]).toBeCloseTo(0, 6);
  expect((await empty!.data()).length).toBe(0);
});

it("has the class' numbers for a tree of any arrays and options, with another rate for a step and a save between", async () => {
  const size = (shape: readonly number[]) => shape.reduce((product, extent) => product * extent, 1);
  const some = fc.record(
    {
      ...{
        maximize: fc.boolean(),
        regularizer: fc.constantFrom(l2(0.3), () => l2(0.3)),
        weightDecay: fc.constantFrom(0.1),
      },
      clip: fc.record({ norm: fc.constantFrom(0.3, 50), value: fc.constantFrom(0.2) }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
  const drawn = fc.record({
    optimizer: fc.constantFrom<readonly [unknown, Options]>([SGD, { momentum: 0.9 }], [AdamW, {}], [NAdam, {}]),
    shapes: fc.array(fc.constantFrom<number[]>([], [0, 3], [1], [2, 3]), { maxLength: 3 }),
    ...{
      options: some,
      way: fc.constantFrom(...WAYS),
      lr: fc.option(fc.constant(0.3)),
      device: fc.constantFrom("wasm" as const, "cpu" as const),
    },
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ optimizer: [given, more], shapes, options, way, lr, device }) => {
      const [, Optimizer, all] = named("drawn", given, { ...more, ...options });
      const data = (seed: number) =>
        shapes.map((shape, leaf) => Float32Array.from({ length: size(shape) }, (_, i) => random(seed + 7 * leaf, i)));
      const arrays = (seed: number) => ({
        all: data(seed).map((values, i) =>
          values.length > 0 ? np.array(values, { shape: shapes[i]!, device }) : np.zeros(shapes[i]!, { device }),
        ),
      });
      const own = data(0).map((values, i) => parameter(values, { shape: shapes[i]! }));
      const trained = own.length > 0 ? new Optimizer(own, all) : undefined;
      const tx = gradientTransformation(Optimizer, all);
      let params = arrays(0);
      let state = tx.init(tree.ref(params));
      for (let t = 1; t <= 3; t++) {
        for (const [i, values] of data(100 * t).entries()) own[i]!.grad = tensor(values, { shape: shapes[i]! });
        const rate = t === 2 && lr !== null ? lr : all.lr!;
        if (trained) trained.groups[0]!.lr = rate;
        trained?.step();
        const once = rate === all.lr ? undefined : { lr: rate };
        const before = tree.ref(params);
        const [next, other] = tx[way](arrays(100 * t), state, params, once);
        params = way === "step" ? next : applyUpdates(before, next);
        if (way === "step") tree.dispose(before);
        state = other;
        if (t > 1) continue;
        const saved = await tx.stateDict(state, tree.ref(params));
        expect(JSON.parse(JSON.stringify(saved.groups))).toEqual(saved.groups); // for checkpoints
        state = await tx.loadStateDict(saved, tree.ref(params));
      }
      const held = [params, state].flatMap((each) => tree.leaves<np.Array | number>(each as Tree));
      for (const each of held) if (each instanceof np.Array) expect(each.device).toBe(device);
      const theirs = await Promise.all(params.all.map(async (array) => [...(await array.data())]));
      for (const [i, values] of theirs.entries())
        for (const [k, value] of values.entries()) expect(value).toBeCloseTo(own[i]!.dataSync()[k] as number, 5);
      expect(theirs.map(({ length }) => length)).toEqual(shapes.map(size));
    }),
    { seed: 1, numRuns: 40 },
  );
});

it("steps arrays where they lie, one tree on two devices", async () => {
  const tx = gradientTransformation(NAdam, { lr: 0.1 });
  const make = async () => ({ here: np.array([1, 2]), there: await devicePut(np.array([1, 2]), "cpu") });
  const [params, state] = [await make(), tx.init(await make())];
  const [updates] = tx.update(await make(), state, tree.ref(params));
  const { here, there } = applyUpdates(params, updates);
  expect([here.device, there.device]).toEqual(["wasm", "cpu"]);
  const [first, second] = [await here.data(), await there.data()];
  for (let i = 0; i < 2; i++) expect(first[i]).toBeCloseTo(second[i]!, 6);
});

it("hands NaN and infinities on", async () => {
  const tx = gradientTransformation(Adam, { lr: 0.1, amsgrad: true });
  const params = np.array([1, 1, 1]);
  const gradients = [Number.NaN, 0, 1];
  const [updates, state] = tx.update(np.array(gradients), tx.init(params.ref), params.ref);
  const [next] = tx.update(np.array([0, Number.NaN, 1]), state, params.ref);
  updates.dispose();
  expect([...(await applyUpdates(params, next).data())].map(Number.isNaN)).toEqual([true, true, false]);
});

it.each(WAYS)("trains by %s in a compiled program, and leaves no array behind", async (way) => {
  const tx = gradientTransformation(NAdam, { lr: 0.01, weightDecay: 0.01, clip: { norm: 1 } });
  const gradient = jit((params: { w: np.Array; b: np.Array }) => ({ w: params.w.mul(2), b: params.b.mul(2) }));
  let params = { w: np.ones([2 ** 12, 4]), b: np.ones([4]) };
  let state = tx.init(tree.ref(params));
  const step = async () => {
    [params, state] = stepped(way, tx, gradient(tree.ref(params)), state, params);
    await params.w.blockUntilReady();
    await params.b.blockUntilReady();
  };
  const live = watchSlots();
  for (let i = 0; i < 10; i++) await step();
  const settled = live();
  for (let i = 0; i < (triesAll ? 1000 : 100); i++) await step();
  expect(live()).toBe(settled);
  const saved = await tx.stateDict(tree.ref(state), tree.ref(params));
  tree.dispose(state);
  state = await tx.loadStateDict(saved, tree.ref(params));
  params = await fromTensors(await toTensors(tree.ref(params)), params);
  await step();
  expect(live()).toBe(settled);
  tree.dispose(params);
  tree.dispose(state);
  expect(live()).toBeLessThanOrEqual(0);
});

it.each(WAYS)("%s takes options for one step", async (way) => {
  for (const options of [
    { lr: 0.5 },
    { maximize: true },
    { regularizer: l2(0.5) },
    { clip: { value: 0.1 } },
    { clip: { norm: 0.1 } },
  ] as (Partial<BaseOptions> & GroupOptions)[]) {
    const run = (all: typeof options, one?: typeof options) => {
      const tx = gradientTransformation(SGD as unknown as OptimizerClass<BaseOptions>, all);
      const params = treeOf(values(0), np.float32);
      const state = tx.init(tree.ref(params));
      const gradients = treeOf(values(1), np.float32);
      const [result] =
        way === "step" ? tx.step(gradients, state, params, one) : tx.update(gradients, state, params, one);
      return listOf(result);
    };
    const [whole, once, plain] = [await run(options), await run({}, options), await run({})];
    expect(once).toEqual(whole);
    expect(once).not.toEqual(plain);
  }
});

it.each(WAYS)("leaves of several dtypes have by %s the numbers that each has alone", async (way) => {
  const tx = gradientTransformation(AdamW, { lr: 0.1 }) as GradientTransformation;
  const made = (dtypes: readonly np.DType[]) => dtypes.map((dtype) => np.array([0.3, -2]).astype(dtype));
  const after = async (dtypes: readonly np.DType[]) => {
    let [params, state] = [made(dtypes), tx.init(made(dtypes))];
    for (let i = 0; i < 3; i++) [params, state] = stepped(way, tx, made(dtypes), state, params);
    return Promise.all(params.map(async (leaf) => [...(await leaf.data())]));
  };
  const [narrow, wide] = [await after([np.float32]), await after([np.float64])];
  expect(await after([np.float32, np.float64, np.float32])).toEqual([...narrow, ...wide, ...narrow]);
});
