import { AdamW } from "@opt/adam-amsgrad";
import { checkpoints } from "../src/callbacks/checkpoints";
import { fit } from "../src/fit";
import { expose } from "../src/worker/expose";
import { begin, optionsOf } from "./runs";

expose(async ({ report, signal }, { epochs, folder }: { epochs: number; folder?: string }) => {
  const run = begin("mlp", (model) => new AdamW(model.namedParameters(), { lr: 0.02 }), {});
  const saving = folder === undefined ? [] : [checkpoints(folder, { every: 10 })];
  const options = { ...optionsOf(run, {}), epochs, callbacks: [...saving, report()], signal };
  const { losses } = await fit(run.model, { ...options, resume: saving.length > 0 });
  return { weights: run.model.stateDict(), steps: losses.length };
});
