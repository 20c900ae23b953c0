import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import {
  autocast,
  compile,
  grad,
  manualSeed,
  noGrad,
  parameter,
  rand,
  recompute,
  type Tensor,
  tensor,
  tidy,
} from "./index";

const SIZE = 8;

/** A block with each kind of saved tensor: inputs, results, what is computed between, and random draws. */
function block(x: Tensor, w: Tensor): Tensor {
  const hidden = x.matmul(w).gelu();
  return hidden.mul(rand(hidden.shape)).softmax().add(x).tanh();
}

const weights = () =>
  [1, 2].map((seed) =>
    parameter(
      Float32Array.from({ length: SIZE * SIZE }, (_, i) => Math.sin(seed * i)),
      { shape: [SIZE, SIZE] },
    ),
  );
const input = () =>
  tensor(
    Float32Array.from({ length: 2 * SIZE }, (_, i) => Math.cos(i)),
    { shape: [2, SIZE] },
  );

type Around = typeof recompute;
const plainly: Around = (f, ...inputs) => f(...inputs);

function run(around: Around, isCompiled = false): number[][] {
  manualSeed(3);
  const ws = weights();
  const step = (x: Tensor) => {
    for (const w of ws) w.grad = null;
    const loss = ws
      .reduce((y, w) => around((z) => block(z, w), y), x)
      .pow(2)
      .sum();
    loss.backward();
    return loss.detach();
  };
  const call = isCompiled ? compile(step) : step;
  const seen: number[][] = [];
  for (let i = 0; i < 6; i++) seen.push([...call(input()).dataSync()], ...ws.map((w) => [...w.grad!.dataSync()]));
  return seen;
}

it("has the bits of the plain computation, draws included, eager and compiled", () => {
  const plain = run(plainly);
  expect(run(recompute)).toEqual(plain);
  expect(run(recompute, true)).toEqual(plain);
});

it("differentiates twice", () => {
  const curvature = (around: Around) => {
    manualSeed(5);
    const [w] = weights() as [Tensor];
    const x = input();
    x.requiresGrad = true;
    const y = around((z) => block(z, w), x)
      .pow(2)
      .sum();
    const [first] = grad(y, [x], { createGraph: true });
    return grad(first!.pow(2).sum(), [x, w]).map((g) => [...g.dataSync()]);
  };
  expect(curvature(recompute)).toEqual(curvature(plainly));
});

it("computes again only what backward asks for, once", () => {
  let calls = 0;
  const x = parameter([1, 2]);
  const counted = (z: Tensor) => {
    calls++;
    return z.exp().tanh();
  };
  const y = recompute(counted, x);
  expect(calls).toBe(1);
  y.sum().backward(undefined, { retainGraph: true });
  y.sum().backward();
  expect(calls).toBe(2);
  noGrad(() => recompute(counted, x));
  expect(calls).toBe(3);
});

it("takes values, lists and results of other shapes; recomputation inside is part of the outer one", () => {
  const x = parameter([1, 2]);
  const f = (z: Tensor, factor: number) => {
    const inner = recompute((v) => v.exp().mul(factor), z);
    return [inner.mul(inner), inner.sum()] as const;
  };
  const [a, b] = recompute(f, x, 3);
  a.sum().add(b).backward();
  const gradient = [...x.grad!.dataSync()];
  x.grad = null;
  const [c, d] = f(x, 3);
  c.sum().add(d).backward();
  expect(gradient).toEqual([...x.grad!.dataSync()]);
});

it("leaves no tensor behind: after backward, without it, and where the function throws", () => {
  const x = parameter([1, 2]);
  const w = parameter([3, 4]);
  const { tensors } = x.device.memory();
  tidy(() =>
    recompute((z) => z.mul(w).exp(), x.mul(2))
      .sum()
      .backward(),
  );
  x.grad = w.grad = null;
  expect(x.device.memory().tensors).toBe(tensors);
  recompute((z) => z.mul(w).exp(), x).dispose();
  expect(x.device.memory().tensors).toBe(tensors);
  const fails = () =>
    recompute((z) => {
      z.mul(w).exp();
      throw new Error("no");
    }, x);
  expect(fails).toThrow("no");
  expect(x.device.memory().tensors).toBe(tensors);
});

it("throws for what is not the same in backward", () => {
  const x = parameter([1, 2]);
  let isSecond = false;
  const other = recompute((z) => (isSecond ? z.tanh() : z.exp()).gelu(), x);
  const fewer = recompute((z) => (isSecond ? z.tanh() : z.tanh().tanh()), x);
  isSecond = true;
  expectCode("CHANGED", () => other.sum().backward());
  expectCode("CHANGED", () => fewer.sum().backward());
  const y = recompute((z) => z.exp(), x);
  noGrad(() => x.set([3, 4]));
  expectCode("CHANGED", () => y.sum().backward());
  expectCode("BAD_ARGUMENT", () => recompute((async () => x) as () => unknown));
});

it("runs again in the precision of its first run", () => {
  const [x, [w]] = [input(), weights()] as const;
  const slopes = [plainly, recompute].map((around) => {
    const y = autocast("bf16", () => around((a: Tensor) => a.matmul(w!).tanh().matmul(w!), x));
    return [...grad(y.sum(), [w!])[0].dataSync()];
  });
  expect(slopes[1]).toEqual(slopes[0]);
});
