/** Fourier transforms by numbers that one can check by eye, of long axes, and in compiled functions. */
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compile } from "../../compile/compile";
import { ones, randn, tensor } from "../../create";
import {
  complex,
  fft,
  fft2,
  fftn,
  fftshift,
  ifft,
  ifft2,
  ifftn,
  ifftshift,
  imag,
  irfft,
  irfft2,
  real,
  rfft,
  rfft2,
} from "../../functions";
import { Generator } from "../../random/generator";
import { arange, fftfreq, rfftfreq } from "../../ranges";
import type { Tensor } from "../../tensor/tensor";
import { viewAsReal } from "../complex";
import { turn } from "./turn";

const pairs = (z: Tensor) => viewAsReal(z).tolist();
const column = tensor([[3], [1]]);

describe("options", () => {
  it("n cuts or fills up an axis, norm scales", () => {
    expect(pairs(fft(column, { axis: 0, n: 2, norm: "forward" }))).toEqual([[[2, 0]], [[1, 0]]]);
    expect(pairs(ifft(column, { axis: 0, n: 2, norm: "forward" }))).toEqual([[[4, 0]], [[2, 0]]]);
    expect(pairs(rfft(column, { axis: 0, n: 1, norm: "ortho" }))).toEqual([[[3, 0]]]);
    expect(pairs(rfft(column, { axis: 0, n: 4 }))).toEqual([[[4, 0]], [[3, -1]], [[2, 0]]]);
    expect(irfft(rfft(column, { axis: 0 }), { axis: 0, n: 2, norm: "forward" }).tolist()).toEqual([[6], [2]]);
  });

  it("sizes and axes do so for several", () => {
    const x = ones([2, 3]);
    for (const run of [
      fft2(x, { axes: [1, 0], sizes: [2, 2], norm: "forward" }),
      ifft2(x, { axes: [1, 0], sizes: [2, 2], norm: "backward" }),
      fftn(x, { axes: [1, 0], sizes: [2, 2], norm: "forward" }),
      ifftn(x, { axes: [1, 0], sizes: [2, 2], norm: "backward" }),
    ]) {
      expect(real(run).tolist()).toEqual([
        [1, 0],
        [0, 0],
      ]);
      expect(imag(run).tolist()).toEqual([
        [0, 0],
        [0, 0],
      ]);
    }
    const half = rfft2(x, { axes: [1, 0], sizes: [2, 2], norm: "forward" });
    expect(real(half).tolist()).toEqual([
      [1, 0],
      [0, 0],
    ]);
    expect(irfft2(half, { axes: [1, 0], sizes: [2, 2], norm: "forward" }).tolist()).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect(fftshift(arange(4).reshape([2, 2]), [1]).tolist()).toEqual([
      [1, 0],
      [3, 2],
    ]);
    expect(ifftshift(tensor([[1, 2, 3]]), 1).tolist()).toEqual([[2, 3, 1]]);
  });

  it("frequencies have a spacing, and options of other tensors", () => {
    const options = { dtype: "f64", device: "js", requiresGrad: true } as const;
    expect(fftfreq(4, 0.5, options)).toMatchObject({ dtype: "f64", requiresGrad: true });
    expect(fftfreq(4, 0.5, options).tolist()).toEqual([0, 0.5, -1, -0.5]);
    expect(rfftfreq(4, 0.5, { dtype: "f64", device: "js", requiresGrad: true }).tolist()).toEqual([0, 0.5, 1]);
  });

  it("are checked", () => {
    expectCode("BAD_ARGUMENT", () => fft(column, { n: 0 }));
    expectCode("BAD_ARGUMENT", () => fft(column, { norm: "none" as "ortho" }));
    expectCode("BAD_ARGUMENT", () => fft2(column, { axes: [0, 0] }));
    expectCode("BAD_ARGUMENT", () => fft2(column, { sizes: [2] }));
    expectCode("BAD_ARGUMENT", () => fft2(tensor([1])));
    expectCode("BAD_ARGUMENT", () => fftfreq(0));
    expectCode("BAD_ARGUMENT", () => rfftfreq(2, 0));
    expectCode("BAD_SHAPE", () => fft(ones([2, 0])));
    expectCode("BAD_DTYPE", () => fft(column.to("f64")));
    expectCode("BAD_DTYPE", () => rfft(fft(column)));
  });
});

