/** A program that trains with checkpoints, and tells each step: `killed-run.ts <folder>`. Begun again, it goes on. */
import { createHash } from "node:crypto";
import { AdamW } from "@opt/adam-amsgrad";
import { checkpoints } from "../src/callbacks/checkpoints";
import { earlyStopping } from "../src/callbacks/early-stopping";
import { fit } from "../src/fit";
import { begin, optionsOf, words } from "./runs";

const extras = { ema: true, scaler: true };
const run = begin("mlp", (model) => new AdamW(model.namedParameters(), { lr: 0.02 }), extras);
const { losses } = await fit(run.model, {
  ...optionsOf(run, extras),
  epochs: 8,
  resume: true,
  callbacks: [
    checkpoints(process.argv[2]!, { every: 2 }),
    earlyStopping({ monitor: "loss", restoreBest: false }),
    { onStepEnd: ({ step }) => new Promise((resolve) => process.stdout.write(`${step}\n`, resolve)) },
  ],
});
const all = [...(await words(run)), ...losses.map(String)].join();
console.log(createHash("sha256").update(all).digest("hex"));
