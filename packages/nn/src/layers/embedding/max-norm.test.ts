// As PyTorch's max_norm: rows that are looked up are shortened in the weight. The numbers are those of PyTorch 2.13.
import { compile, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { Embedding, EmbeddingBag } from "../../index";

const whole = (values: number[]) => tensor(values, { dtype: "i32" });
const near = { absolute: 1e-6, relative: 1e-6 };
const table = [3, 4, 0.3, 0.4, 6, 8, 0, 0];

function made<L extends Embedding | EmbeddingBag>(layer: L): L {
  layer.weight.set(new Float32Array(table));
  return layer;
}

it.each<[number, number[]]>([
  [2, [0.6, 0.8, 0.3, 0.4, 6, 8, 0, 0]],
  [1, [3 / 7, 4 / 7, 0.3, 0.4, 6, 8, 0, 0]],
])("shortens rows by the norm %i, each once, and leaves the others", (normType, expected) => {
  const layer = made(new Embedding(4, 2, { maxNorm: 1, normType }));
  const y = layer.forward(whole([0, 1, 3, 0]));
  expect(layer.weight.dataSync()).toAgreeWith(new Float32Array(expected), near);
  const [a, b, c, d] = [0, 1, 3, 0].map((row) => expected.slice(2 * row, 2 * row + 2));
  expect(y.dataSync()).toAgreeWith(new Float32Array([...a!, ...b!, ...c!, ...d!]), near);
  y.sum().backward();
  expect([...layer.weight.grad!.dataSync()]).toEqual([2, 2, 1, 1, 0, 0, 1, 1]);
});

it("shortens the rows of bags, and none of an empty list", () => {
  const bags = made(new EmbeddingBag(4, 2, { mode: "sum", maxNorm: 0.5, normType: 2 }));
  bags.forward(whole([]), { offsets: whole([0]) });
  expect([...bags.weight.dataSync()]).toEqual([...new Float32Array(table)]);
  bags.forward(tensor([[0, 2]], { dtype: "i32" }));
  expect(bags.weight.dataSync()).toAgreeWith(new Float32Array([0.3, 0.4, 0.3, 0.4, 0.3, 0.4, 0, 0]), near);
});

it("is the same compiled", () => {
  const run = (compiled: boolean) => {
    const layer = made(new Embedding(4, 2, { maxNorm: 1 }));
    const call = (x: ReturnType<typeof whole>) => layer.forward(x).sum();
    const f = compiled ? compile(call) : call;
    for (let i = 0; i < 5; i++) {
      layer.weight.set(new Float32Array(table));
      f(whole([i % 4, 2]));
    }
    return [...layer.weight.dataSync()];
  };
  expect(run(true)).toEqual(run(false));
});

it("rejects a length below 0, and a norm of 0", () => {
  expectCode("BAD_ARGUMENT", () => new Embedding(4, 2, { maxNorm: -1 }));
  expectCode("BAD_ARGUMENT", () => new EmbeddingBag(4, 2, { normType: 0 }));
});
