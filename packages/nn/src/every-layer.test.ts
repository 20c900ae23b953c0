// What every layer and function promises, whatever it computes: recomputed, loaded and moved it is the same, and it draws from its own generator.
import {
  type DType,
  defaultGenerator,
  Generator,
  init,
  manualSeed,
  OptError,
  rand,
  randint,
  recompute,
  Tensor,
} from "@opt/core";
import { storedCodes } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FUNCTIONS, LAYERS } from "../testing/valid-arguments";
import * as nn from "./index";

await init("js");

const expectStored = storedCodes(new URL("../testing/goldens/dtype-codes.json", import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: any layer
type Any = any;

/** Arguments with other tensors in the places of those of a dtype. */
function exchanged(value: unknown, dtype: DType, change: (x: Tensor) => Tensor): unknown {
  if (value instanceof Tensor) return value.dtype === dtype ? change(value) : value;
  if (Array.isArray(value)) return value.map((item) => exchanged(item, dtype, change));
  if (Object.getPrototypeOf(Object(value)) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value as object).map(([name, item]) => [name, exchanged(item, dtype, change)]),
  );
}

/** Numbers from 0.1 to 0.9 in the place of those of floats. */
const drawn = (value: unknown) =>
  exchanged(value, "f32", ({ shape }) => Object.assign(rand(shape).mul(0.8).add(0.1).detach(), { requiresGrad: true }));

const tensorsIn = (value: unknown): Tensor[] =>
  value instanceof Tensor ? [value] : Object(value) === value ? Object.values(value as object).flatMap(tensorsIn) : [];
const numbers = (tensors: Iterable<Tensor | null>) =>
  [...tensors].map((x) => x && [x.dtype, x.shape, [...x.dataSync()]]);

type Make = () => nn.Module;
const MADE: readonly (readonly [string, Make, () => unknown[]])[] = [
  ...Object.entries(LAYERS).map(
    ([name, [made, given]]) => [name, () => new (nn as Any)[name](...made()), given] as const,
  ),
  ["Linear of weightNorm", () => nn.weightNorm(new nn.Linear(3, 2)), LAYERS.Linear![1]],
  ["Linear of spectralNorm", () => nn.spectralNorm(new nn.Linear(3, 2)), LAYERS.Linear![1]],
  ["Conv2d of spectralNorm", () => nn.spectralNorm(new nn.Conv2d(1, 2, 1), "weight", { axis: -1 }), LAYERS.Conv2d![1]],
];

/** Results, gradients, and the state afterwards of two forwards in training. */
function outcome(
  make: Make,
  given: () => unknown[],
  forward: (layer: Any, inputs: unknown[]) => unknown,
  change = (layer: Any): Any => layer,
) {
  manualSeed(1);
  const made = make();
  for (const x of made.parameters()) x.set(rand(x.shape)); // as by training: vectors of spectralNorm lag behind
  const layer = change(made);
  manualSeed(2);
  const seen = [1, 2].map(() => {
    const inputs = drawn(given()) as unknown[];
    const outputs = tensorsIn(forward(layer, inputs));
    const losses = outputs.filter(({ requiresGrad }) => requiresGrad).map((x) => x.mul(x).mul(3).sum());
    if (losses.length > 0) losses.reduce((a, b) => a.add(b)).backward();
    return [numbers(outputs), numbers(tensorsIn(inputs).map(({ grad }) => grad))];
  });
  const gradients = numbers(layer.parameters().map(({ grad }: Tensor) => grad));
  return { seen, gradients, state: numbers(Object.values(layer.stateDict())) };
}

const forward = (layer: Any, inputs: unknown[]) => layer.forward(...inputs);

describe.each(MADE)("%s", (_, make, given) => {
  it("is the same where it is computed again in backward", () => {
    const again = outcome(make, given, (layer, inputs) => recompute((...all) => layer.forward(...all), ...inputs));
    expect(again).toEqual(outcome(make, given, forward));
  });

  it("is the same loaded into another one, or moved and moved back", () => {
    const usual = outcome(make, given, forward);
    const loaded = (layer: Any) => {
      const other = make() as Any;
      for (const [, x] of other.namedTensors()) x.set(x.detach().mul(0));
      other.loadStateDict(layer.stateDict());
      return other;
    };
    expect(outcome(make, given, forward, loaded)).toEqual(usual);
    expect(outcome(make, given, forward, (layer) => layer.to("f64").to("f32"))).toEqual(usual);
  });
});

it.each(MADE)(
  "%s gives floats of the dtype that all of it has, also without what may be left out",
  (_, make, given) => {
    for (const dtype of ["f64", "f16", "bf16"] as const) {
      const inputs = exchanged(given(), "f32", (x) => x.to(dtype)) as unknown[];
      for (let count = inputs.length; count > 0; count--) {
        try {
          const floats = tensorsIn(forward(make().to(dtype), inputs.slice(0, count))).filter((x) => /f/.test(x.dtype));
          expect(floats.map((x) => x.dtype)).toEqual(floats.map(() => dtype));
        } catch (error) {
          if (!(error instanceof OptError) || count === inputs.length) throw error;
        }
      }
    }
  },
);

/** The arguments with a generator among the options, which are last. */
function withGenerator(args: unknown[], generator: Generator): unknown[] {
  const last = args.at(-1);
  const isOptions = Object.getPrototypeOf(Object(last)) === Object.prototype;
  return isOptions ? [...args.slice(0, -1), { ...(last as object), generator }] : [...args, { generator }];
}

/** What each draws, once its arguments are there. */
type Drawing = (generator: Generator) => () => Tensor[];
const DRAWING: [string, Drawing][] = [
  ...Object.entries(LAYERS).map(([name, [made, given]]): [string, Drawing] => [
    name,
    (generator) => {
      const [args, inputs] = [withGenerator(made(), generator), given()];
      return () => {
        const layer = new (nn as Any)[name](...args);
        return [...Object.values<Tensor>(layer.stateDict()), ...tensorsIn(layer.forward(...inputs))];
      };
    },
  ]),
  ...Object.entries(FUNCTIONS).map(([name, valid]): [string, Drawing] => [
    name,
    (generator) => {
      const args = withGenerator(valid(), generator);
      return () => {
        const result = (nn as Any)[name](...args);
        return result instanceof nn.Module ? Object.values(result.stateDict()) : tensorsIn(result);
      };
    },
  ]),
];

function takesGenerator([, run]: [string, Drawing]): boolean {
  try {
    run(new Generator(1))();
    return true;
  } catch {
    return false;
  }
}

it.each(DRAWING.filter(takesGenerator))("%s draws from its own generator alone", (_, run) => {
  const [one, other] = [5, 5].map((seed) => {
    manualSeed(3); // of the modules among the arguments
    return run(new Generator(seed));
  }) as [() => Tensor[], () => Tensor[]];
  const before = defaultGenerator.stateDict();
  const first = numbers(one());
  expect(defaultGenerator.stateDict()).toEqual(before);
  expect(numbers(other())).toEqual(first);
});

/** As PyTorch's images of bytes, their results are rounded to the dtype of the input. */
const ROUNDED = ["Upsample", "interpolate"];
const CALLS: [string, (args: (given: unknown[]) => unknown[]) => unknown][] = [
  ...MADE.map(([name, make, given]): [string, (args: (given: unknown[]) => unknown[]) => unknown] => [
    name,
    (args) => forward(make().eval(), args(given())),
  ]),
  ...Object.entries(FUNCTIONS).map(([name, valid]): [string, (args: (given: unknown[]) => unknown[]) => unknown] => [
    name,
    (args) => (nn as Any)[name](...args(valid())),
  ]),
];

it.each(CALLS)("%s computes with integers what it computes, or rejects them", (name, call) => {
  /** Of numbers or indices in one dtype; the code where it is rejected. */
  const outcome = (from: DType, to: DType): Float64Array[] | string => {
    manualSeed(4);
    let given: Tensor[] = [];
    try {
      const result = call((args) => {
        const others = exchanged(args, from, (x) => (from === "f32" ? randint(0, 2, x.shape) : x).to(to)) as unknown[];
        given = tensorsIn(others);
        return others;
      });
      const results = tensorsIn(result).filter((x) => !given.includes(x)); // what fills a tensor rounds to its dtype
      return results.map((x) => Float64Array.from(x.dataSync()));
    } catch (error) {
      if (error instanceof OptError) return error.code;
      throw error;
    }
  };
  const codes = (
    [
      ["f32", "i32"],
      ["f32", "u8"],
      ["i32", "u8"],
    ] as const
  ).map(([from, to]) => {
    const [usual, other] = [outcome(from, from), outcome(from, to)];
    if (typeof usual === "string" || typeof other === "string") return String(other);
    const rounded = (values: Float64Array) =>
      ROUNDED.includes(name) ? values.map((x) => Math.floor(x + 0.5)) : values;
    for (const [i, values] of other.entries())
      expect(values).toAgreeWith(rounded(usual[i]!), { absolute: 1e-5, relative: 1e-5 });
    return "";
  });
  expectStored(name, codes);
});
