import { parameter, type Tensor, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { SGD, type SGDOptions } from "./index";

optimizerSuite(exported, {
  SGD: {
    defaults: { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false },
    wrong: {
      lr: [-1],
      momentum: [-0.1],
      dampening: [Number.NaN],
      weightDecay: [-1],
      nesterov: [true, 1],
      betas: [[0.9, 0.999]],
    },
  },
});

it.each([
  { nesterov: true, momentum: 0.9, dampening: 0.1 },
  { nesterov: 1, momentum: 0.9 },
])("rejects %o", (options) => expectCode("BAD_ARGUMENT", () => new SGD([parameter([1])], options as object)));

function train(options: Partial<SGDOptions>, dtype: "f32" | "bf16" = "f32") {
  const w = parameter([1, 2], { dtype });
  const optimizer = new SGD([w], options);
  const step = (...gradient: number[]) => {
    w.grad = tensor(gradient, { dtype });
    optimizer.step();
  };
  return { w, optimizer, step };
}

it("without momentum has no state, as PyTorch; in bf16 it keeps the float32 copy", () => {
  const [plain, half] = [train({}), train({}, "bf16")];
  for (const { step } of [plain, half]) step(1, -1);
  expect(plain.optimizer.stateDict().state).toEqual({});
  expect(Object.keys(half.optimizer.stateDict().state["0"]!)).toEqual(["step", "master_param"]);
});

it("bf16 lists its float32 copy each time that it is asked since momentum was switched on, also after a load", () => {
  const { step, optimizer } = train({}, "bf16");
  step(0.7, -0.3);
  optimizer.groups[0]!.momentum = 0.8;
  const loaded = train({}, "bf16");
  loaded.optimizer.loadStateDict(optimizer.stateDict());
  for (const each of [optimizer, optimizer, loaded.optimizer, loaded.optimizer])
    expect(Object.keys(each.stateDict().state["0"]!).sort()).toEqual(["master_param", "momentum_buffer", "step"]);
});

it("bf16 keeps its float32 copy when momentum is switched on before a save", () => {
  const [straight, saved] = [train({}, "bf16"), train({}, "bf16")];
  for (const { step, optimizer } of [straight, saved]) {
    step(0.7, -0.3);
    optimizer.groups[0]!.momentum = 0.8;
  }
  const loaded = train({}, "bf16");
  loaded.w.set(saved.w);
  loaded.optimizer.loadStateDict(saved.optimizer.stateDict());
  for (const { step } of [straight, loaded]) for (let i = 0; i < 20; i++) step(0.7, -0.3);
  expect(loaded.w.dataSync()).toAgreeWith(straight.w.dataSync());
});

it("the first momentum is the gradient, sign of zero and dampening notwithstanding, also when momentum comes late", () => {
  const { optimizer, step } = train({ momentum: 0.9, dampening: 0.5 });
  step(-0, 3);
  expect(optimizer.stateDict().state["0"]!.momentum_buffer as Tensor).toSatisfy((buffer: Tensor) =>
    Object.is(buffer.dataSync()[0], -0),
  );
  const late = train({ dampening: 0.5 });
  for (let i = 0; i < 2; i++) late.step(1, 2);
  late.optimizer.groups[0]!.momentum = 0.9;
  late.step(4, 8);
  expect((late.optimizer.stateDict().state["0"]!.momentum_buffer as Tensor).dataSync()).toAgreeWith([4, 8]);
});

it("loads PyTorch's state, which counts no steps: the momentum goes on", () => {
  const { w, optimizer, step } = train({ lr: 1, momentum: 0.5, dampening: 0.5 });
  const group = { ...optimizer.stateDict().groups[0]!, params: ["0"] };
  const state = { "0": { momentum_buffer: tensor([2, 4]) } } as never;
  optimizer.loadStateDict({ groups: [group], state });
  step(2, 0);
  expect(w.dataSync()).toAgreeWith([1 - 2, 2 - 2]);
  expect(optimizer.stateDict().state["0"]!.step).toBe(2);
});

it("rejects invalid state", () => {
  const { optimizer } = train({ momentum: 0.9 });
  const { groups } = optimizer.stateDict();
  for (const entry of [null, 1, {}, { step: 1 }, { step: -1, momentum_buffer: tensor([1, 2]) }]) {
    expectCode("BAD_STATE", () => optimizer.loadStateDict({ groups, state: { "0": entry as never } }));
  }
});
