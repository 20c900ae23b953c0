// A state that is rejected changes nothing and leaves no memory, whichever number or tensor of it is damaged.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { parameter, tensor } from "../create";
import "../index";
import type { OptimizerState } from "../optimizer/state/state-dict";
import { Tensor } from "../tensor/tensor";
import { CombinedOptimizer } from "./combine";
import { Lookahead } from "./lookahead";
import { SAM } from "./sam";
import { scheduleFree } from "./schedule-free";

const both = (params: Tensor[]) => new CombinedOptimizer(params.map((w) => new Momentum([w], { lr: 0.1 })));

const MAKE = {
  Momentum: (params: Tensor[]) => new Momentum(params, { lr: 0.1, averaged: true }),
  CombinedOptimizer: both,
  Lookahead: (params: Tensor[]) => new Lookahead(both(params), { k: 2 }),
  scheduleFree: (params: Tensor[]) => scheduleFree(both(params)),
  SAM: (params: Tensor[]) => new SAM(both(params)),
};

/** By `this`, since a tensor comes as what its toJSON says. */
function told(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const own = this[key];
  return own instanceof Tensor ? [...own.dataSync()] : value;
}
const numbers = (state: OptimizerState) => JSON.stringify(state, told);

it.each(Object.entries(MAKE))("%s", (_, make) => {
  const device = new FakeDevice();
  const params = ["a", "b"].map((name) => parameter([1, 2], { device, name }));
  const optimizer = make(params);
  for (let t = 0; t < 3; t++)
    optimizer.step(() => {
      for (const w of params) w.grad = tensor([0.5, t], { device });
      return tensor(0, { device });
    });
  const { groups, state } = optimizer.stateDict();
  const wrong = tensor([1, 2, 3], { device });
  const before = [numbers(optimizer.stateDict()), device.memory()];
  let count = 0;
  for (const [name, entry] of Object.entries(state))
    for (const [key, value] of Object.entries(entry)) {
      const damaged = { ...state, [name]: { ...entry, [key]: value instanceof Tensor ? wrong : Number.NaN } };
      expectCode("BAD_STATE", () => optimizer.loadStateDict({ groups, state: damaged }));
      expect([numbers(optimizer.stateDict()), device.memory()], `${name} ${key}`).toEqual(before);
      count++;
    }
  expect(count).toBeGreaterThan(3);
});
