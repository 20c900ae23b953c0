/** A program that `opt-run --prove-resume` proves: `proven-run.ts <device> <kind>`. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { ExponentialMovingAverage, Generator, GradScaler, init, type Tensor, tensor } from "@opt/core";
import { CosineAnnealingLR, ReduceLROnPlateau } from "@opt/core/schedules";
import { DataLoader } from "@opt/data";
import { crossEntropy, Dropout, Linear, ReLU, Sequential } from "@opt/nn";
import { connect } from "@opt/parallel";
import { checkpoints } from "../src/callbacks/checkpoints";
import { earlyStopping } from "../src/callbacks/early-stopping";
import { fit } from "../src/fit";

const [device = "js", kind = ""] = process.argv.slice(2);
const has = (what: string) => kind.split(",").includes(what);
await init(device);
const communicator = await connect();
const generator = new Generator(1);
const model = new Sequential(
  new Linear(4, 16, { generator }),
  new ReLU(),
  new Dropout(has("dropout") ? 0.5 : 0),
  new Linear(16, 3, { generator }),
);
const samples = Array.from(
  { length: 44 },
  (_, i) => [tensor([Math.sin(i), Math.cos(3 * i), i % 3, 1]), tensor(i % 3, { dtype: "i32" })] as [Tensor, Tensor],
);
const optimizer = new AdamW(model.namedParameters(), { lr: 0.02 });
const folder = process.env.OPT_RUN_FOLDER ?? "runs/proven";
const shuffled = { shuffle: true, generator: new Generator(5) };
await fit(model, {
  data: new DataLoader(samples, { batchSize: 8, ...(has("ordered") ? {} : shuffled) }),
  ...(has("validation") || has("early")
    ? {
        validation: new DataLoader(samples.slice(0, 20), {
          batchSize: 5,
          ...(has("shuffled validation") && { shuffle: true, generator: new Generator(6) }),
        }),
      }
    : {}),
  loss: crossEntropy,
  optimizer,
  epochs: 6,
  ...(has("schedule") && { schedule: new CosineAnnealingLR(optimizer, { tMax: 30, warmup: 5 }) }),
  ...(has("plateau") && { schedule: new ReduceLROnPlateau(optimizer, { patience: 0, threshold: 0.3 }) }),
  ...(has("scaler") && { scaler: new GradScaler({ growthInterval: 4 }) }),
  ...(has("ema") && { ema: new ExponentialMovingAverage(model.namedParameters(), { decay: 0.9 }) }),
  ...(has("clip") && { clip: { norm: 0.5 } }),
  ...(has("accumulate") && { accumulate: 2 }),
  ...(communicator.size > 1 && { communicator }),
  callbacks: [
    checkpoints(folder, has("every") ? { every: 4 } : {}),
    ...(has("early") ? [earlyStopping({ patience: 3 })] : []),
  ],
  resume: !has("anew"),
});
await communicator.close();
