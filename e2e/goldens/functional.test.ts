// Steps as functions: the numbers of the classes, and gradients through ten steps as PyTorch's. OPT_TORCH_PYTHON names a Python that makes those afresh.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Device, type DType, functional, grad, init, listDevices, parameter, type Tensor, tensor } from "@opt/core";
import { type OptimizerOptions, readGoldenJson, sample, seededArray, torchPython, withoutTorch } from "@opt/testkit";
import { optimizerClasses, optimizerRuns } from "@opt/testkit/optimizers";
import { describe, expect, it } from "vitest";

const classes = await optimizerClasses();
/** Steps of matrices are not differentiated through. */
const runs = (await optimizerRuns()).filter(({ isElementwise }) => isElementwise);

interface Case {
  readonly name: string;
  readonly options: OptimizerOptions;
  readonly learned: readonly string[];
  readonly params: number[];
  /** By the first weights, then by each number of the learned options. */
  readonly gradients: (number | number[])[];
}
interface Goldens {
  readonly steps: number;
  readonly start: number[];
  readonly curvature: number[];
  readonly cases: readonly Case[];
}

const goldens = readGoldenJson<Goldens>("hypergradients.json");
const script = new URL("../../packages/testkit/goldens/hypergradients.py", import.meta.url);
const available = (await listDevices()).filter((device) => device.available).map(({ name }) => name);
const devices = ["js", "wasm", "cpu"].filter((name) => available.includes(name));

/** The weights after the steps, and the gradients of their squares' sum. */
function unrolled({ name, options, learned }: Case, device: Device): { params: Tensor; gradients: Tensor[] } {
  const first = parameter(goldens.start, { dtype: "f64", device });
  const leaves = [first];
  const leaf = (value: number) => {
    leaves.push(parameter(value, { dtype: "f64", device }));
    return leaves.at(-1)!;
  };
  const given = Object.entries(options).map(([key, value]) => {
    if (!learned.includes(key)) return [key, value];
    return [key, Array.isArray(value) ? value.map(leaf) : leaf(value as number)];
  });
  const optimizer = functional(classes[name]!, Object.fromEntries(given));
  const curvature = tensor(goldens.curvature, { dtype: "f64", device });
  let params: Tensor[] = [first];
  let state = optimizer.init(params);
  for (let step = 0; step < goldens.steps; step++) {
    const [w] = params as [Tensor];
    const loss = curvature.mul(w).mul(w).sum().add(w.pow(4).sum().mul(0.1));
    ({ params, state } = optimizer.update(grad(loss, params, { createGraph: true }), state, params));
  }
  const [w] = params as [Tensor];
  return { params: w, gradients: grad(w.mul(w).sum(), leaves) };
}

const close = { absolute: 1e-9, relative: 0 };

describe.each(devices)("gradients through ten steps on %s", (on) => {
  it.each(goldens.cases.map((each) => [`${each.name} by ${["first weights", ...each.learned].join(", ")}`, each] as const))(
    "%s",
    async (_, expected) => {
      const { params, gradients } = unrolled(expected, await init(on));
      expect(params.dataSync()).toAgreeWith(expected.params, close);
      for (const [i, gradient] of gradients.entries()) {
        expect(gradient.dataSync()).toAgreeWith([expected.gradients[i]!].flat(), close);
      }
    },
  );
});

const PLACES: DType = "f64";

/** The squares' sum after three steps by these options, all of which are tensors if they are numbers. */
function squaresAfter(Optimizer: (typeof runs)[number]["Optimizer"], options: Readonly<Record<string, unknown>>): Tensor {
  const optimizer = functional(Optimizer, options);
  let params: Tensor[] = [tensor([0.7, -1.3, 0.4], { dtype: PLACES })];
  let state = optimizer.init(params);
  for (const gradient of [[0.3, -0.8, 0.5], [0.6, -0.2, 0.9], [-0.4, -0.5, 0.7]])
    ({ params, state } = optimizer.update([tensor(gradient, { dtype: PLACES })], state, params));
  return params[0]!.square().sum();
}

/** The places of the numbers among options: a name, or a name and a place in a pair. */
function numbersIn(options: Readonly<Record<string, unknown>>): [name: string, index: number | null, value: number][] {
  return Object.entries(options).flatMap(([name, value]): [string, number | null, number][] => {
    if (typeof value === "number") return [[name, null, value]];
    const isList = Array.isArray(value) && name !== "params" && name !== "names";
    return isList ? value.flatMap((each, i) => (typeof each === "number" ? [[name, i, each] as [string, number, number]] : [])) : [];
  });
}