it("a part of a turn is exact at quarters, and near Math.cos and Math.sin elsewhere", () => {
  expect([0, 1, 2, 3].map((k) => turn(k, 4).map((x) => x + 0))).toEqual([
    [1, 0],
    [0, 1],
    [-1, 0],
    [0, -1],
  ]);
  for (const n of [3, 7, 100, 4099]) {
    for (let k = 0; k < n; k++) {
      const [cosine, sine] = turn(k, n);
      const angle = (2 * Math.PI * k) / n;
      expect(Math.abs(cosine - Math.cos(angle)) + Math.abs(sine - Math.sin(angle))).toBeLessThan(3e-15);
    }
  }
});

it.each([4096, 8192, 2 ** 15, 10_007, 6000])("an axis of %i elements comes back, with its energy", (n) => {
  const x = randn([n], { generator: new Generator(2) });
  const y = fft(x, { norm: "ortho" });
  const back = ifft(y, { norm: "ortho" });
  const energy = (of: Tensor) => of.to("f64").square().sum().dataSync()[0]!;
  expect(energy(real(back).sub(x)) + energy(imag(back))).toBeLessThan(1e-13 * n);
  expect(Math.abs(energy(viewAsReal(y)) / energy(x) - 1)).toBeLessThan(1e-6);
});

it("a compiled function transforms each run's numbers", () => {
  const compiled = compile((x: Tensor) => irfft(rfft(x)).mul(2), { check: "never" });
  for (const scale of [1, 2, 3]) expect(compiled(tensor([scale, 0])).tolist()).toEqual([2 * scale, 0]);
});

describe("of several axes", () => {
  const random = fc.record({
    shape: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 3 }),
    count: fc.integer({ min: 1, max: 3 }),
    hasAxes: fc.boolean(),
    sizes: fc.option(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 3, maxLength: 3 }), { nil: undefined }),
    norm: fc.constantFrom("backward" as const, "forward" as const, "ortho" as const, undefined),
    isInverse: fc.boolean(),
  });

  it("is one transform for each of them, the last ones by default", () =>
    fc.assert(
      fc.property(random, ({ shape, count: drawn, hasAxes, sizes: all, norm, isInverse }) => {
        const count = Math.min(drawn, shape.length);
        const chosen = hasAxes ? Array.from({ length: count }, (_, i) => (i * 2 + 1) % shape.length) : undefined;
        const axes = chosen && [...new Set(chosen)];
        const sizes = all?.slice(0, axes?.length ?? count);
        const x = complex(randn(shape, { generator: new Generator(1) }), randn(shape, { generator: new Generator(2) }));
        const [one, two, several] = isInverse ? [ifft, ifft2, ifftn] : [fft, fft2, fftn];
        const expected = (along: readonly number[]) =>
          along.reduce((y, axis, i) => one(y, { axis, norm, n: sizes?.[i] }), x);
        const options = { axes, sizes, norm };
        const length = axes?.length ?? sizes?.length ?? shape.length;
        const last = (length: number) => Array.from({ length }, (_, i) => i - length);
        const close = { absolute: 1e-5, relative: 1e-4 };
        const numbers = (z: Tensor) =>
          viewAsReal(z)
            .reshape([viewAsReal(z).size])
            .dataSync();
        expect(numbers(several(x, options))).toAgreeWith(numbers(expected(axes ?? last(length))), close);
        if (axes === undefined && sizes !== undefined && sizes.length !== 2) return;
        expect(numbers(two(x, options))).toAgreeWith(numbers(expected(axes ?? last(2))), close);
      }),
    ));
});
