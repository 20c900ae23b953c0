/** 16-bit parameters without float32 copies: every optimizer draws the same on every exact device, eager, compiled and scaled. */
import "@opt/kernels-cpu";
import {
  compile,
  type Device,
  Generator,
  GradScaler,
  type GroupOptions,
  init,
  listDevices,
  parameter,
  randn,
  type Tensor,
} from "@opt/core";
import { enableQ8, enableStochasticRounding } from "@opt/kernels-wasm";
import { optimizerRuns } from "@opt/testkit/optimizers";
import { describe, expect, it } from "vitest";

enableQ8();
enableStochasticRounding();

const random = { stochasticRounding: { seed: 3 } } as const;
const all = await optimizerRuns();
const clipped = all.map((run) => ({
  ...run,
  title: `${run.title}, clipped`,
  options: { ...run.options, clip: { value: 1e-4 } },
}));
const SHAPES = [
  [130, 37],
  [6, 10],
  [6, 10],
];
const STEPS = 3;

const words = (x: Tensor) => Buffer.from(x.bytesSync()).toString("hex");

interface Run {
  readonly device: Device;
  readonly dtype: "bf16" | "f16";
  readonly further: GroupOptions;
  readonly isCompiled?: boolean;
}

function train({ Optimizer, options }: (typeof all | typeof clipped)[number], { device, dtype, further, isCompiled = false }: Run) {
  const generator = new Generator(4);
  const draw = (shape: readonly number[]) => randn(shape, { generator, device: "js" }).to(dtype).to(device);
  const params = SHAPES.map((shape) => parameter(draw(shape)));
  const optimizer = new Optimizer(params, { ...options, ...random, ...further });
  // GradScaler rejects gradients in f16, as PyTorch's does.
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
    const isPlain = further.stateDType === undefined;
    for (const run of isPlain ? [...all, ...clipped] : all) {
      // The variance of rounded averages may be negative.
      if (further.stateDType === "q8" && "centered" in run.options) continue;
      // Its state has less than one number for each element, and is float32.
      if (!isPlain && run.name === "Adafactor") continue;
      // Products of matrices are added up in another order on each device: Muon's own directions.
      const reference = run.isElementwise ? js : device;
      const expected = train(run, { device: reference, dtype, further });
      expect(train(run, { device, dtype, further }), run.title).toEqual(expected);
      expect(train(run, { device, dtype, further, isCompiled: true }), `${run.title}, compiled`).toEqual(expected);
    }
  });
});
