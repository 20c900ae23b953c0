/** Training in bf16 without a float32 copy: rounded at random it learns what float32 does, rounded to nearest it stops early. */
import "@opt/kernels-cpu";
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, init, parameter, randn, type Tensor, tidy } from "@opt/core";
import { crossEntropy } from "@opt/nn";
import { expect, it } from "vitest";
import { loadMnist, PIXELS } from "./data";

type Kept = "f32" | "random" | "nearest";

const [COUNT, BATCH, STEPS] = [4096, 64, 640];

async function trainedLoss(kept: Kept): Promise<number> {
  const device = await init();
  const generator = new Generator(1);
  const make = (shape: number[]) => {
    const first = randn(shape, { generator, device }).mul(1 / Math.sqrt(shape[0]!));
    return parameter(first.to(kept === "random" ? "bf16" : "f32"));
  };
  const [w, v] = [make([PIXELS, 64]), make([64, 10])];
  const optimizer = new AdamW([w, v], { lr: 2e-4, weightDecay: 0, stochasticRounding: kept === "random" });
  const { training } = loadMnist();
  const [images, labels] = training.batch(Int32Array.from({ length: COUNT }, (_, i) => i)) as [Tensor, Tensor];
  const x = images
    .reshape([COUNT, PIXELS])
    .to("f32")
    .mul(1 / 255);
  const lossOf = (inputs: Tensor, targets: Tensor) =>
    crossEntropy(inputs.matmul(w.to("f32")).relu().matmul(v.to("f32")), targets);
  for (let step = 0; step < STEPS; step++) {
    tidy(() => {
      const at = (step * BATCH) % COUNT;
      lossOf(x.slice(at, at + BATCH), labels.slice(at, at + BATCH)).backward();
      optimizer.step();
      optimizer.zeroGrad();
      if (kept === "nearest") for (const p of [w, v]) p.set(p.detach().to("bf16").to("f32").dataSync());
    });
  }
  return tidy(() => lossOf(x, labels)).item();
}

it("comes within 1 % of float32's loss, where rounding to nearest ends 40 % above", async () => {
  const whole = await trainedLoss("f32");
  expect(Math.abs((await trainedLoss("random")) / whole - 1)).toBeLessThan(0.01);
  expect((await trainedLoss("nearest")) / whole).toBeGreaterThan(1.4);
});
