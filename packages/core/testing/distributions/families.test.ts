// What every distribution promises, whatever it computes: the shapes of its batch and its events, also expanded, joined and transformed, and
// that its statistics belong together.
import { Random } from "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  AffineTransform,
  type Distribution,
  ExpTransform,
  Independent,
  SigmoidTransform,
  TanhTransform,
  type Transform,
  TransformedDistribution,
} from "../../src/distributions";
import { Generator, grad, init, type Tensor, tensor, tidy } from "../../src/index";
import { Draw } from "../draw";
import { FAMILIES, type Method, placeOf } from "./families";

await init("js");

/** What has one number for each of the batch; the others have one for each number of an event. */
const OF_BATCH = /entropy|perplexity|logProb/;
const COUNT = 100;
const NEAR = { absolute: 1e-9, relative: 1e-9 };
const numbers = (x: Tensor) => [...x.dataSync()];

/** A distribution by the seed, in one of three forms, with values and what it has. */
function drawn(name: string, seed: number) {
  const draw = new Draw(new Random(seed), ["f64"]);
  const { parameters, make, value, methods } = FAMILIES[name]!;
  const inputs = parameters(draw, placeOf(draw, true));
  const plain = make(...inputs.map(({ values, shape, dtype }) => tensor(Array.from(values), { shape, dtype })));
  const given = value(draw, plain.batchShape, inputs);
  const values = tensor(Array.from(given.values), { shape: given.shape, dtype: given.dtype });
  const others = methods.filter((method) => !/cdf/.test(method));
  if (seed % 3 === 0)
    return { of: new Independent(plain, draw.int(plain.batchShape.length + 1)), values, methods: others };
  if (seed % 3 === 1 || values.dtype !== "f64") return { of: plain, values, methods };
  const of = new TransformedDistribution(plain, new AffineTransform(0.5, -2));
  return { of, values: values.mul(-2).add(0.5), methods: methods.filter((method) => /cdf/.test(method)) };
}

function statistic(of: Distribution, method: Method | "logProb", values: Tensor): Tensor {
  if (method === "logProb" || method === "cdf") return of[method](values);
  if (method === "icdf") return of.icdf(of.cdf(values));
  return method === "entropy" || method === "perplexity" ? of[method]() : of[method];
}

function check({ of, values, methods }: ReturnType<typeof drawn>): void {
  const wide = of.expand([2, ...of.batchShape]);
  expect([wide.batchShape, wide.eventShape]).toEqual([[2, ...of.batchShape], of.eventShape]);
  const found: Partial<Record<Method | "logProb", number[]>> = {};
  for (const method of ["logProb", ...methods] as const) {
    const [own, other] = [of, wide].map((each) => statistic(each, method, values)) as [Tensor, Tensor];
    const shape = OF_BATCH.test(method) ? of.batchShape : [...of.batchShape, ...of.eventShape];
    expect([own.shape, other.shape], method).toEqual([shape, [2, ...shape]]);
    found[method] = numbers(own);
    expect(numbers(other), method).toAgreeWith([...found[method], ...found[method]], NEAR);
  }
  const { mean, variance, stddev, entropy, perplexity, cdf, icdf, logProb } = found;
  if (variance && stddev) expect(stddev.map((x) => x * x)).toAgreeWith(variance, NEAR);
  for (const [i, x] of mean?.entries() ?? []) if (Number.isNaN(x)) expect(variance?.[i] ?? x).toBeNaN();
  if (entropy && perplexity) expect(perplexity).toAgreeWith(entropy.map(Math.exp), NEAR);
  if (icdf) expect(icdf).toAgreeWith(numbers(values), { absolute: 1e-6, relative: 1e-6 });
  if (cdf) {
    values.requiresGrad = true;
    const [slope] = grad(of.cdf(values).sum(), [values]);
    expect(numbers(slope.abs())).toAgreeWith(logProb!.map(Math.exp), { absolute: 1e-7, relative: 1e-7 });
  }
  const [all, batch] = [numbers(of.logProb(of.sample([COUNT], { generator: new Generator(7) }))), of.batchShape];
  for (const [i, expected] of entropy?.entries() ?? []) {
    const own = all.filter((_, at) => at % entropy!.length === i);
    const mean = own.reduce((a, b) => a + b, 0) / COUNT;
    const deviation = Math.sqrt(own.reduce((a, b) => a + (b - mean) ** 2, 0) / COUNT);
    expect(Math.abs(mean + expected), `samples of ${i} in [${batch}]`).toBeLessThan(
      (5 * deviation) / Math.sqrt(COUNT) + 1e-6,
    );
  }
  const sample = wide.sample([3], { generator: new Generator(1) });
  expect(sample.shape).toEqual([3, ...wide.batchShape, ...wide.eventShape]);
  expect(wide.logProb(sample).shape).toEqual([3, ...wide.batchShape]);
}

it.each(Object.keys(FAMILIES))(
  "%s has the shapes it says, also expanded, and statistics that belong together",
  (name) => {
    for (let seed = 0; seed < 6; seed++) tidy(() => check(drawn(name, seed)));
  },
);

it("a transform that keeps its last pair computes as one that does not, also when what it kept was freed", () => {
  const made: readonly ((cacheSize: 0 | 1) => Transform)[] = [
    (cacheSize) => new AffineTransform(0.5, 2, { cacheSize }),
    (cacheSize) => new ExpTransform({ cacheSize }),
    (cacheSize) => new SigmoidTransform({ cacheSize }),
    (cacheSize) => new TanhTransform({ cacheSize }),
  ];
  const step = fc.tuple(fc.constantFrom("forward", "inverse", "free"), fc.nat(9));
  fc.assert(
    fc.property(fc.constantFrom(...made), fc.array(step, { minLength: 2, maxLength: 8 }), (make, steps) => {
      const [keeping, plain] = [make(1), make(0)];
      const known = [tensor([0.25, 0.5], { dtype: "f64" })];
      for (const [what, at] of steps) {
        const x = known[at % known.length]!;
        if (what === "free") {
          if (known.length > 1) known.splice(known.indexOf(x), 1)[0]!.dispose();
          continue;
        }
        const [y, expected] = [keeping[what](x), numbers(plain[what](x))];
        if (!expected.every((value) => Math.abs(value) < 4)) continue; // beyond where the numbers tell their inverse
        expect(numbers(y)).toAgreeWith(expected, { absolute: 1e-6, relative: 1e-6 });
        if (!known.includes(y)) known.push(y);
      }
    }),
    { numRuns: 60, seed: 48 },
  );
});
