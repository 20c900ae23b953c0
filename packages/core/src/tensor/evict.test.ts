/** Memory that goes and comes back: what was there, in eager code, on tapes and in compiled functions. */
import { expect, it } from "vitest";
import {
  compile,
  evict,
  fillAgain,
  init,
  isEvicted,
  noGrad,
  ones,
  parameter,
  type Tensor,
  tensor,
  tidy,
} from "../index";

/** Evicts a tensor whose contents are always [1, 2, 3], and counts how often it was filled again. */
function lent(x: Tensor, isSame = true): { fills: number; evict(): void } {
  const refill = () =>
    fillAgain(
      [x],
      ([present]) => {
        state.fills++;
        noGrad(() => tidy(() => present!.set([1, 2, 3])));
      },
      isSame,
    );
  const state = { fills: 0, evict: () => evict(x, refill) };
  state.evict();
  return state;
}

it("frees memory until it is used", async () => {
  const device = await init("js");
  const x = tensor([1, 2, 3]);
  const { bytes } = device.memory();
  const state = lent(x);
  expect([isEvicted(x), device.memory().bytes < bytes, state.fills]).toEqual([true, true, 0]);
  expect(x.tolist()).toEqual([1, 2, 3]);
  expect([isEvicted(x), device.memory().bytes, state.fills]).toEqual([false, bytes, 1]);
  state.evict();
  x.dispose();
  expect(device.memory().bytes).toBe(bytes - 12);
});

it("comes back for a backward, and says where it is not what it was", async () => {
  await init("js");
  const x = parameter([1, 2, 3]);
  const y = parameter([4, 5, 6]);
  for (const isSame of [true, false]) {
    const product = x.mul(y).sum();
    const state = lent(x, isSame);
    if (isSame) {
      product.backward();
      expect([y.grad!.tolist(), state.fills]).toEqual([[1, 2, 3], 1]);
    } else {
      expect(x.tolist()).toEqual([1, 2, 3]);
      expect(() => product.backward()).toThrow(expect.objectContaining({ code: "CHANGED" }));
    }
  }
});

it("is filled again in each run of a compiled function", async () => {
  await init("js");
  const x = parameter([1, 2, 3]);
  const state = lent(x);
  const f = compile((y: Tensor) => {
    const product = x.mul(y).sum();
    state.evict();
    product.backward();
    x.grad = null;
    return product.add(x.sum());
  });
  const results = Array.from({ length: 5 }, (_, i) => f(ones([3]).mul(i)).tolist());
  expect(results).toEqual([6, 12, 18, 24, 30]);
  expect([isEvicted(x), state.fills]).toEqual([true, 10]);
});

it("needs memory of its own", async () => {
  const x = tensor([1, 2, 3]);
  expect(() => evict(x.slice(1, 3).detach(), () => {})).not.toThrow();
  expect(() =>
    evict((x as never as { alias(shape: number[], offset: number): Tensor }).alias([2], 1), () => {}),
  ).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
});
