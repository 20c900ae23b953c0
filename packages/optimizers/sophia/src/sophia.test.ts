import {
  compile,
  enableQ8,
  Generator,
  gatherAlong,
  grad,
  hessian,
  logSoftmax,
  multinomial,
  parameter,
  randn,
  softmax,
  type Tensor,
  tensor,
} from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { hutchinson, Sophia, type SophiaOptions } from "./index";

enableQ8();

optimizerSuite(exported, {
  Sophia: {
    defaults: {
      ...{ lr: 1e-4, betas: [0.965, 0.99], eps: 1e-8, weightDecay: 1e-4, gamma: 0.01, clipThreshold: 1 },
      ...{ maximize: false },
    },
    wrong: {
      ...{ lr: [-1], betas: [[0.9, 1], [0.9]], eps: [0, "1"], weightDecay: [-1], gamma: [-1] },
      ...{ clipThreshold: [0, Number.POSITIVE_INFINITY] },
    },
  },
});

const OPTIONS: Partial<SophiaOptions> = { lr: 0.1, betas: [0.5, 0.75], gamma: 0.5 };
const hessianOf = (optimizer: Sophia, name = "0") => optimizer.stateDict().state[name]!.hessian as Tensor;

/** One run of estimates each third step, from `from` on. */
function train(w: Tensor, optimizer: Sophia, steps: number, { from = 0, isCompiled = false } = {}): number[] {
  const generator = new Generator(3);
  const loss = () => w.sub(1).pow(4).sum();
  const body = {
    estimate() {
      optimizer.zeroGrad();
      hutchinson(loss(), [w], { generator });
      optimizer.updateHessian();
    },
    step() {
      optimizer.zeroGrad();
      loss().backward();
      optimizer.step();
    },
  };
  const [estimate, step] = isCompiled ? [compile(body.estimate), compile(body.step)] : [body.estimate, body.step];
  for (let t = 0; t < steps; t++) {
    if (t % 3 === 0 && t >= from) estimate();
    if (t >= from) step();
  }
  return [...w.dataSync(), ...hessianOf(optimizer).dataSync()];
}

it("compiled has the words of eager, and follows a schedule of betas", () => {
  const run = (isCompiled: boolean) => {
    const w = parameter([2, -1, 0.5]);
    const optimizer = new Sophia([w], OPTIONS);
    return train(w, optimizer, 9, { isCompiled });
  };
  expect(run(true)).toEqual(run(false));
  const w = parameter([1, 2]);
  const optimizer = new Sophia([w], OPTIONS);
  const estimate = compile(() => optimizer.updateHessian());
  let expected = 0;
  for (const beta2 of [0.5, 0.25, 0.875]) {
    optimizer.groups[0]!.betas = [0.5, beta2];
    w.grad = tensor([2, 2]);
    estimate();
    expected = beta2 * expected + (1 - beta2) * 2;
    expect(hessianOf(optimizer).tolist()).toEqual([expected, expected]);
  }
});

it("goes on after a save, before the first step too", () => {
  const whole = parameter([2, -1, 0.5]);
  const expected = train(whole, new Sophia([whole], OPTIONS), 8);
  const w = parameter([2, -1, 0.5]);
  const first = new Sophia([w], OPTIONS);
  train(w, first, 6);
  const second = new Sophia([w]);
  second.loadStateDict(first.stateDict());
  // Signs of (w - 1)^4 do not matter: each element has a second derivative of its own.
  expect(train(w, second, 8, { from: 6 })).toEqual(expected);
  const third = new Sophia([w], OPTIONS);
  w.grad = tensor([2, 4, 8]);
  third.updateHessian();
  second.loadStateDict(third.stateDict());
  expect(hessianOf(second).tolist()).toEqual([0.5, 1, 2]);
});

/** Packed state is of 4096 elements and more; that of float64 stays as it is. */
const SIZES = [
  { size: 4096, dtype: "f32" },
  { size: 10, dtype: "f32" },
  { size: 4097, dtype: "bf16" },
  { size: 5000, dtype: "f64" },
] as const;

