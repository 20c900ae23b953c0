/** Two parameters that Momentum trains by seeded gradients, for laws of what is stored. */
import { createHash } from "node:crypto";
import { parameter, randn, tensor } from "../src/create";
import type { GroupOptions } from "../src/optimizer/algorithm";
import { Generator } from "../src/random/generator";
import type { Tensor } from "../src/tensor/tensor";
import type { DType } from "../src/values/dtype";
import { FakeDevice } from "./fake-backend";
import { Momentum, type MomentumOptions } from "./momentum";

export type TrainedOptions = Partial<MomentumOptions> & GroupOptions;

/** `train` gives each step its own gradients; `give` those of the next step, times a number. */
export function trained(options: TrainedOptions = {}, dtype: DType = "f32", size = 300) {
  const device = new FakeDevice();
  const values = (seed: number) => randn([size], { generator: new Generator(seed) }).dataSync();
  const [w, b] = ["w", "b"].map((name) => parameter(values(1), { dtype, device, name })) as [Tensor, Tensor];
  const optimizer = new Momentum([w, b], { lr: 1e-3, ...options });
  const stepsOf = () => optimizer.stateDict().state.w?.step ?? 0;
  const give = (scale = 1) => {
    // No element is so small that a scaled one has more digits in float16.
    const gradient = values(7 + stepsOf()).map((x) => (x + Math.sign(x) / 16) * scale);
    for (const param of [w, b]) param.grad = tensor(gradient, { dtype, device });
  };
  const train = (count: number) => {
    for (let i = 0; i < count; i++) {
      give();
      optimizer.step();
    }
  };
  const velocity = () => optimizer.stateDict().state.w!.velocity as Tensor;
  /** A hash of each parameter and of each tensor of its state. */
  const words = () => {
    const { state } = optimizer.stateDict();
    const tensors = Object.values(state).flatMap((entry) => Object.values(entry).filter((x) => typeof x !== "number"));
    return [w, b, ...tensors].map((x) => createHash("md5").update(x.bytesSync()).digest("hex"));
  };
  return { device, w, b, optimizer, give, train, velocity, words, steps: stepsOf };
}
