/** What every optimizer's run must bear: compiled, saved and resumed, in 16 bits, with frozen and with empty parameters. */
import { compile, init, type OptimizerState, parameter, Tensor, tensor } from "@opt/core";
import { triesAll } from "@opt/testkit";
import { optimizerRuns } from "@opt/testkit/optimizers";
import { describe, expect, it } from "vitest";

const device = await init("js");

const DTYPES = ["f32", "f64", "bf16"] as const;
const runs = (await optimizerRuns({ lr: 0.1 })).map((run, i) => ({
  ...run,
  // Most algorithms have three runs: one dtype for each.
  dtypes: triesAll ? DTYPES : [DTYPES[i % 3]!],
}));

describe.each(runs)("$title", ({ Optimizer, options, dtypes }) => {
  function start(dtype: "f32" | "f64" | "bf16" = "f32") {
    const a = parameter([[0.5, -1, 2]], { name: "a", dtype });
    const b = parameter([[3]], { name: "b", dtype });
    const frozen = parameter([[7]], { name: "frozen", dtype });
    const empty = parameter([], { shape: [0, 2], name: "empty", dtype });
    const groups = [{ params: [a, frozen, empty] }, { params: [b], lr: 0.01 }];
    const optimizer = new Optimizer(groups, options);
    const body = () => {
      optimizer.zeroGrad();
      const product = a.slice(0, 1).mul(b).sum();
      a.mul(a).sum().add(product).add(empty.sum()).backward();
      optimizer.step();
    };
    const words = () => [a, b, frozen].map((x) => [...x.dataSync()]);
    return { a, b, frozen, empty, optimizer, body, words };
  }

  it.each(dtypes)("compiled in %s has the bits of eager steps", (dtype) => {
    const [eager, other] = [start(dtype), start(dtype)];
    for (let i = 0; i < 8; i++) eager.body();
    const step = compile(other.body);
    for (let i = 0; i < 8; i++) step();
    expect(other.words()).toEqual(eager.words());
  });

  it.each(dtypes)("saved and resumed in %s goes on, bit for bit", (dtype) => {
    const [straight, saved] = [start(dtype), start(dtype)];
    for (let i = 0; i < 3; i++) for (const { body } of [straight, saved]) body();
    const copied = copyOf(saved.optimizer.stateDict());
    const resumed = start(dtype);
    for (const name of ["a", "b"] as const) resumed[name].set(saved[name]);
    resumed.optimizer.loadStateDict(copied);
    for (let i = 0; i < 9; i++) for (const { body } of [straight, resumed]) body();
    expect(resumed.words()).toEqual(straight.words());
  });

  it("leaves a parameter without a gradient alone, and steps empty ones", () => {
    const { frozen, optimizer, body } = start();
    for (let i = 0; i < 2; i++) body();
    expect([...frozen.dataSync()]).toEqual([7]);
    expect(optimizer.stateDict().state).not.toHaveProperty("frozen");
  });

  it("steps a view's base once, under the view's name", () => {
    const base = tensor([1, 2, 3, 4]);
    const view = base.reshape([2, 2]);
    view.requiresGrad = true;
    view.grad = tensor([1, 1, 1, 1], { shape: [2, 2] });
    const optimizer = new Optimizer([["view", view]], options);
    for (let i = 0; i < 2; i++) optimizer.step(); // the first step of some only begins their state
    expect([...base.dataSync()]).toEqual([...view.dataSync()]);
    expect(base.dataSync()[0]).not.toBe(1);
  });
});

/** What a checkpoint brings: own tensors, plain numbers. */
function copyOf({ groups, state }: OptimizerState): OptimizerState {
  const entries = Object.entries(state).map(([name, entry]) => [
    name,
    Object.fromEntries(Object.entries(entry).map(([key, x]) => [key, x instanceof Tensor ? x.clone() : x])),
  ]);
  return { groups: JSON.parse(JSON.stringify(groups)), state: Object.fromEntries(entries) };
}
