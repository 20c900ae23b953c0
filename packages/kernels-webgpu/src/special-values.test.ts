// Every op of rules and maps at values where WGSL leaves the result to the device: as on js, within the bounds of emit/functions.ts.
import { AdamW } from "@opt/adam-amsgrad";
import * as core from "@opt/core";
import { type Device, init, type Tensor, tensor } from "@opt/core";
import { compareNumbers, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { openWebGpuBackend } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

const NUMBERS = [
  ...[0, -0, Number.NaN, Infinity, -Infinity],
  ...[1, -1, 0.5, -0.5, 2, -2, 3, -3, 4, 0.1, -0.1, 0.3, -0.9999999, 1e-3, -1e-3],
  ...[1e-30, -1e-30, 2 ** -126, -(2 ** -126), 2 ** -127, -(2 ** -127), 1e-44, 2 ** -149],
  ...[10, -10, 20, -20, 50, -50, 87, -87, 88.7, 88.73, 89, -89, -100, 103, -104, 300, -300],
  ...[1e3, 1e4, -1e4, 1e6, -1e6, 12345678, 16777217, 1e8, 1e10, -1e10, 1e20, -1e20, 1e30, 3e38, -3e38],
].map(Math.fround);

/** Of two operands, all pairs of these. */
const PAIRED = [
  0,
  -0,
  Number.NaN,
  Infinity,
  -Infinity,
  1,
  -1,
  0.5,
  -0.5,
  2,
  -2,
  3,
  -3,
  2.5,
  1e-30,
  2 ** -127,
  1e10,
  3e38,
  -3e38,
];

type Call = (...operands: Tensor[]) => Tensor;
const FUNCTIONS = { ...core } as unknown as Readonly<Record<string, Call>>;

const UNARY =
  "neg abs square sqrt rsqrt exp expm1 log log1p tanh erf sin cos sigmoid floor ceil round sign isnan isfinite logicalNot relu gelu silu selu relu6 hardswish mish logsigmoid softplus elu hardtanh leakyRelu";
const BINARY = "add sub mul div pow maximum minimum less lt le gt ge eq ne logaddexp logicalAnd logicalOr";

/** WGSL lets devices take numbers below 2^-126 as 0, before and after an op. */
const flushed = (x: number) => (Math.abs(x) < 2 ** -126 ? 0 * x : x);
/** What was 0 on the way may have been multiplied by 100, as in mish(-100). */
const TOLERANCE = { absolute: 100 * 2 ** -126, relative: 2e-6 };

/** What js says of the operands, or of those that are flushed, is right. */
async function faults(name: string, operands: readonly (readonly number[])[]): Promise<string[]> {
  const run = async (device: Device, given: (x: number) => number) => {
    const tensors = operands.map((values) => tensor(values.map(given), { device }));
    return FUNCTIONS[name]!(...tensors).data();
  };
  const [webgpu, js] = [await init("webgpu"), await init("js")];
  const found = await run(webgpu, (x) => x);
  const right = [await run(js, (x) => x), await run(js, flushed)];
  const agrees = (i: number) =>
    right.some((values) => compareNumbers(Float32Array.of(found[i]!), [values[i]!], TOLERANCE).agrees);
  return operands[0]!.flatMap((_, i) =>
    agrees(i) ? [] : `${name}(${operands.map((values) => values[i])}) is ${found[i]}, on js ${right[0]![i]}`,
  );
}

describe.skipIf(reason !== undefined)(`special values${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  it.each(UNARY.split(" "))("%s", async (name) => expect(await faults(name, [NUMBERS])).toEqual([]));

  it.each(BINARY.split(" "))("%s", async (name) => {
    const pairs = PAIRED.flatMap((a) => PAIRED.map((b) => [a, b] as const));
    expect(await faults(name, [pairs.map(([a]) => a), pairs.map(([, b]) => b)])).toEqual([]);
  });

  const rows = [
    [-Infinity, -Infinity, -Infinity],
    [0, -Infinity, 1],
    [Number.NaN, 0, 1],
    [Infinity, 0, 1],
    [1000, 1000, -1000],
    [-1000, -1001, -1002],
  ];
  const ofRows: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    softmax: (x) => core.softmax(x),
    "softmax of long rows": (x) => core.softmax(core.repeat(x, [1, 50])),
    logSoftmax: (x) => core.logSoftmax(x),
    logsumexp: (x) => core.logsumexp(x, 1),
    logcumsumexp: (x) => core.logcumsumexp(x, 1),
    max: (x) => core.max(x, 1),
    argmin: (x) => core.argmin(x, 1),
    mean: (x) => core.mean(x, 1),
    variance: (x) => core.variance(x, 1),
    norm: (x) => core.norm(x, 2, 1),
    "binary cross-entropy": (x) => core.binaryCrossEntropyTerms(x.eq(x).to("f32"), x.mul(0).eq(0).to("f32").mul(0)),
    "cross-entropy": (x) => core.crossEntropyRows(x, tensor([1, 1, 1, 1, 1, 1], { dtype: "i32", device: x.device })),
    layerNorm: (x) => core.layerNorm(x, core.ones([3], { device: x.device })),
    sort: (x) => core.sort(x, 1).values,
    "the gradient of logsumexp": (x) => core.grad(core.logsumexp(x, 1).sum(), [x])[0]!,
    "the gradient of softmax": (x) => core.grad(core.softmax(x).mul(core.zerosLike(x).add(2)).sum(), [x])[0]!,
  };
  it.each(Object.keys(ofRows))("rows: %s", async (name) => {
    const results = [];
    for (const device of ["webgpu", "js"]) {
      const x = tensor(rows, { device: await init(device), requiresGrad: name.startsWith("the gradient") });
      results.push(await ofRows[name]!(x).data());
    }
    expect(results[0]).toAgreeWith(results[1]!, { absolute: 1e-6, relative: 2e-6 });
  });

  it("logarithms of probabilities 0 and 1 are bounded as in PyTorch", async () => {
    const device = await init("webgpu");
    const [p, y] = [tensor([0, 1, 0, 1], { device }), tensor([1, 0, 0, 1], { device })];
    expect([...(await core.binaryCrossEntropyTerms(p, y).abs().data())]).toEqual([100, 100, 0, 0]);
  });

  it.each([1, 16, 1000])("sums of 2^20 elements in %s columns round as if in pairs", async (columns) => {
    const values = Float32Array.from(
      { length: 2 ** 20 - (2 ** 20 % columns) },
      (_, i) => 1 + ((i * 2654435761) % 1000) / 1000,
    );
    const shape = [values.length / columns, columns];
    const means = (device: Device) => tensor(values, { shape, device }).mean(0).data();
    expect(await means(await init("webgpu"))).toAgreeWith(await means(await init("js")), {
      absolute: 0,
      relative: 3e-7,
    });
  });

  it("so do products, rows and running sums", async () => {
    const values = Float32Array.from({ length: 2 ** 18 }, (_, i) => 1 + ((i * 2654435761) % 1000) / 1000);
    const results = [];
    for (const name of ["webgpu", "js"]) {
      const x = tensor(values, { device: await init(name) });
      const row = x.reshape([1, -1]);
      results.push(
        await core
          .concat([
            x.matmul(x).reshape([1]),
            core.cumsum(x, 0).slice(-1),
            core.logSoftmax(row).sum().reshape([1]),
            core.variance(x).reshape([1]),
          ])
          .data(),
      );
    }
    expect(results[0]).toAgreeWith(results[1]!, { absolute: 0, relative: 1e-6 });
  });

  it.each([
    [3, 5, 4],
    [40, 50, 33],
    [130, 20, 131],
  ])("products of integers wrap in every kind of tile: %s x %s x %s", async (m, k, n) => {
    const results = [];
    for (const name of ["webgpu", "js"]) {
      const device = await init(name);
      const of = (rows: number, columns: number, by: number) =>
        tensor(
          Int32Array.from({ length: rows * columns }, (_, i) => Math.imul(i + 1, by)),
          { shape: [rows, columns], device },
        );
      results.push([...(await core.matmul(of(m, k, 2654435), of(k, n, -40503)).data())]);
    }
    expect(results[0]).toEqual(results[1]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ["sort", async () => core.sort(tensor([1, 2], { dtype: "f64", device: await init("webgpu") }))],
    ["to", async () => tensor([1, 2], { device: await init("webgpu") }).to("f64")],
    ["zeros", async () => core.zeros([2], { dtype: "f64", device: await init("webgpu") })],
    [
      "AdamW",
      async () => {
        const w = core.parameter([1], { dtype: "f64", device: await init("webgpu") });
        w.grad = tensor([1], { dtype: "f64", device: w.device });
        new AdamW([w]).step();
      },
    ],
  ])("f64 is rejected by the name of %s", async (name, run) => {
    await expect(run()).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringMatching(`^\\[${name}\\] webgpu computes in f32 and i32, got f64\\. Use f32`),
    });
  });
});
