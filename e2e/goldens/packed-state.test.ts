/** State in 8 bits: every optimizer has the same words on every exact device, eager, compiled and scaled; and keeps as few bytes as it says. */
import "@opt/kernels-cpu";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import {
  compile,
  type Device,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  init,
  listDevices,
  type Optimizer,
  type Parameters,
  parameter,
  randn,
  type Tensor,
} from "@opt/core";
import { enableQ8 } from "@opt/kernels-wasm";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { SGD } from "@opt/sgd";
import { describe, expect, it } from "vitest";

enableQ8();

const q8 = { stateDType: "q8" } as const;
const CASES: Record<string, (params: Parameters) => Optimizer<never>> = Object.fromEntries(
  Object.entries({
    NAdam: (params: Parameters) => new NAdam(params, { ...q8, weightDecay: 0.01 }),
    AdamW: (params: Parameters) => new AdamW(params, { ...q8, clip: { value: 0.0001 } }),
    AMSGrad: (params: Parameters) => new Adam(params, { ...q8, amsgrad: true, maximize: true }),
    SGD: (params: Parameters) => new SGD(params, { ...q8, momentum: 0.9, nesterov: true }),
    RMSprop: (params: Parameters) => new RMSprop(params, { ...q8, momentum: 0.9 }),
    Adamax: (params: Parameters) => new Adamax(params, { ...q8 }),
    RAdam: (params: Parameters) => new RAdam(params, { ...q8 }),
    Muon: (params: Parameters) => new Muon(params, { ...q8 }),
  }).map(([name, make]) => [name, make as unknown as (params: Parameters) => Optimizer<never>]),
);
/** 4810 elements are no multiple of 256; 60 stay in float32. */
const SHAPES = [
  [130, 37],
  [6, 10],
];
const STEPS = 6;

const words = (x: Tensor) => [...new Uint8Array(x.bytesSync())];

function train(make: (params: Parameters) => Optimizer<never>, device: Device, dtype: "f32" | "bf16", isCompiled = false) {
  const generator = new Generator(4);
  const draw = (shape: readonly number[]) => randn(shape, { generator, device: "js" }).to(dtype).to(device);
  const params = SHAPES.map((shape) => parameter(draw(shape)));
  const optimizer = make(params);
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

const js = await init("js");
const others = (await listDevices()).filter(({ name, available }) => name !== "js" && available);

describe.each(others)("$name", ({ name }) => {
  describe.each(["f32", "bf16"] as const)("of %s parameters", (dtype) => {
    it("has the words of js, eager and compiled", async () => {
      const device = await init(name);
      for (const [optimizer, make] of Object.entries(CASES)) {
        // Products of matrices are added up in another order on each device: Muon's own directions.
        const reference = optimizer === "Muon" ? device : js;
        const expected = train(make, reference, dtype);
        expect(train(make, device, dtype), optimizer).toEqual(expected);
        expect(train(make, device, dtype, true), `${optimizer}, compiled`).toEqual(expected);
      }
    });
  });
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
