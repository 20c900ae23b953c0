// Results of compiled functions: no later call overwrites one, and none is what the program holds elsewhere.
import { expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { compile, init, noGrad, parameter, type Tensor, tensor, tidy } from "../index";

await init("js"); // loads the passes

const numbers = (x: Tensor) => [...x.dataSync()];

/** Each function overwrites `w` or its argument after the result, or before. */
const bodies: Record<string, (w: Tensor, x: Tensor) => Tensor> = {
  "detach of a parameter": (w) => w.detach(),
  "a parameter itself": (w) => w,
  "a view of a parameter": (w) => w.reshape([2, 1]),
  "an argument": (_, x) => x,
  "a view of an argument": (_, x) => x.reshape([1, 2]),
  "a result beside it": (w, x) => w.mul(x).detach(),
};

for (const check of ["never", "spaced", "always"] as const) {
  it.each(Object.entries(bodies))(`%s is left alone by later calls (check: ${check})`, (_, body) => {
    const device = new FakeDevice();
    const w = parameter([1, 2], { device });
    const step = compile(
      (x: Tensor) => {
        noGrad(() => w.set(w.add(x)));
        const result = body(w, x);
        x.set(x.add(1));
        return result;
      },
      { check },
    );
    const [eagerW, x, eagerX] = [1, 2, 3].map(() => tensor([1, 2], { device })) as [Tensor, Tensor, Tensor];
    const results: Tensor[] = [];
    const expected: number[][] = [];
    for (let i = 0; i < 6; i++) {
      eagerW.set(eagerW.add(eagerX));
      const seen = body(eagerW, eagerX);
      eagerX.set(eagerX.add(1));
      expected.push(numbers(seen));
      results.push(step(x));
    }
    expect(results.map(numbers)).toEqual(expected);
    for (const result of results) result.dispose();
    expect([numbers(w), numbers(x)]).toEqual([numbers(eagerW), numbers(eagerX)]);
  });
}

it("a gradient is left alone by later calls, which accumulate into it", () => {
  const w = parameter([1, 2]);
  const step = compile((x: Tensor) => {
    w.mul(x).sum().backward();
    return w.grad!;
  });
  const results = Array.from({ length: 6 }, () => step(tensor([1, 10])));
  expect(results.map(numbers)).toEqual([1, 2, 3, 4, 5, 6].map((i) => [i, 10 * i]));
  for (const result of results) result.dispose();
  expect(numbers(w.grad!)).toEqual([6, 60]);
});

it("a tensor in an outer variable says that it is to be returned", () => {
  let outer: Tensor | undefined;
  const inside = (x: Tensor) => {
    outer = x.mul(2);
    return x.add(1);
  };
  const advice = /Return it from the compiled function/;
  const x = tensor([1]);
  compile(inside)(x);
  expect(() => outer!.dataSync()).toThrow(advice);
  compile((x: Tensor) => tidy(() => inside(x)))(x);
  expect(() => outer!.dataSync()).toThrow(advice);
  tidy(() => inside(x));
  expect(() => outer!.dataSync()).toThrow(/keep\(\) it/);
});
