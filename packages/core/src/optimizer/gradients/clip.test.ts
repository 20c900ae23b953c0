import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { parameter, tensor, zeros } from "../../create";
import { viewAsComplex, viewAsReal } from "../../ops/complex";
import type { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import { clipGradNorm, clipGradNormEach, clipGradValue } from "./clip";
import { nonFinite, norms } from "./norm";

const GRADIENTS = [
  [3, -4, 0.5],
  [
    [1, -2],
    [0.25, 8],
  ],
];

/** Parameters with gradients, and one without. */
function params(dtype: DType = "f32", gradients: readonly unknown[] = GRADIENTS): Tensor[] {
  const made = gradients.map((gradient) => {
    const grad = tensor(gradient as number[], { dtype });
    const param = parameter(new Float64Array(grad.size), { shape: grad.shape, dtype });
    param.grad = grad;
    return param;
  });
  return [...made, parameter([1])];
}

const gradients = (list: readonly Tensor[]) => list.flatMap(({ grad }) => (grad === null ? [] : [...grad.dataSync()]));
const flat = GRADIENTS.flat(2) as number[];

describe("clipGradNorm", () => {
  it("without gradients is 0, on the device of the parameters", () => {
    const device = new FakeDevice();
    const norm = clipGradNorm([parameter([1], { device })], 1);
    expect([norm.device, norm.dataSync()[0]]).toEqual([device, 0]);
    expect(clipGradNorm([], 1).dataSync()[0]).toBe(0);
  });

  // PyTorch 2.13, torch.nn.utils.clip_grad_norm_(params, 2.0, norm_type).
  it.each([
    [1, 18.75, 0.31999996304512024],
    [2, 9.711462020874023, 0.6178265810012817],
    [3, 8.490836143493652, 0.7066441178321838],
    [0.5, 103.66900634765625, 0.057876504957675934],
    [Number.POSITIVE_INFINITY, 8, 0.7499998807907104],
  ])("by the %d-norm gives PyTorch's norm and gradients", (normType, norm, first) => {
    const list = params();
    const total = clipGradNorm(list, 2, { normType });
    expect(total.dtype).toBe("f32");
    expect(Float32Array.of(Number(total))).toAgreeWith([norm], { ulp: 1 });
    expect(Float32Array.from(gradients(list))).toAgreeWith(
      flat.map((g) => (g / 3) * first),
      { ulp: 3 },
    );
  });

  it.each<DType>(["f64", "f16", "bf16"])("of %s gradients keeps their dtype", (dtype) => {
    const list = params(dtype);
    const norm = clipGradNorm(list, 2);
    expect(norm.dtype).toBe(dtype === "f64" ? "f64" : "f32");
    expect(gradients(list)).toAgreeWith(
      flat.map((g) => g * (2 / 9.711462)),
      { absolute: 0.02, relative: 0 },
    );
  });

  it("leaves gradients within the limit alone, bit for bit", () => {
    const list = params();
    expect(Number(clipGradNorm(list, 100))).toBeCloseTo(9.711462, 5);
    expect(gradients(list)).toEqual(flat);
    clipGradNorm(list, Number.POSITIVE_INFINITY);
    expect(gradients(list)).toEqual(flat);
  });

  it("takes one tensor, a generator, and nothing with a gradient", () => {
    const list = params();
    expect(Number(clipGradNorm(list[0]!, 100))).toBeCloseTo(Math.hypot(3, 4, 0.5), 5);
    expect(Number(clipGradNorm(list.values(), 100))).toBeCloseTo(9.711462, 5);
    expect(Number(clipGradNorm([parameter([1])], 1))).toBe(0);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    "a gradient of %d: rejected where asked, with nothing changed, else spread as in PyTorch",
    (bad) => {
      const list = params("f32", [[3, 4], [bad]]);
      expectCode("NOT_FINITE", () => clipGradNorm(list, 1, { errorIfNonfinite: true }));
      expect(gradients(list)).toEqual([3, 4, bad]);
      expect(Number(clipGradNorm(list, 1))).toBe(bad);
      expect(gradients(list)).toEqual(Number.isNaN(bad) ? [bad, bad, bad] : [0, 0, Number.NaN]);
    },
  );

  it("makes few launches of a thousand gradients, and frees what it makes", () => {
    const device = new FakeDevice();
    const list = Array.from({ length: 1000 }, () => parameter([1], { device }));
    for (const param of list) param.grad = tensor([2], { device });
    const before = device.memory().tensors;
    clipGradNorm(list, 1).dispose();
    expect(device.memory().tensors).toBe(before);
    expect(device.launches.filter((kind) => kind === "sumSquares").length).toBe(2);
  });
});

it("one gradient is measured once, and scaled where it is", () => {
  const device = new FakeDevice();
  const param = parameter([1, 2], { device });
  param.grad = tensor([3, 4], { device });
  device.launches.length = 0;
  clipGradNorm(param, 1);
  expect(device.launches.filter((kind) => kind === "sumSquares")).toHaveLength(1);
  expect(device.launches).not.toContain("copy");
});

describe("gradients of several dtypes and sizes", () => {
  /** f32 [3], an empty one, and f64 [4]. */
  const mixed = () => {
    const list = [parameter([0]), parameter(new Float32Array(0)), parameter([0], { dtype: "f64" })];
    list[0]!.grad = tensor([3]);
    list[1]!.grad = tensor(new Float32Array(0));
    list[2]!.grad = tensor([4], { dtype: "f64" });
    return list;
  };

  it.each([
    [2, 5],
    [1, 7],
    [Number.POSITIVE_INFINITY, 4],
    [3, 91 ** (1 / 3)],
  ])("have one %d-norm, in the widest of them", (normType, norm) => {
    const list = mixed();
    const total = clipGradNorm(list, norm / 2, { normType });
    expect([total.dtype, total.shape]).toEqual(["f64", []]);
    expect(Number(total)).toBeCloseTo(norm, 6);
    expect(gradients(list)[0]).toBeCloseTo(1.5, 5);
    expect(gradients(list)[1]).toBeCloseTo(2, 5);
    expect(list.map(({ grad }) => grad!.dtype)).toEqual(["f32", "f32", "f64"]);
  });

  it.each([
    ["bf16", "f32"],
    ["f16", "f32"],
    ["f16", "bf16"],
    ["f32", "f64"],
  ] as const)("of %s before %s are measured by all their digits", (narrow, wide) => {
    const [zero, fine] = [parameter([0], { dtype: narrow }), parameter([0], { dtype: wide })];
    zero.grad = tensor([0], { dtype: narrow });
    fine.grad = tensor([1 + 2 ** (wide === "bf16" ? -7 : -20)], { dtype: wide });
    expect(Number(clipGradNorm([zero, fine], 9))).toBe(fine.grad.dataSync()[0]);
  });

  it("are clipped each by itself, or by value", () => {
    const [each, byValue] = [mixed(), mixed()];
    clipGradNormEach(each, 3.5);
    clipGradValue(byValue, 3.5);
    expect([gradients(each), gradients(byValue)]).toEqual([
      [3, 3.5],
      [3, 3.5],
    ]);
  });

  it.each([1, 2, Number.POSITIVE_INFINITY])(
    "have a %d-norm of their dtype on their device, all of them empty",
    (normType) => {
      const device = new FakeDevice();
      const param = parameter(new Float64Array(0), { device });
      param.grad = tensor(new Float64Array(0), { device });
      const norm = clipGradNorm([param], 1, { normType });
      expect([norm.dtype, norm.device, norm.shape, Number(norm)]).toEqual(["f64", device, [], 0]);
    },
  );

  it("may be empty, or one", () => {
    const empty = parameter(new Float32Array(0));
    empty.grad = tensor(new Float32Array(0));
    for (const normType of [1, 2, Number.POSITIVE_INFINITY]) {
      expect(Number(clipGradNorm([empty], 1, { normType }))).toBe(0);
      const one = parameter([0]);
      one.grad = tensor([-8]);
      const total = clipGradNorm([one], 2, { normType });
      expect([total.shape, Number(total)]).toEqual([[], 8]);
      expect(gradients([one])[0]).toBeCloseTo(-2, 5);
    }
  });
});

describe("clipGradNormEach", () => {
  it("leaves gradients at or below the limit alone, zeros too, and asks nothing of the device for no limit", () => {
    const list = params("f32", [[3, 4], [0, 0], [5]]);
    clipGradNormEach(list, 5);
    expect(gradients(list)).toEqual([3, 4, 0, 0, 5]);
    const device = new FakeDevice();
    const far = parameter([1], { device });
    far.grad = tensor([1], { device });
    device.launches.length = 0;
    clipGradNormEach([far], Number.POSITIVE_INFINITY);
    expect(device.launches).toEqual([]);
    clipGradNormEach([parameter([1])], 1);
  });

  it("clips each gradient by itself", () => {
    const list = params();
    clipGradNormEach(list, 5.5);
    const norm = Math.hypot(1, 2, 0.25, 8);
    expect(gradients(list)).toAgreeWith(
      flat.map((g, i) => (i < 3 ? g : (g * 5.5) / norm)),
      { absolute: 1e-6, relative: 0 },
    );
  });
});

describe("clipGradValue", () => {
  it.each<DType>(["f32", "f64", "bf16"])("clamps %s gradients, and a NaN stays one", (dtype) => {
    const list = params(dtype, [[3, -4, 0.5, Number.NaN, -0], [[Number.NEGATIVE_INFINITY]]]);
    clipGradValue(list, 1);
    expect(gradients(list)).toEqual([1, -1, 0.5, Number.NaN, -0, -1]);
  });

  it("clamps on several devices, one launch each", () => {
    const devices = [new FakeDevice({ name: "one" }), new FakeDevice({ name: "two" })];
    const list = [0, 1, 0, 1].map((at) => parameter([1], { device: devices[at]! }));
    for (const param of list) param.grad = tensor([5], { device: param.device });
    const launches = devices.map((device) => vi.spyOn(device.backend, "launch"));
    for (const device of devices) device.launches.length = 0;
    clipGradValue(list, 2);
    const sizes = launches.map(({ mock }) => mock.calls.map(([call]) => call.kind === "rule" && call.tensors.length));
    expect(sizes).toEqual([[2], [2]]);
    expect(list.map(({ grad }) => Number(grad))).toEqual([2, 2, 2, 2]);
    expect(devices.map(({ launches }) => launches)).toEqual([["rule"], ["rule"]]);
  });

  it("leaves every digit of f64 within the limit", () => {
    const list = params("f64", [[0.1, -3]]);
    clipGradValue(list, 1);
    expect(gradients(list)).toEqual([0.1, -1]);
  });
});

it("a limit of 0 clips everything to 0", () => {
  for (const clip of [clipGradNorm, clipGradNormEach, clipGradValue]) {
    const list = params();
    clip(list, 0);
    expect(gradients(list).map(Math.abs)).toEqual(flat.map(() => 0));
  }
});

describe("clipping rejects", () => {
  it.each([-1, Number.NaN, "1"])("the limit %s", (limit) => {
    for (const clip of [clipGradNorm, clipGradNormEach, clipGradValue]) {
      expectCode("BAD_ARGUMENT", () => clip(params(), limit as number));
    }
  });

  it("other norms, other things than tensors, and gradients on two devices", () => {
    for (const normType of [0, -1, Number.NaN]) {
      expectCode("BAD_ARGUMENT", () => clipGradNorm(params(), 1, { normType }));
      expect(() => clipGradNorm(params(), 1, { normType })).toThrow("[clipGradNorm] normType");
    }
    for (const tensors of [[], "w", zeros([1])] as unknown as Tensor[][]) {
      expectCode("BAD_ARGUMENT", () => norms(tensors));
      expectCode("BAD_ARGUMENT", () => nonFinite(tensors));
    }
    for (const clip of [clipGradNorm, clipGradNormEach, clipGradValue])
      expect(() => clip([[1]] as never, 1)).toThrow(`[${clip.name}] params must be tensors`);
    const device = new FakeDevice();
    const other = parameter([1], { device });
    other.grad = tensor([1], { device });
    for (const clip of [clipGradNorm, clipGradNormEach]) {
      expectCode("DEVICE_MISMATCH", () => clip([...params(), other], 1));
      expect(() => clip([...params(), other], 1)).toThrow(`[${clip.name}] gradients must be on one device`);
    }
  });
});

// torch.nn.utils.clip_grad_norm_ of 3 + 4i and 6 + 8i.
it.each([
  [1, 15],
  [2, 11.180339813232422],
  [3, 10.400419235229492],
  [Number.POSITIVE_INFINITY, 10],
  [0.5, 29.142135620117188],
])("takes the magnitudes of complex numbers, p = %s", (normType, expected) => {
  const w = parameter(viewAsComplex(zeros([1, 2, 2])).clone());
  w.grad = viewAsComplex(tensor([3, 4, 6, 8], { shape: [1, 2, 2] })).clone();
  const norm = clipGradNorm([w], 1, { normType });
  expect(Number(norm)).toBeCloseTo(expected, 4);
  const scaled = [3, 4, 6, 8].map((part) => part / (expected + 1e-6));
  expect(viewAsReal(w.grad).dataSync()).toAgreeWith(Float32Array.from(scaled), { absolute: 0, relative: 1e-6 });
});
