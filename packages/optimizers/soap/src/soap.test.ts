import { compile, parameter, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { SOAP } from "./index";

optimizerSuite(exported, {
  SOAP: {
    defaults: {
      ...{ lr: 3e-3, betas: [0.95, 0.95], shampooBeta: null, eps: 1e-8, weightDecay: 0.01 },
      ...{ preconditionFrequency: 10, maxPreconditionerDim: 10000, maximize: false },
    },
    wrong: {
      ...{ lr: [-1], betas: [[0.9, 1], [0.9]], shampooBeta: [1, "0.9"], eps: [-1], weightDecay: [-1] },
      ...{ preconditionFrequency: [0, 1.5], maxPreconditionerDim: [0] },
    },
  },
});

it("stores its state in float32", () => {
  expectCode("UNSUPPORTED", () => new SOAP([parameter([[1]])], { stateDType: "bf16" }));
});

const gradientAt = (t: number) => tensor([0, 1, 2, 3, 4, 5].map((i) => Math.sin(t * (i + 1)))).reshape([2, 3]);

it("compiled has the words of eager, over refreshes of the bases", () => {
  const [eager, compiled] = [0, 1].map(() => {
    const w = parameter([
      [1, -2, 3],
      [0.5, 4, -1],
    ]);
    return { w, optimizer: new SOAP([w], { lr: 0.1, preconditionFrequency: 3 }) };
  }) as [{ w: ReturnType<typeof parameter>; optimizer: SOAP }, { w: ReturnType<typeof parameter>; optimizer: SOAP }];
  const step = compile(() => compiled.optimizer.step());
  for (let t = 1; t <= 14; t++) {
    for (const { w } of [eager, compiled]) w.grad = gradientAt(t);
    eager.optimizer.step();
    step();
    expect(compiled.w.tolist()).toEqual(eager.w.tolist());
  }
});

it("two steps in one compiled function refresh when their turn comes", () => {
  const [one, two] = [parameter([[1, -2, 3]]), parameter([[1, -2, 3]])];
  const [eager, inside] = [one, two].map((w) => new SOAP([w], { lr: 0.1, preconditionFrequency: 3 })) as [SOAP, SOAP];
  const both = compile(() => {
    inside.step();
    inside.step();
  });
  for (let t = 1; t <= 12; t++) {
    for (const w of [one, two]) w.grad = tensor([[Math.sin(t), 2, -1]]);
    eager.step();
    eager.step();
    both();
    expect(two.tolist()).toEqual(one.tolist());
  }
});

it("leaves the parameter alone in its first step, and goes on after a save", () => {
  const w = parameter([
    [1, 2, 3],
    [3, 4, 5],
  ]);
  const optimizer = new SOAP([w], { preconditionFrequency: 2 });
  const step = (t: number) => {
    w.grad = gradientAt(t);
    optimizer.step();
  };
  step(1);
  expect(w.tolist()).toEqual([
    [1, 2, 3],
    [3, 4, 5],
  ]);
  for (let t = 2; t <= 4; t++) step(t);
  const again = parameter(w.clone());
  const other = new SOAP([again], { preconditionFrequency: 2 });
  other.loadStateDict(optimizer.stateDict());
  for (let t = 5; t <= 9; t++) {
    step(t);
    again.grad = gradientAt(t);
    other.step();
  }
  expect(again.tolist()).toEqual(w.tolist());
});
