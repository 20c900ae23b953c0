/** Complex tensors: kept, moved and trained as their parts, and computed with through `viewAsReal` alone. */
import { inspect } from "node:util";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import {
  clipGradNorm,
  clipGradValue,
  concat,
  cumsum,
  ExponentialMovingAverage,
  functional,
  gather,
  grad,
  init,
  layerNorm,
  maskedFill,
  ones,
  pad,
  parameter,
  rowSparse,
  split,
  stack,
  type Tensor,
  tensor,
  tensorFromBytes,
  topk,
  tril,
  viewAsComplex,
  viewAsReal,
  where,
  zeros,
} from "..";

const PARTS = [
  [3, 4],
  [0, -1],
  [2, 0.5],
];
const complex = () => viewAsComplex(tensor(PARTS));
const numbers = (x: Tensor) => [...x.dataSync()];

describe("a complex tensor", () => {
  it("has one element for two numbers, and is a view of them", () => {
    const parts = tensor(PARTS);
    const z = viewAsComplex(parts);
    expect(z).toMatchObject({ shape: [3], dtype: "c64", size: 3 });
    expect(viewAsReal(z)).toMatchObject({ shape: [3, 2], dtype: "f32" });
    parts.set(new Float32Array([1, 2, 3, 4, 5, 6]));
    expect(numbers(z)).toEqual([1, 2, 3, 4, 5, 6]);
    viewAsReal(z).set(PARTS);
    expect(parts.tolist()).toEqual(PARTS);
  });

  it("is cloned, viewed, moved, read and shown with both parts", async () => {
    const z = complex();
    const bytes = z.bytesSync();
    expect(bytes.length).toBe(24);
    const device = await init("js");
    for (const same of [z.clone(), z.detach(), z.reshape([3, 1]), z.to(device), z.to("c64")]) {
      expect(numbers(same)).toEqual(PARTS.flat());
    }
    expect(numbers(tensorFromBytes(bytes, [3], { dtype: "c64" }))).toEqual(PARTS.flat());
    expect(z.tolist()).toEqual(PARTS);
    expect(numbers(zeros([2], { dtype: "c64" }))).toEqual([0, 0, 0, 0]);
    const target = zeros([3], { dtype: "c64" });
    target.set(z);
    expect(target.tolist()).toEqual(PARTS);
    expect(inspect(z)).toBe("Tensor c64 [3] on js\n[[ 3.0000,  4.0000],\n [ 0.0000, -1.0000],\n [ 2.0000,  0.5000]]");
  });

  it.each<[string, () => unknown]>([
    ["arithmetic", () => complex().add(complex())],
    ["arithmetic with numbers", () => complex().mul(2)],
    ["sums", () => complex().sum()],
    ["largest elements", () => complex().max()],
    [
      "matrix products",
      () =>
        complex()
          .reshape([1, 3])
          .matmul(complex().reshape([3, 1])),
    ],
    ["softmax", () => complex().softmax()],
    ["slices", () => complex().slice(0, 1)],
    ["transposition", () => complex().reshape([3, 1]).transpose()],
    ["joining", () => concat([complex(), complex()])],
    ["casts", () => complex().to("f32")],
    ["casts to it", () => tensor([1, 2]).to("c64")],
    ["real numbers set", () => complex().set([1, 2, 3])],
    ["a real tensor set", () => complex().set(tensor([1, 2, 3]))],
    ["real numbers given", () => tensor([1, 2], { dtype: "c64" })],
    ["ones", () => ones([2], { dtype: "c64" })],
    ["powers", () => complex().pow(2)],
    ["comparisons", () => complex().eq(complex())],
    ["choosing", () => where(tensor([true, false, true]), complex(), complex())],
    ["clamps", () => complex().clamp(0, 1)],
    ["norms", () => complex().norm()],
    ["variances", () => complex().var()],
    ["largest and smallest places", () => complex().argmin()],
    ["running sums", () => cumsum(complex(), 0)],
    ["expansion", () => complex().reshape([1, 3]).expand([2, 3])],
    ["padding", () => pad(complex(), [1, 1])],
    ["stacks", () => stack([complex(), complex()])],
    ["splits", () => split(complex(), 1)],
    ["triangles", () => tril(complex().reshape([1, 3]))],
    ["the largest few", () => topk(complex(), 1)],
    ["masks", () => maskedFill(complex(), tensor([true, false, true]), 0)],
    ["rows by index", () => gather(complex(), tensor([0], { dtype: "i32" }))],
    [
      "rows of a sparse gradient",
      () => rowSparse(tensor([0], { dtype: "i32" }), complex().reshape([3, 1]).reshape([1, 3]), [2, 3]),
    ],
    ["layer norms", () => layerNorm(complex(), ones([3]), null)],
    ["differentiable steps", () => functional(Momentum, { lr: 0.1 }).init([parameter(complex())])],
    ["averages", () => new ExponentialMovingAverage([parameter(complex())])],
    ["parts of a real tensor", () => viewAsReal(tensor([1]))],
    ["parts of f64", () => viewAsComplex(tensor([1, 2], { dtype: "f64" }))],
  ])("rejects %s", (_, compute) => {
    expectCode("BAD_DTYPE", compute);
  });

  it("is not one number, and needs two of them", () => {
    const one = viewAsComplex(tensor([3, 4]));
    expectCode("BAD_SHAPE", () => Number(one));
    expectCode("BAD_SHAPE", () => viewAsComplex(tensor([1, 2, 3])));
  });
});

/** |w|^2 weighted: its gradient is 2 w, weighted, as PyTorch's view_as_real has it. */
const weights = tensor([[1, 2]]);
const loss = (w: Tensor) => viewAsReal(w).pow(2).mul(weights).sum();

describe("gradients", () => {
  it("are complex, and accumulate", () => {
    const w = parameter(complex());
    for (let i = 0; i < 2; i++) loss(w).backward();
    expect(w.grad).toMatchObject({ dtype: "c64", shape: [3] });
    expect(viewAsReal(w.grad!).tolist()).toEqual(PARTS.map(([re, im]) => [4 * re!, 8 * im!]));
  });

  it("add up where a view is used twice, and have gradients themselves", () => {
    const w = parameter(complex());
    const view = w.reshape([3, 1]);
    loss(view.reshape([3]))
      .add(loss(view.reshape([3])))
      .backward();
    expect(viewAsReal(w.grad!).tolist()).toEqual(PARTS.map(([re, im]) => [4 * re!, 8 * im!]));
    const [first] = grad(loss(w), [w], { createGraph: true });
    const [second] = grad(viewAsReal(first!).sum(), [w]);
    expect(viewAsReal(second!).tolist()).toEqual(PARTS.map(() => [2, 4]));
  });

  it("are not implied by a complex number, as in PyTorch", () =>
    expectCode("NO_GRADIENT", () => viewAsComplex(parameter([1, 2])).backward()));

  it("are clipped and zeroed by their parts", () => {
    const [w, real] = [parameter(complex()), parameter(tensor(PARTS))];
    loss(w).backward();
    real.pow(2).mul(weights).sum().backward();
    for (const clip of [(p: Tensor) => clipGradNorm([p], 2), (p: Tensor) => clipGradValue([p], 0.5)]) {
      for (const p of [w, real]) clip(p);
      expect(numbers(w.grad!)).toEqual(numbers(real.grad!));
    }
    new Momentum([w], { lr: 0.1 }).zeroGrad({ setToNull: false });
    expect(numbers(w.grad!)).toEqual([0, 0, 0, 0, 0, 0]);
  });
});
