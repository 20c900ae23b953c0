/** Trains the shipped base on Shakespeare's sonnets, and writes it as transformers does. */
import "@opt/kernels-cpu";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, init } from "@opt/core";
import { DataLoader } from "@opt/data";
import { causalLoss, languageModel, savePretrained, textDataset } from "@opt/models";
import { fit } from "@opt/train";
import { sonnets } from "@opt-e2e/tiny-gpt/text";
import config from "../base/config.json" with { type: "json" };
import { characters } from "./characters";

await init("cpu");
const generator = new Generator(1);
const model = languageModel(config, { generator });
const samples = textDataset(characters, [sonnets()], { length: config.n_positions });
const data = new DataLoader(samples, { batchSize: 16, shuffle: true, dropLast: true, generator });
const optimizer = new AdamW(model.namedParameters(), { lr: 3e-3, weightDecay: 0.1, clip: { norm: 1 } });
await fit(model, { data, loss: causalLoss, optimizer, epochs: 24 });
await savePretrained(model, fileURLToPath(new URL("../../../runs/fine-tune/base", import.meta.url)), {
  overwrite: true,
});
