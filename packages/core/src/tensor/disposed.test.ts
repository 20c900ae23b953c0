// Whatever is done with a tensor after dispose is rejected by code.
import { DIFFERENTIABLE_OPS, expectCode, inputsOf } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { parameter, tensor, zeros } from "../create";
import { concat, crossEntropyRows } from "../ops";
import { applyRule } from "../ops/apply-rule";
import { clipGradNorm, clipGradValue } from "../optimizer/gradients/clip";
import { defineRule } from "../rule/rule";
import { add } from "../rule/symbols";
import type { Tensor } from "./tensor";

function disposed(shape: readonly number[] = [2, 2]): Tensor {
  const made = parameter(new Float32Array(shape.reduce((a, b) => a * b, 1)), { shape });
  made.dispose();
  return made;
}

const alive = zeros([2, 2]);
const doubled = defineRule({ name: "doubled", buffers: ["a"], scalars: [], update: ({ a }) => ({ a: add(a, a) }) });

describe("an op of a disposed tensor", () => {
  it.each(DIFFERENTIABLE_OPS)("$name", (op) => {
    inputsOf(op).forEach((_, gone) => {
      const inputs = inputsOf(op).map(({ values, shape }) => parameter(values, { shape }));
      inputs[gone]!.dispose();
      expectCode("DISPOSED", () => op.run(...inputs));
    });
  });
});

describe("after dispose", () => {
  it.each<[string, (gone: Tensor) => unknown]>([
    ["dataSync", (gone) => gone.dataSync()],
    ["bytesSync", (gone) => gone.bytesSync()],
    [
      "set",
      (gone) =>
        gone.set([
          [1, 2],
          [3, 4],
        ]),
    ],
    ["set of another", (gone) => zeros([2, 2]).set(gone)],
    ["detach", (gone) => gone.detach()],
    ["to the same dtype", (gone) => gone.to("f32")],
    ["to another dtype", (gone) => gone.to("f16")],
    ["to the same device", (gone) => gone.to("js")],
    ["argmax", (gone) => gone.argmax()],
    ["reshape to the same", (gone) => gone.reshape([2, 2])],
    ["backward", (gone) => gone.backward(alive)],
    [
      "as the gradient of backward",
      (gone) =>
        parameter([
          [1, 2],
          [3, 4],
        ])
          .mul(2)
          .backward(gone),
    ],
    [
      "as a gradient",
      (gone) => {
        parameter(alive).grad = gone;
      },
    ],
    ["parameter of it", (gone) => parameter(gone)],
    ["labels", (gone) => crossEntropyRows(alive, gone.reshape([4]).to("i32"))],
    ["applyRule", (gone) => applyRule(doubled, { a: gone }, {})],
    ["an optimizer of it", (gone) => new Momentum([gone])],
  ])("%s is rejected", (_, use) => expectCode("DISPOSED", () => use(disposed())));

  it("reading is rejected by the promise", async () => {
    await expectCode("DISPOSED", () => disposed().data());
    await expectCode("DISPOSED", () => disposed().bytes());
    await expectCode("DISPOSED", () => disposed([]).item());
  });

  it("a step, clipping and clearing with a disposed parameter or gradient", () => {
    const [w, v] = [parameter([1, 2]), parameter([3, 4])];
    const optimizer = new Momentum([w, v]);
    for (const param of [w, v]) param.grad = tensor([1, 1]);
    v.grad!.dispose();
    expectCode("DISPOSED", () => optimizer.step());
    expectCode("DISPOSED", () => clipGradNorm([w, v], 1));
    expectCode("DISPOSED", () => clipGradValue([w, v], 0.5));
    expect([...w.dataSync(), ...w.grad!.dataSync()]).toEqual([1, 2, 1, 1]);
    optimizer.zeroGrad();
    expect(v.grad).toBeNull();
  });

  it("the tape still has what it holds", () => {
    const w = parameter([2, 3]);
    const squares = w.mul(w);
    const loss = squares.sum();
    squares.dispose();
    loss.backward();
    expect([...w.grad!.dataSync()]).toEqual([4, 6]);
  });

  it("disposing again, asking its shape and showing it are fine", () => {
    const gone = disposed();
    gone.dispose();
    gone[Symbol.dispose]();
    expect([gone.isDisposed, gone.shape, String(gone)]).toEqual([true, [2, 2], "Tensor f32 [2, 2] on js (disposed)"]);
  });
});

it("an op on a disposed tensor leaves nothing behind", () => {
  const device = new FakeDevice();
  const w = parameter([1, 2], { device });
  w.dispose();
  for (const op of [
    () => w.mul(w),
    () => w.sum(),
    () => w.slice(0, 1),
    () => w.permute([0]),
    () => w.softmax(),
    () => w.to("f64"),
    () => w.clone(),
    () => concat([w, w]),
  ]) {
    expectCode("DISPOSED", op);
  }
  expect(device.memory()).toEqual({ bytes: 0, tensors: 0 });
});
