/** 16-bit parameters without float32 copies: every optimizer draws the same on every exact device, eager, compiled and scaled. */
import "@opt/kernels-cpu";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import {
  compile,
  type Device,
  Generator,
  GradScaler,
  type GroupOptions,
  init,
  listDevices,
  type Optimizer,
  type Parameters,
  parameter,
  randn,
  type Tensor,
} from "@opt/core";
import { enableQ8, enableStochasticRounding } from "@opt/kernels-wasm";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { SGD } from "@opt/sgd";
import { describe, expect, it } from "vitest";

enableQ8();
enableStochasticRounding();

const random = { stochasticRounding: { seed: 3 } } as const;
const CASES: Record<string, (params: Parameters, further: GroupOptions) => Optimizer<never>> = Object.fromEntries(
  Object.entries({
    NAdam: (params: Parameters, more: GroupOptions) => new NAdam(params, { ...random, ...more, weightDecay: 0.01 }),
    AdamW: (params: Parameters, more: GroupOptions) => new AdamW(params, { ...random, ...more, clip: { value: 1e-4 } }),
    AMSGrad: (params: Parameters, more: GroupOptions) => new Adam(params, { ...random, ...more, amsgrad: true, maximize: true }),
    SGD: (params: Parameters, more: GroupOptions) => new SGD(params, { ...random, ...more }),
    RMSprop: (params: Parameters, more: GroupOptions) => new RMSprop(params, { ...random, ...more, momentum: 0.9 }),
    Adamax: (params: Parameters, more: GroupOptions) => new Adamax(params, { ...random, ...more }),
    RAdam: (params: Parameters, more: GroupOptions) => new RAdam(params, { ...random, ...more }),
    Muon: (params: Parameters, more: GroupOptions) => new Muon(params, { ...random, ...more }),
  }).map(([name, make]) => [name, make as unknown as (params: Parameters, more: GroupOptions) => Optimizer<never>]),
);
const SHAPES = [
  [130, 37],
  [6, 10],
  [6, 10],
];
const STEPS = 5;

const words = (x: Tensor) => [...new Uint8Array(x.bytesSync())];

interface Run {
  readonly device: Device;
  readonly dtype: "bf16" | "f16";
  readonly further: GroupOptions;
  readonly isCompiled?: boolean;
}

function train(make: (typeof CASES)[string], { device, dtype, further, isCompiled = false }: Run) {
  const generator = new Generator(4);
  const draw = (shape: readonly number[]) => randn(shape, { generator, device: "js" }).to(dtype).to(device);
  const params = SHAPES.map((shape) => parameter(draw(shape)));
  const optimizer = make(params, further);
  // GradScaler refuses gradients in f16, as PyTorch's does.
  const scaler = new GradScaler({ initScale: 8, enabled: dtype === "bf16" });
  const target = draw([1]);
  const body = () => {
    const [loss, ...losses] = params.map((param) => param.sub(target).pow(2).mean().to("f32"));
    scaler.scale(losses.reduce((sum, one) => sum.add(one), loss!)).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
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
  it.each<[Run["dtype"], GroupOptions]>([
    ["bf16", {}],
    ["bf16", { stateDType: "q8" }],
    ["f16", { stateDType: "bf16" }],
  ])("has the words of js in %s with %o, eager and compiled", async (dtype, further) => {
    const device = await init(name);
    for (const [optimizer, make] of Object.entries(CASES)) {
      // Products of matrices are added up in another order on each device: Muon's own directions.
      const reference = optimizer === "Muon" ? device : js;
      const expected = train(make, { device: reference, dtype, further });
      expect(train(make, { device, dtype, further }), optimizer).toEqual(expected);
      expect(train(make, { device, dtype, further, isCompiled: true }), `${optimizer}, compiled`).toEqual(expected);
    }
  });
});
