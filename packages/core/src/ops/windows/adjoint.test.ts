// "The adjoint of conv2d": <conv2d(x, w), y> = <x, convTranspose2d(y, w)> for any stride, padding, dilation and groups, and so their gradients.
import fc from "fast-check";
import { expect, it } from "vitest";
import { conv2d, convTranspose2d, grad, init, parameter, randn, sum } from "../../index";

await init("js");

const small = fc.integer({ min: 1, max: 2 });
const form = fc.record({
  batch: small,
  groups: small,
  inner: small,
  outer: small,
  kernel: fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 })),
  stride: fc.integer({ min: 1, max: 3 }),
  padding: fc.nat(2),
  dilation: small,
  size: fc.tuple(fc.integer({ min: 3, max: 7 }), fc.integer({ min: 3, max: 7 })),
});

it("conv2d and convTranspose2d are adjoint, and each is the other's gradient", () => {
  fc.assert(
    fc.property(form, ({ batch, groups, inner, outer, kernel, stride, padding, dilation, size }) => {
      const reach = kernel.map((extent) => dilation * (extent - 1) + 1);
      fc.pre(size.every((extent, i) => extent + 2 * padding >= reach[i]!) && padding < Math.min(...reach) + 1);
      const f64 = { dtype: "f64" } as const;
      const draw = (...shape: number[]) => parameter([...randn(shape, f64).dataSync()], { shape, ...f64 });
      const x = draw(batch, groups * inner, ...size);
      const w = draw(groups * outer, inner, ...kernel);
      const options = { stride, padding, dilation, groups };
      const forward = conv2d(x, w, null, options);
      const y = draw(...forward.shape);
      // What the stride leaves over at the end.
      const outputPadding = size.map((extent, i) => (extent + 2 * padding - reach[i]!) % stride);
      const back = convTranspose2d(y, w, null, { ...options, outputPadding: outputPadding as [number, number] });
      expect(back.shape).toEqual(x.shape);
      const [one, other] = [sum(forward.mul(y)), sum(back.mul(x))];
      expect(one.dataSync()[0]!).toBeCloseTo(other.dataSync()[0]!, 9);
      const [byX, byW] = grad(one, [x, w]);
      const [byY, byOtherW] = grad(other, [y, w]);
      for (const [a, b] of [
        [byX, back],
        [byY, forward],
        [byW, byOtherW],
      ] as const)
        expect(Math.max(0, ...a.sub(b).abs().dataSync())).toBeLessThan(1e-9);
    }),
    { numRuns: 30 },
  );
});
