import { compile, parameter, type Tensor, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { DAdaptAdamW, type DAdaptAdamWOptions, Prodigy, type ProdigyOptions } from "./index";

optimizerSuite(exported, {
  Prodigy: {
    defaults: {
      ...{ lr: 1, betas: [0.9, 0.999], beta3: null, eps: 1e-8, weightDecay: 0, d0: 1e-6, dCoef: 1 },
      ...{ safeguardWarmup: false, maximize: false },
    },
    wrong: {
      ...{ lr: [-1], betas: [[0.9, 1], [0.9]], beta3: [1, "0.9"], eps: [-1], weightDecay: [-1] },
      ...{ d0: [0, Number.NaN], dCoef: [-1], safeguardWarmup: [1] },
    },
  },
  DAdaptAdamW: {
    defaults: { lr: 1, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, d0: 1e-6, maximize: false },
    wrong: { lr: [-1], betas: [[0.9, 1]], eps: [0], weightDecay: [-1], d0: [0], dCoef: [1] },
  },
});

const gradientAt = (t: number, k: number) => [1, 2, 3].map((i) => Math.sin(t * (3 * k + i)) + 1);
const distanceOf = (optimizer: Prodigy | DAdaptAdamW, name = "0") =>
  (optimizer.stateDict().state[name]!.d as Tensor).dataSync()[0]!;

/** The words of three parameters after steps, and of their d. */
function run(make: (params: Tensor[]) => Prodigy | DAdaptAdamW, steps = 12, isCompiled = false) {
  const params = [0, 1, 2].map((k) => parameter([1 + k, -2, 3]));
  const optimizer = make(params);
  const step = isCompiled ? compile(() => optimizer.step()) : () => optimizer.step();
  for (let t = 1; t <= steps; t++) {
    for (const [k, param] of params.entries()) param.grad = tensor(gradientAt(t, k));
    step();
  }
  return [...params.map((param) => [...param.dataSync()]), [0, 1, 2].map((k) => distanceOf(optimizer, String(k)))];
}

const OPTIONS: Partial<ProdigyOptions> = { d0: 2 ** -10, betas: [0.75, 0.875] };

it("has one d for parameters of all groups", () => {
  const one = run((params) => new Prodigy(params, OPTIONS));
  expect(one[3]![0]).toBeGreaterThan(2 ** -10);
  expect(one[3]).toEqual(new Array(3).fill(one[3]![0]));
  const apart = run(([a, b, c]) => new Prodigy([{ params: [a!] }, { params: [b!, c!] }], OPTIONS));
  expect(apart).toEqual(one);
  const alone = run(([a, b, c]) => new Prodigy([{ params: [a!] }, { params: [b!, c!], dCoef: 0 }], OPTIONS));
  expect(alone[3]![0]).not.toBe(one[3]![0]); // the others give nothing to the numerator
});

it("has one d for parameters of three dtypes", () => {
  const params = (["f32", "bf16", "f64"] as const).map((dtype, k) => parameter([1 + k, -2, 3], { dtype }));
  const optimizer = new Prodigy(params, OPTIONS);
  for (let t = 1; t <= 12; t++) {
    for (const [k, param] of params.entries()) param.grad = tensor(gradientAt(t, k), { dtype: param.dtype });
    optimizer.step();
  }
  const [narrow, sixteen, wide] = [0, 1, 2].map((k) => distanceOf(optimizer, String(k)));
  expect(wide).toBeGreaterThan(2 ** -10);
  expect(narrow).toBe(Math.fround(wide!));
  expect(sixteen).toBe(narrow);
});

it("compiled has the words of eager, and follows a schedule of lr and betas", () => {
  expect(run((params) => new Prodigy(params, OPTIONS), 12, true)).toEqual(
    run((params) => new Prodigy(params, OPTIONS)),
  );
  const [eager, compiled] = [0, 1].map(() => {
    const w = parameter([1, -2, 3]);
    return { w, optimizer: new Prodigy([w], OPTIONS) };
  }) as [{ w: Tensor; optimizer: Prodigy }, { w: Tensor; optimizer: Prodigy }];
  const step = compile(() => compiled.optimizer.step());
  for (let t = 1; t <= 12; t++) {
    for (const { w, optimizer } of [eager, compiled]) {
      w.grad = tensor(gradientAt(t, 0));
      const [group] = optimizer.groups;
      group!.lr = 1 / t;
      group!.betas = [0.75, 1 - 1 / (t + 7)];
    }
    eager.optimizer.step();
    step();
    expect(compiled.w.tolist()).toEqual(eager.w.tolist());
  }
});

it("goes on after a save", () => {
  const [w, again] = [parameter([1, -2, 3]), parameter([0, 0, 0])];
  const optimizer = new Prodigy([w], OPTIONS);
  for (let t = 1; t <= 10; t++) {
    w.grad = tensor(gradientAt(t, 0));
    optimizer.step();
    if (t !== 5) continue;
    again.set(w);
  }
  const half = parameter([1, -2, 3]);
  const first = new Prodigy([half], OPTIONS);
  for (let t = 1; t <= 5; t++) {
    half.grad = tensor(gradientAt(t, 0));
    first.step();
  }
  const second = new Prodigy([again], OPTIONS);
  second.loadStateDict(first.stateDict());
  for (let t = 6; t <= 10; t++) {
    again.grad = tensor(gradientAt(t, 0));
    second.step();
  }
  expect(again.tolist()).toEqual(w.tolist());
});

it("finds the distance to a solution from below, and goes there", () => {
  const w = parameter([0]);
  const optimizer = new Prodigy([w]);
  for (let t = 0; t < 400; t++) {
    optimizer.zeroGrad();
    w.sub(5).abs().sum().backward();
    optimizer.step();
  }
  expect(distanceOf(optimizer)).toBeGreaterThan(0.1);
  expect(distanceOf(optimizer)).toBeLessThanOrEqual(5);
  expect(Math.abs(w.dataSync()[0]! - 5)).toBeLessThan(1);
});

it("leaves d alone where all gradients are 0", () => {
  const w = parameter([1, 2]);
  const optimizer = new Prodigy([w], { d0: 0.5 });
  w.grad = tensor([0, 0]);
  optimizer.step();
  expect(w.tolist()).toEqual([1, 2]);
  expect(distanceOf(optimizer)).toBe(0.5);
});

it("stores its state in float32", () => {
  expectCode("UNSUPPORTED", () => new Prodigy([parameter([1])], { stateDType: "bf16" }));
});

const DADAPT: Partial<DAdaptAdamWOptions> = { d0: 2 ** -10, betas: [0.75, 0.875] };

it("D-Adaptation has one d for parameters of all groups, compiled too", () => {
  const one = run((params) => new DAdaptAdamW(params, DADAPT));
  expect(one[3]![0]).toBeGreaterThan(2 ** -10);
  expect(one[3]).toEqual(new Array(3).fill(one[3]![0]));
  const apart = ([a, b, c]: Tensor[]) => new DAdaptAdamW([{ params: [a!] }, { params: [b!, c!] }], DADAPT);
  expect(run(apart)).toEqual(one);
  expect(run(apart, 12, true)).toEqual(one);
});

it("D-Adaptation finds a learning rate, and with a schedule a solution", () => {
  const w = parameter([0, 20]);
  const optimizer = new DAdaptAdamW([w]);
  for (let t = 0; t < 300; t++) {
    optimizer.groups[0]!.lr = 1 - t / 300;
    optimizer.zeroGrad();
    w.sub(5).pow(2).sum().backward();
    optimizer.step();
  }
  expect(distanceOf(optimizer)).toBeGreaterThan(0.1);
  for (const x of w.dataSync()) expect(Math.abs(x - 5)).toBeLessThan(0.1);
});
