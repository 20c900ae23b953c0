// Rules of one's own, and the counters that their scalars come from.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { type Descent, descent, descentBy } from "../../testing/descent";
import { FakeDevice } from "../../testing/fake-backend";
import { f64, first, ones } from "../../testing/single";
import { compile } from "../compile/compile";
import { parameter } from "../create";
import type { Tensor } from "../tensor/tensor";
import type { BaseOptions, Counters } from "./algorithm";

describe("rules", () => {
  it("of one name are still two", () => {
    const device = new FakeDevice();
    const params = [1, 2].map((factor) => {
      const rule = descent("same", "rate", factor);
      const w = parameter([0], { device });
      ones([w]);
      descentBy({ rule: () => rule }, [w]).step();
      return w;
    });
    expect(first(params)).toEqual([-1, -2]);
  });

  it("need all their scalars from the algorithm", () => {
    const w = f64(0);
    ones([w]);
    expectCode("BAD_ARGUMENT", () => descentBy({ scalars: () => ({ lr: 1 }) }, [w]).step());
    expect(first([w])).toEqual([0]);
  });
});

it("eager and compiled steps count on from each other", () => {
  const w = f64(0);
  const rule = descent("descent", "rate", 1);
  const optimizer = descentBy({ rule: () => rule, scalars: (_, { step }) => ({ rate: 10 ** step }) }, [w]);
  ones([w]);
  const compiled = compile(() => optimizer.step());
  const eager = () => optimizer.step();
  for (const step of [compiled, compiled, compiled, eager, compiled]) step();
  expect(first([w])).toEqual([-111110]);
});

it.each<[string, (optimizer: Descent) => void, number]>([
  ["freed", (optimizer) => optimizer.dispose(), 1],
  ["loaded", (optimizer) => optimizer.loadStateDict(optimizer.stateDict()), 5],
])("a compiled step counts on from counters that were %s, if they are all the state there is", (_, change, count) => {
  const params = [f64(0), f64(0)];
  const rule = descent("descent", "rate", 1);
  const optimizer = descentBy({ rule: () => rule }, params);
  ones(params);
  const step = compile(() => optimizer.step());
  for (let i = 0; i < 4; i++) step();
  change(optimizer);
  step();
  expect(Object.values(optimizer.stateDict().state).map(({ step }) => step)).toEqual([count, count]);
  expect(first(params)).toEqual([-5, -5]);
});

describe("counters", () => {
  /** Its second counter is the product of rates, in float64. */
  const initialCounters = { step: 0, product: 1 };
  const advance = ({ step, product }: Counters): Counters => ({ step: step + 1, product: product! * 0.1 });
  const scalars = (_: BaseOptions, { product }: Counters) => ({ rate: product! });
  const make = (params: readonly Tensor[]) => descentBy({ initialCounters, advance, scalars }, params);

  it("are loaded as they were saved, to the last bit", () => {
    const [straight, resumed] = [f64(0), f64(0)];
    ones([straight, resumed]);
    const [whole, saved, loaded] = [make([straight]), make([resumed]), make([resumed])];
    for (const optimizer of [whole, whole, whole, saved]) optimizer.step();
    loaded.loadStateDict(saved.stateDict());
    for (let i = 0; i < 2; i++) loaded.step();
    expect(first([resumed])).toEqual(first([straight]));
  });

  it("with one step count and other numbers stay apart after a load", () => {
    const params = [f64(0), f64(0)];
    const optimizer = make(params);
    ones(params);
    optimizer.step();
    const { groups, state } = optimizer.stateDict();
    optimizer.loadStateDict({ groups, state: { ...state, "1": { ...state["1"]!, product: 10 } } });
    for (const param of params) param.set([0]);
    optimizer.step();
    expect(first(params)).toEqual([-0.1 * 0.1, -1]);
  });

  it("must be finite numbers to be loaded", () => {
    const w = f64(0);
    const optimizer = make([w]);
    ones([w]);
    optimizer.step();
    for (const product of [Number.NaN, Number.POSITIVE_INFINITY, "1", undefined]) {
      const { groups, state } = optimizer.stateDict();
      const damaged = { groups, state: { "0": { ...state["0"]!, product: product as number } } };
      expectCode("BAD_STATE", () => optimizer.loadStateDict(damaged));
    }
  });
});
