/** State in 8 bits: every optimizer has the same words on every exact device, eager, compiled and scaled; and keeps as few bytes as it says. */
import { AdamW } from "@opt/adam-amsgrad";
import "@opt/kernels-cpu";
import {
  compile,
  type Device,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  init,
  listDevices,
  OptError,
  parameter,
  randn,
  type Tensor,
} from "@opt/core";
import { enableQ8 } from "@opt/kernels-wasm";
import { type OptimizerRun, optimizerRuns } from "@opt/testkit/optimizers";
import { describe, expect, it } from "vitest";

enableQ8();

const q8 = { stateDType: "q8" } as const;
/** Some variants need state that 8 bits cannot hold: RMSprop's `centered`. */
function canPack({ Optimizer, options }: OptimizerRun): boolean {
  try {
    return new Optimizer([parameter([[1]], { device: js })], { ...options, ...q8 }) !== undefined;
  } catch (error) {
    if (error instanceof OptError && error.code === "UNSUPPORTED") return false;
    throw error;
  }
}

const js = await init("js");
const all = await optimizerRuns();
const packed = all.filter(canPack);
const CASES = [
  ...packed,
  ...packed.map((run) => ({ ...run, title: `${run.title}, clipped`, options: { ...run.options, clip: { value: 0.0001 } } })),
];
/** 4810 elements are no multiple of 256; 60 stay in float32. */
const SHAPES = [
  [130, 37],
  [6, 10],
];
const STEPS = 4;

const words = (x: Tensor) => Buffer.from(x.bytesSync()).toString("hex");

function train({ Optimizer, options }: (typeof CASES)[number], device: Device, dtype: "f32" | "bf16", isCompiled = false) {
  const generator = new Generator(4);
  const draw = (shape: readonly number[]) => randn(shape, { generator, device: "js" }).to(dtype).to(device);
  const params = SHAPES.map((shape) => parameter(draw(shape)));
  const optimizer = new Optimizer(params, { ...options, ...q8 });
  const averages = new ExponentialMovingAverage(params, { decay: 0.9 });
  const scaler = new GradScaler({ initScale: 8 });
  const target = draw([1]);
  const body = () => {
    const losses = params.map((param) => param.sub(target).pow(2).mean().to("f32"));
    scaler.scale(losses[0]!.add(losses[1]!)).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    averages.update();
  };
  const step = isCompiled ? compile(body) : body;
  for (let i = 0; i < STEPS; i++) step();
  const state = Object.values(optimizer.stateDict().state).flatMap((entry) =>
    Object.values(entry).filter((value): value is Tensor => typeof value !== "number"),
  );
  return [...params, ...state].map(words);
}

const others = (await listDevices()).filter(({ name, available }) => name !== "js" && available);

describe.each(others)("$name", ({ name }) => {
  describe.each(["f32", "bf16"] as const)("of %s parameters", (dtype) => {
    it("has the words of js, eager and compiled", async () => {
      const device = await init(name);
      for (const run of CASES) {
        // Products of matrices are added up in another order on each device: Muon's own directions.
        const expected = train(run, run.isElementwise ? js : device, dtype);
        expect(train(run, device, dtype), run.title).toEqual(expected);
        expect(train(run, device, dtype, true), `${run.title}, compiled`).toEqual(expected);
      }
    });
  });
});

it("holds runs of every optimizer whose state has a number for each element", () => {
  const others = all.filter(({ name }) => name !== "Adafactor");
  expect(new Set(packed.map(({ name }) => name))).toEqual(new Set(others.map(({ name }) => name)));
});

it("keeps at most 2.1 bytes of state an element of AdamW", async () => {
  const device = await init("js");
  const param = parameter(randn([1024, 256], { device: "js" }));
  param.grad = randn([1024, 256], { device: "js" });
  const before = device.memory().bytes;
  const optimizer = new AdamW([param], q8);
  optimizer.step();
  expect((device.memory().bytes - before) / param.size).toBeLessThan(2.1);
});
