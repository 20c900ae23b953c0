// An LSTM on devices that have no kernel for it, or none for its gradient: the same numbers, op by op.
import "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import type { FusedKind } from "../../backend/spec";
import { type Device, Generator, grad, randn, type Tensor, zeros } from "../../index";
import { fusedLstm } from "./lstm";

type Given = [inputs: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, cell: Tensor];

function drawn(length: number, batch: number, width: number, device: Device): Given {
  const generator = new Generator(4);
  const state = [batch, width];
  return [[length, batch, 4 * width], [4 * width, width], [4 * width], state, state].map((shape) => {
    const x = randn(shape, { dtype: "f64", device, generator });
    x.requiresGrad = true;
    return x;
  }) as Given;
}

/** Results, the last cell, and gradients of what depends on both. */
function allOf(device: Device, sizes: readonly [number, number, number], reverse: boolean, second: boolean): Tensor[] {
  const given = drawn(...sizes, device);
  const { results, cell } = fusedLstm(...given, { reverse })!;
  const first = grad(results.pow(2).sum().add(cell.pow(3).sum()), given, { createGraph: second });
  if (!second) return [results, cell, ...first];
  return grad(
    first.map((x) => x.pow(2).sum()).reduce((a, b) => a.add(b)),
    given,
  );
}

it("has values and gradients of a device that fuses it", () => {
  const whole = new FakeDevice();
  const [none, half] = [[], ["lstm"] as FusedKind[]].map((fuses) => new FakeDevice({ fuses }));
  const size = fc.integer({ min: 1, max: 3 });
  fc.assert(
    fc.property(fc.tuple(size, size, size), fc.boolean(), fc.boolean(), (sizes, reverse, second) => {
      const expected = allOf(whole, sizes, reverse, second);
      for (const device of [none!, half!]) {
        allOf(device, sizes, reverse, second).forEach((x, i) => {
          expect(x.dataSync()).toAgreeWith(expected[i]!.dataSync(), { absolute: 1e-12, relative: 1e-12 });
        });
      }
    }),
    { numRuns: 10 },
  );
});

it("is null for tensors that do not fit each other, and for no places", () => {
  const device = new FakeDevice();
  const given = drawn(3, 2, 2, device);
  expect(fusedLstm(...given)).not.toBe(null);
  expect(fusedLstm(...drawn(0, 2, 2, device))).toBe(null);
  given.forEach((x, i) => {
    for (const other of [
      x.to("f32"),
      zeros(x.shape, { dtype: "f64" }),
      zeros([...x.shape, 1], { dtype: "f64", device }),
    ])
      expect(fusedLstm(...(given.with(i, other) as Given)), `tensor ${i}`).toBe(null);
  });
});