/** Counts of steps, and what Nesterov's momentum does not go with. */
const isFixed = (name: string, { nesterov }: Readonly<Record<string, unknown>>) =>
  name === "warmupSteps" || (name === "dampening" && nesterov === true);

/** Near 0 the slopes are steep, and rounding hides them. */
const TINY = 1e-6;

describe("the gradient by each option is the slope between its neighbours", () => {
  it.each(runs)("$title", ({ Optimizer, options }) => {
    const { params: _, names: __, ...all } = new Optimizer([parameter([1])], options).groups[0]!;
    const places = numbersIn(all).filter(([name]) => !isFixed(name, all));
    expect(places.length).toBeGreaterThan(0);
    for (const [name, index, given] of places) {
      const value = given > 0 && given < TINY ? 1e-2 : given;
      const by = (leaf: Tensor) => {
        const list = all[name] as number[];
        return squaresAfter(Optimizer, { ...options, [name]: index === null ? leaf : list.map((each, i) => (i === index ? leaf : each)) });
      };
      const at = (moved: number) => by(tensor(moved, { dtype: PLACES })).dataSync()[0]!;
      const h = value === 0 ? 1e-5 : 1e-3 * (value < 1 ? Math.min(value, 1 - value) : value);
      const across = (far: number) => (at(value + far) - at(value - far)) / (2 * far);
      // At 0 the option ends, so the slope is taken from above.
      const slope = value === 0 ? (4 * at(h) - at(2 * h) - 3 * at(0)) / (2 * h) : (4 * across(h) - across(2 * h)) / 3;
      const leaf = parameter(value, { dtype: PLACES });
      const squares = by(leaf);
      if (squares.requiresGrad) squares.backward(); // ASGD's averages are no part of it
      const gradient = leaf.grad?.dataSync()[0] ?? 0;
      const distance = Math.abs(gradient - slope) / Math.max(1, Math.abs(slope));
      expect(distance, `${name}${index ?? ""}: ${gradient}, and ${slope} by its neighbours`).toBeLessThan(1e-7);
    }
  });
});

it.skipIf(torchPython === undefined)(`PyTorch still says what the goldens say${withoutTorch}`, () => {
  const fresh: Goldens = JSON.parse(execFileSync(torchPython as string, [fileURLToPath(script)], { encoding: "utf8" }));
  const numbers = ({ cases }: Goldens) => cases.flatMap(({ params, gradients }) => [...params, ...gradients.flat()]);
  expect(numbers(fresh)).toAgreeWith(numbers(goldens), { absolute: 1e-12, relative: 1e-12 });
});

describe.each(["f32", "f64"] as const)("the class's bits in %s", (dtype) => {
  describe.each(devices)("on %s", (on) => {
    // The ops are those of rules, which the contract suite compares on each device.
    it.each(on === "js" ? runs : sample(runs))("$title", async ({ name, Optimizer, options }) => {
      const device = await init(on);
      const drawn = (seed: number) => seededArray(dtype as "f32", 9, { seed });
      const step = (given: object) => {
        const optimizer = functional(Optimizer, given);
        let params: Tensor[] = [tensor(drawn(1), { device })];
        let state = optimizer.init(params);
        for (let i = 0; i < 8; i++) {
          ({ params, state } = optimizer.update([tensor(drawn(i + 2), { device })], state, params));
        }
        return { w: params[0]!, state: state[0]! };
      };
      const w = parameter(drawn(1), { device });
      const optimizer = new Optimizer([w], options);
      for (let i = 0; i < 8; i++) {
        w.grad = tensor(drawn(i + 2), { device });
        optimizer.step();
      }
      const pure = step({ ...options, lr: optimizer.groups[0]!.lr });
      expect(pure.w.dataSync()).toAgreeWith(w.dataSync());
      const { "0": saved } = optimizer.stateDict().state;
      for (const [key, value] of Object.entries(saved ?? {})) {
        if (typeof value === "number") expect(pure.state[key]).toBe(value);
        else expect((pure.state[key] as Tensor).dataSync()).toAgreeWith(value.dataSync());
      }
      // A learning rate that is a tensor: the counters that PyTorch keeps in float32 are finer in float64.
      const learned = step({ ...options, lr: tensor([optimizer.groups[0]!.lr], { dtype: "f64", device }) });
      const isFiner = (name === "NAdam" || name === "ASGD") && dtype === "f64";
      if (!isFiner) expect(learned.w.dataSync()).toAgreeWith(w.dataSync());
      else expect(learned.w.dataSync()).toAgreeWith(w.dataSync(), { absolute: 1e-8, relative: 1e-8 });
    });
  });
});
