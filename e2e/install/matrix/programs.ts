/** One small training, in the forms that runtimes and bundlers ask for. Each ends in the same line: a device and four numbers. */

const NAMES = {
  "@opt/core": "{ init, listDevices, manualSeed, tensor, tidy }",
  "@opt/data": "{ DataLoader, TensorDataset }",
  "@opt/nn": "{ Linear, mseLoss, ReLU, Sequential }",
  "@opt/nadam": "{ NAdam }",
};
const imports = Object.entries(NAMES).map(([name, names]) => `import ${names} from "${name}";\n`);
const requires = Object.entries(NAMES).map(([name, names]) => `const ${names} = require("${name}");\n`);

const PARTS = `
const inputs = { data: Float32Array.of(0, 0, 0, 1, 1, 0, 1, 1), shape: [4, 2] };
const labels = { data: Float32Array.of(0, 1, 1, 0), shape: [4, 1] };
const network = () => new Sequential(new Linear(2, 16), new ReLU(), new Linear(16, 1));
async function lineOf(device, model) {
  const values = await model.forward(tensor(inputs.data, { shape: inputs.shape })).data();
  return device.name + " " + Array.from(values, (value) => value.toFixed(5)).join(" ");
}
`;

const TRAINING = `${PARTS}
async function train(name) {
  const device = await init(name);
  manualSeed(7);
  const model = network();
  const optimizer = new NAdam(model.namedParameters(), { lr: 0.02 });
  const loader = new DataLoader(new TensorDataset(inputs, labels), { batchSize: 4 });
  for (let epoch = 0; epoch < 300; epoch++) {
    for (const [x, y] of loader) {
      tidy(() => mseLoss(model.forward(x), y).backward());
      optimizer.step();
      optimizer.zeroGrad();
    }
  }
  const devices = await listDevices();
  if (!devices.some(({ available }) => available)) throw new Error("no device");
  return lineOf(device, model);
}
`;

/** The same training by `fit`, in a worker: the page gets the weights. */
const IN_WORKER = `${imports.join("")}${PARTS}
import "@opt/kernels-wasm";
import { fit } from "@opt/train";
import { expose } from "@opt/train/worker";

expose(async (run, { epochs }) => {
  await init("wasm");
  manualSeed(7);
  const model = network();
  const optimizer = new NAdam(model.namedParameters(), { lr: 0.02 });
  const data = new DataLoader(new TensorDataset(inputs, labels), { batchSize: 4 });
  await fit(model, { data, loss: mseLoss, optimizer, epochs, callbacks: [run.report()], signal: run.signal });
  return model.stateDict();
});
`;

const SHOW =
  "train().then((line) => { globalThis.line = line; }, (error) => { globalThis.line = String(error.stack); });\n";

const STARTS_WORKER = `${imports.join("")}${PARTS}
import "@opt/kernels-wasm";
import { start } from "@opt/train/worker";

async function train() {
  const device = await init("wasm");
  const worker = new Worker(new URL("./fit-worker.mjs", import.meta.url), { type: "module" });
  const run = start(worker, { epochs: 300 });
  let losses = 0;
  for await (const event of run) losses += event.losses.length;
  const model = network();
  model.loadStateDict(await run.result);
  if (losses !== 300) throw new Error(losses + " losses of 300 steps arrived");
  return lineOf(device, model);
}
${SHOW}`;

/** The training with every device of a kind: those that are not here must not stand in the way. */
const moduleWith = (...kernels: string[]) =>
  ["kernels-wasm", ...kernels].map((name) => `import "@opt/${name}";\n`).join("") + imports.join("") + TRAINING;

export const files: Readonly<Record<string, string>> = {
  "train.mjs": `${moduleWith("kernels-webgpu")}\nexport { train };\n`,
  "node.mjs": `${moduleWith("kernels-cpu", "kernels-cuda", "kernels-webgpu")}\nconsole.log(await train());\n`,
  "wasm.mjs": 'import { train } from "./train.mjs";\nconsole.log(await train("wasm"));\n',
  "node.cjs": `require("@opt/kernels-cpu");
require("@opt/kernels-wasm");
${requires.join("")}${TRAINING}
train().then(console.log);
`,
  "worker.mjs": `import { Worker, isMainThread, parentPort } from "node:worker_threads";
import { train } from "./train.mjs";
if (isMainThread) new Worker(new URL(import.meta.url)).on("message", console.log);
else parentPort.postMessage(await train("wasm"));
`,
  "page.mjs": `import { train } from "./train.mjs";\n${SHOW}`,
  "fit-worker.mjs": IN_WORKER,
  "fit-page.mjs": STARTS_WORKER,
  "page-worker.mjs": `import { train } from "./train.mjs";
train().then((line) => postMessage(line), (error) => postMessage(String(error.stack)));
`,
  "workerd.mjs": `import { train } from "./train.mjs";
export default { async test() { console.log(await train()); } };
`,
};
