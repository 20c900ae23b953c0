import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { init } from "../device/registry";
import type { ErrorCode } from "../errors/errors";
import { GradScaler } from "../loss-scaling/scaler";
import { concat } from "../ops";
import { defineRule } from "../rule/rule";
import { fma } from "../rule/symbols";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions } from "./algorithm";
import { StagedOptimizer, type Stages } from "./staged";

await init("js");

const buffers = ["param", "grad", "direction"] as const;
const first = defineRule({ name: "first", buffers, scalars: [], update: ({ grad }) => ({ direction: grad }) });
const last = defineRule({
  name: "last",
  buffers,
  scalars: ["total"],
  update: ({ param, direction }, { total }) => ({ param: fma(total, direction, param) }),
});

const algorithm: Algorithm<BaseOptions> = {
  name: "Totals",
  defaults: { lr: 1, maximize: false },
  validate() {},
  rule: () => last,
  stageState: () => ({ sum: [] }),
  stageScalars: ["total"],
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: () => ({}),
};

const whole: Stages<BaseOptions> = {
  rule: () => first,
  transform: (directions) => ({
    directions,
    found: { part: concat(directions.map((direction) => direction.sum().reshape([1]))) },
  }),
  transformedBy: [],
  together: { found: ["part"], scalars: { total: "sum" }, compute: ({ part }) => ({ total: part!.sum() }) },
};
let stages = whole;

/** Each parameter steps along its gradient, times the sum of all gradients. */
class Totals extends StagedOptimizer<BaseOptions> {
  protected override define(): Algorithm<BaseOptions> {
    return algorithm;
  }
  protected override stages(): Stages<BaseOptions> {
    return stages;
  }
}

const sumOf = (optimizer: Totals, name = "0") => (optimizer.stateDict().state[name]!.sum as Tensor).dataSync()[0]!;

it("parameters of all groups and dtypes have one number, and it becomes their state", () => {
  const params = (["f32", "f64", "bf16"] as const).map((dtype) => parameter([1], { dtype }));
  const optimizer = new Totals([{ params: [params[0]!, params[1]!] }, { params: [params[2]!] }]);
  for (const [k, param] of params.entries()) param.grad = tensor([10 ** k], { dtype: param.dtype });
  const step = compile(() => optimizer.step());
  for (const run of [() => optimizer.step(), step]) {
    for (const param of params) param.set([1]);
    run();
    expect(params.map((param) => param.to("f64").tolist())).toEqual([[112], [1111], [11072]]); // 11101 in bf16
    expect(["0", "1", "2"].map((name) => sumOf(optimizer, name))).toEqual([111, 111, 111]);
  }
});

it("adds in the order of the parameters, whichever launches they are in", () => {
  const gradients = [2 ** 53, 1, -(2 ** 53), 1]; // 1 or 2, as they are added
  const run = (late: readonly number[]) => {
    const params = gradients.map(() => parameter([0], { dtype: "f64" }));
    const optimizer = new Totals(params);
    // Those that begin later have another counter, and so another launch.
    for (const [k, param] of params.entries()) if (!late.includes(k)) param.grad = tensor([0], { dtype: "f64" });
    optimizer.step();
    for (const [k, param] of params.entries()) param.grad = tensor([gradients[k]!], { dtype: "f64" });
    optimizer.step();
    return params.map((param) => param.tolist());
  };
  expect(run([0])).toEqual(run([]));
  expect(run([1, 3])).toEqual(run([]));
});

it("takes no part in a step that is skipped", () => {
  const w = parameter([1]);
  const optimizer = new Totals([w]);
  const scaler = new GradScaler({ initScale: 1 });
  for (const gradient of [2, Number.POSITIVE_INFINITY]) {
    w.clearGradient();
    scaler.scale(w.mul(gradient).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
    expect([w.tolist(), sumOf(optimizer)]).toEqual([[5], 2]);
  }
});

it("rejects parameters on two devices, and changes none", () => {
  const params = [new FakeDevice(), new FakeDevice()].map((device) => parameter([1], { device }));
  for (const param of params) param.grad = tensor([1], { device: param.device });
  expectCode("DEVICE_MISMATCH", () => new Totals(params).step());
  expect(params.map((param) => param.tolist())).toEqual([[1], [1]]);
});

it.each<[ErrorCode, Partial<Stages<BaseOptions>>]>([
  ["BAD_ARGUMENT", { together: { found: ["part"], scalars: { total: "sum" }, compute: () => ({}) } }],
  [
    "BAD_SHAPE",
    { together: { found: ["part"], scalars: { total: null }, compute: () => ({ total: tensor([1, 2]) }) } },
  ],
  ["BAD_ARGUMENT", { transform: (directions) => ({ directions, found: { part: tensor([1, 2, 3]) } }) }],
  [
    "BAD_ARGUMENT",
    {
      transform: (directions) =>
        directions[0]!.dtype === "f64" ? { directions } : whole.transform(directions, {} as never),
    },
  ],
])("%s for what is not given right: %o", (code, given) => {
  stages = { ...whole, ...given };
  const params = (["f32", "f64"] as const).map((dtype) => parameter([1], { dtype }));
  for (const param of params) param.grad = tensor([1], { dtype: param.dtype });
  try {
    expectCode(code, () => new Totals(params).step());
  } finally {
    stages = whole;
  }
  expect(params.map((param) => param.tolist())).toEqual([[1], [1]]);
});