describe("updateHessian", () => {
  it.each([
    ["f32", {}, 1e-6],
    ["f64", {}, 1e-15],
    ["bf16", {}, 1e-6],
    ["f32", { stateDType: "bf16" }, 1e-2],
    ["bf16", { stateDType: "bf16" }, 1e-2],
  ] as const)("averages estimates of %s parameters, %o", (dtype, options, tolerance) => {
    const w = parameter([1, 2], { dtype });
    const optimizer = new Sophia([w], { ...OPTIONS, ...options });
    w.grad = tensor([0.75, -3], { dtype });
    optimizer.updateHessian();
    optimizer.updateHessian();
    const share = 0.25 + 0.75 * 0.25;
    expect(hessianOf(optimizer).dataSync()).toAgreeWith([0.75 * share, -3 * share], {
      absolute: 0,
      relative: tolerance,
    });
    expect([w.tolist(), optimizer.stateDict().state["0"]!.step]).toEqual([[1, 2], 0]);
  });

  it.each(["q8", "bf16x", "bf16"] as const)(
    "of parameters whose state is stored in other ways have the words of each alone: %s",
    (stateDType) => {
      const made = (given: readonly number[]) => {
        const params = given.map((i) =>
          parameter(new Float32Array(SIZES[i]!.size), { dtype: SIZES[i]!.dtype, name: `${i}` }),
        );
        const optimizer = new Sophia(params, { ...OPTIONS, stateDType });
        for (const [at, w] of params.entries())
          w.grad = randn([w.size], { generator: new Generator(given[at]!) }).to(w.dtype);
        for (let i = 0; i < 2; i++) optimizer.updateHessian();
        return given.map((i) => [...hessianOf(optimizer, `${i}`).dataSync()]);
      };
      expect(made([0, 1, 2, 3])).toEqual([0, 1, 2, 3].flatMap((i) => made([i])));
    },
  );

  it("negates estimates of what is maximized, and leaves parameters without a gradient alone", () => {
    const [w, other] = [parameter([1]), parameter([1])];
    const optimizer = new Sophia([w, other], { ...OPTIONS, maximize: true });
    w.grad = tensor([-2]);
    optimizer.updateHessian();
    expect(hessianOf(optimizer).tolist()).toEqual([0.5]);
    expect(optimizer.stateDict().state["1"]).toBeUndefined();
  });

  it("takes batchSize * grad^2 of gradients on drawn labels, whose mean is the Hessian's diagonal", () => {
    const generator = new Generator(1);
    const x = tensor([
      [1, 2],
      [-1, 0.5],
      [0.25, -2],
    ]);
    const w = parameter([
      [0.5, -0.25, 0.125],
      [0.25, 0.5, -1],
    ]);
    const ofLabels = (v: Tensor, labels: Tensor) =>
      gatherAlong(logSoftmax(x.matmul(v), 1), labels, 1)
        .mean()
        .neg();
    const optimizer = new Sophia([w], { betas: [0.5, 0.99] });
    const count = 300;
    for (let i = 0; i < count; i++) {
      const labels = multinomial(softmax(x.matmul(w.detach()), 1), 1, { generator });
      optimizer.zeroGrad();
      ofLabels(w, labels).backward();
      optimizer.updateHessian({ batchSize: 3 });
    }
    const second = hessian((v) => ofLabels(v, tensor([[0], [1], [2]], { dtype: "i32" })), w.detach()); // of any labels
    const diagonal = Array.from({ length: 6 }, (_, i) => second.reshape([36]).dataSync()[7 * i]!);
    const averaged = hessianOf(optimizer).div(1 - 0.99 ** count);
    expect(averaged.dataSync()).toAgreeWith(diagonal, { absolute: 0.1, relative: 0 });
  });

  it("rejects a batch size that is not above 0, and other options", () => {
    const optimizer = new Sophia([parameter([1])]);
    expectCode("BAD_ARGUMENT", () => optimizer.updateHessian({ batchSize: 0 }));
    expectCode("BAD_ARGUMENT", () => optimizer.updateHessian({ batchSize: "8" as never }));
    expectCode("BAD_ARGUMENT", () => optimizer.updateHessian({ every: 10 } as never));
  });
});

describe("hutchinson", () => {
  it("is exact where elements do not depend on each other, and adds to gradients", () => {
    const w = parameter([1, -2, 3]);
    for (let i = 0; i < 2; i++) hutchinson(w.pow(3).sum(), [w]);
    expect(w.grad!.tolist()).toEqual([12, -24, 36]);
  });

  it("has the diagonal as its mean", () => {
    const generator = new Generator(7);
    const [a, b] = [
      parameter([1, 2]),
      parameter([
        [0.5, -1],
        [2, 1],
      ]),
    ];
    const loss = () => a.mul(b.matmul(a)).sum().pow(2).add(b.sum().pow(3));
    const of = (x: Tensor) => {
      const [slope] = grad(loss(), [x], { createGraph: true });
      const flat = slope.reshape([x.size]);
      return Array.from({ length: x.size }, (_, i) => grad(flat.at(i), [x], { retainGraph: true })[0].dataSync()[i]!);
    };
    const count = 200;
    for (let i = 0; i < count; i++) hutchinson(loss(), [a, b], { generator });
    for (const x of [a, b]) {
      const expected = of(x);
      const scale = Math.max(...expected.map(Math.abs));
      expect(x.grad!.div(count).dataSync()).toAgreeWith(expected, { absolute: 0.25 * scale, relative: 0 });
    }
  });

  it("gives parameters without curvature no gradient, and rejects a loss that needs none", () => {
    const [w, linear, apart] = [parameter([1, 2]), parameter([1]), parameter([1])];
    hutchinson(w.pow(2).sum().add(linear.sum()), [w, linear, apart]);
    expect(w.grad!.tolist()).toEqual([2, 2]);
    expect([linear.grad, apart.grad]).toEqual([null, null]);
    hutchinson(linear.sum(), [linear]);
    expect(linear.grad).toBeNull();
    expectCode("NO_GRADIENT", () => hutchinson(tensor([1]).sum(), [w]));
    expectCode("BAD_ARGUMENT", () => hutchinson(w.sum(), [w], { seed: 1 } as never));
  });
});
