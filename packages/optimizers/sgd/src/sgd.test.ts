import { parameter, type Tensor, tensor, viewAsComplex, viewAsReal } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { describe, expect, it } from "vitest";
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

/** PyTorch 2.13: three steps with lr 0.1 and gradients g, 2 g and 3 g. The products of complex numbers round before they are added. */
const COMPLEX: [Partial<SGDOptions>, string][] = [
  [{}, "3e6f9db4 3f6c0831 bfc4dd2f 3db020c6 3f9a5e35 bf65e354 3fc353f8 3f6f1a9f"],
  [{ momentum: 0.9 }, "3e481452 3f86a3ad bfe5a954 3c9e3004 3fb14802 bf983bf8 3fb64c83 3f384ab4"],
  [
    { momentum: 0.9, dampening: 0.1, weightDecay: 0.01 },
    "3e4e29a3 3f82eb31 bfde8311 3d000d36 3fac326c bf90af29 3fb7af60 3f413866",
  ],
  [
    { momentum: 0.9, nesterov: true, weightDecay: 0.05 },
    "3e03ef77 3f9a9002 c00733d1 bda9dc46 3fcd12ff bfcae73e 3f9b331c 3ebb1138",
  ],
  [{ weightDecay: 0.01, maximize: true }, "3ebae8bd 3ef3bcd4 bf28b3e8 3ea06c16 3f176cfa 3dca7ab8 3fef347c 3fd4b7d3"],
];

describe.each(COMPLEX)("complex parameters with %j", (options, words) => {
  const complex = (parts: number[]) => viewAsComplex(tensor(parts).reshape([-1, 2]));
  const gradient = [0.11, -0.37, 0.73, 0.19, -0.51, 0.83, 0.29, 0.61].map(Math.fround);
  const gradients = [1, 2, 3].map((k) => complex(gradient.map((part) => k * part)));
  const weights = complex([0.3, 0.7, -1.1, 0.2, 0.9, -0.4, 1.7, 1.3]);
  const wordsOf = (w: Tensor) =>
    [...new Uint32Array(new Float32Array(viewAsReal(w).dataSync()).buffer)]
      .map((word) => word.toString(16).padStart(8, "0"))
      .join(" ");

  it("have PyTorch's words", () => {
    const w = parameter(weights);
    const optimizer = new SGD([w], { lr: 0.1, ...options });
    for (const grad of gradients) {
      w.grad = grad;
      optimizer.step();
    }
    expect(wordsOf(w.detach())).toBe(words);
  });
});

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
