import { Adadelta } from "@opt/adadelta";
import { Adafactor } from "@opt/adafactor";
import { Adagrad } from "@opt/adagrad";
import { AdEMAMix } from "@opt/ademamix";
import { ASGD } from "@opt/asgd";
import { init, type Optimizer, type Parameters, parameter, tensor } from "@opt/core";
import { Lamb } from "@opt/lamb";
import { Lion } from "@opt/lion";
import { Rprop } from "@opt/rprop";
import { ScheduleFreeAdamW } from "@opt/schedule-free";
import { expect, it } from "vitest";
import { optimizerContents, optimizerState } from "./optimizer-state";

await init("js");

it.each<[string, string, () => unknown]>([
  ["a module's state", "optimizerContents", () => optimizerContents({ weight: parameter([1]) } as never)],
  ["nothing to save", "optimizerContents", () => optimizerContents(undefined as never)],
  ["nothing loaded", "optimizerState", () => optimizerState(undefined as never)],
  ["tensors without their values", "optimizerState", () => optimizerState({ tensors: {} } as never)],
])("rejects %s", (_, where, body) => {
  expect(body).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", where }));
});

it("gives counters that PyTorch keeps as tensors as numbers", () => {
  const [w, exp_avg] = [parameter([1]), tensor([2])];
  const tensors = { w, "w.step": tensor(3), "w.mu_product": tensor(0.5), "w.exp_avg": exp_avg };
  expect(optimizerState({ tensors, values: {} }).state).toEqual({ w: { step: 3, mu_product: 0.5, exp_avg } });
});

it.each([Adadelta, Adafactor, Adagrad, AdEMAMix, ASGD, Lamb, Lion, Rprop, ScheduleFreeAdamW])(
  "finds the state of %o in a file without options",
  (Class) => {
    const make = (w: ReturnType<typeof parameter>) =>
      new (Class as unknown as new (params: Parameters) => Optimizer<never>)([["w", w]]);
    const step = (w: ReturnType<typeof parameter>, optimizer: Optimizer<never>) => {
      w.grad = tensor([1, -2]);
      optimizer.step();
      return [...w.dataSync()];
    };
    const w = parameter([0.5, 3]);
    const optimizer = make(w);
    step(w, optimizer);
    const { w: entry } = optimizer.stateDict().state;
    const states = Object.entries(entry!).map(([key, value]) => [
      `w.${key}`,
      typeof value === "number" ? tensor(value) : value.clone(),
    ]);
    const copy = parameter(w.dataSync().slice());
    const resumed = make(copy);
    resumed.loadStateDict(optimizerState({ tensors: { w: copy, ...Object.fromEntries(states) }, values: {} }));
    expect(step(copy, resumed)).toEqual(step(w, optimizer));
  },
);

const saved = (key?: string) => ({ tensors: {}, values: optimizerContents({ groups: [], state: {} }, key).values });

it.each<[string, string, object, unknown]>([
  ["a key that is not there", "BAD_STATE", saved("critic"), { key: "critik" }],
  ["state under a key, asked for without one", "BAD_STATE", saved("critic"), undefined],
  ["a key of a file that has none", "BAD_STATE", { tensors: { w: tensor([1]) }, values: {} }, { key: "critic" }],
  ["a key that is no option", "BAD_ARGUMENT", saved("critic"), "critic"],
  ["a misspelt option", "BAD_ARGUMENT", saved(), { kye: "critic" }],
])("rejects %s", (_, code, loaded, options) => {
  const message =
    code === "BAD_STATE" ? expect.stringMatching(/under the key "(critik|optimizer|critic)"/) : expect.anything();
  expect(() => optimizerState(loaded as never, options as never)).toThrow(expect.objectContaining({ code, message }));
});

it.each([undefined, "critic"])("gives what was saved under the key %s", (key) => {
  expect(optimizerState(saved(key), key === undefined ? {} : { key })).toEqual({ groups: [], state: {} });
});

it("says what PyTorch's state needs first", () => {
  const tensors = { "model.w": tensor([1]), "optimizer.state.0.exp_avg": tensor([1]) };
  const message = expect.stringContaining("convertCheckpoint");
  expect(() => optimizerState({ tensors, values: {} })).toThrow(
    expect.objectContaining({ code: "BAD_STATE", message }),
  );
});

it.each([
  { groups: [], state: { w: null } },
  { groups: [], state: { w: 0 } },
  { groups: [null], state: {} },
])("will not save a state of %j, which held nothing", (state) => {
  expect(() => optimizerContents(state as never)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
});

it("gives the groups of a file without groups the parameters that it is told, in their order", () => {
  const tensors = { "a.exp_avg": tensor([1]), "b.exp_avg": tensor([2]), a: parameter([1]), b: parameter([1]) };
  const loaded = { tensors, values: {} };
  expect(optimizerState(loaded).groups).toEqual([{ params: ["a", "b"] }]);
  const { groups, state } = optimizerState(loaded, { params: ["b", "a"] });
  expect([groups, Object.keys(state)]).toEqual([[{ params: ["b", "a"] }], ["b", "a"]]);
});
