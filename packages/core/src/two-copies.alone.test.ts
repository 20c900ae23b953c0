// Two packages may each bring a copy of core: what one of them sets or makes, the other knows.
import { beforeAll, expect, it, vi } from "vitest";
import * as first from "./index";

let second: typeof first;
beforeAll(async () => {
  vi.resetModules();
  second = await import("./index");
});

it("they are two", () => expect(second.Tensor).not.toBe(first.Tensor));

it("tidy frees what the other makes", () => {
  const inner = first.tidy(() => {
    const tensors = [second.zeros([1]), first.zeros([1])];
    return { tensors: () => tensors };
  });
  expect(inner.tensors().map((tensor) => tensor.isDisposed)).toEqual([true, true]);
});

it("noGrad holds for the other", () => {
  const x = second.parameter([1]);
  expect([first.noGrad(() => x.mul(2)).requiresGrad, x.mul(2).requiresGrad]).toEqual([false, true]);
});

it("tensors of both meet in ops, on the tape and in optimizer groups", () => {
  const [a, b] = [first.parameter([2]), second.parameter([3])];
  const product = second.mul<first.Tensor>(first.mul<first.Tensor>(a, b), a);
  product.backward();
  expect([...a.grad!.dataSync(), ...b.grad!.dataSync()]).toEqual([12, 4]);
  expect([b instanceof first.Tensor, a instanceof second.Tensor, {} instanceof first.Tensor]).toEqual([
    true,
    true,
    false,
  ]);
  expect(first.clipGradNorm([a, b], 1)).toBeInstanceOf(second.Tensor);
});

it("one seed seeds both, and neither compiles what the other must not", () => {
  first.manualSeed(7);
  const drawn = [...second.rand([2]).dataSync()];
  second.manualSeed(7);
  expect([...first.rand([2]).dataSync()]).toEqual(drawn);
  expect(() => first.compile(() => void second.zeros([1]).dataSync())()).toThrow(/read a tensor inside/);
});
