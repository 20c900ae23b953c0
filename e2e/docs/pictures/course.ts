/** Takes the pictures of the course: what `plot` draws for a few lines in the playground. */
import { join } from "node:path";
import { openPage } from "@opt/testkit/browser";
import type { Browser } from "playwright-core";
import { addressOf } from "../../../docs/.vitepress/theme/address";

const WEBGPU_STEPS = 40;
const SIZE = { width: 520, height: 900 };

const TENSOR = `
import { arange, init } from "@opt/core";
await init("js");
const x = arange(64).div(8).reshape([1, 64]);
const y = arange(36).div(8).reshape([36, 1]);
const hill = x.sub(4).square().add(y.sub(2).square()).div(-4).exp(); // [36, 64]
const numbers = hill.dataSync();
plot(Array.from({ length: 36 }, (_, i) => numbers.slice(64 * i, 64 * i + 64)));`;

const GRADIENT = `
import { init, parameter } from "@opt/core";
await init("js");
const w = parameter(Array.from({ length: 81 }, (_, i) => i / 20 - 2));
const loss = w.pow(2);
loss.sum().backward();
plot({ "loss": loss.dataSync(), "gradient": w.grad.dataSync() }, { x: w.dataSync(), xLabel: "w" });`;

const LINE = `
import { init, parameter, tensor } from "@opt/core";
import { SGD } from "@opt/sgd";
await init("js");
const [x, y] = [tensor([0, 1, 2, 3]), tensor([1, 3, 5, 7])];
const [slope, offset] = [parameter(0), parameter(0)];
const optimizer = new SGD([slope, offset], { lr: 0.1 });
const line = () => x.mul(slope).add(offset);
const lines = { "to fit": y.dataSync(), "at first": line().dataSync() };
for (let step = 1; step <= 60; step++) {
  line().sub(y).pow(2).mean().backward();
  optimizer.step();
  optimizer.zeroGrad();
  if (step === 1 || step === 60) lines["after " + step] = line().dataSync();
}
plot(lines, { x: x.dataSync(), xLabel: "x", yLabel: "y" });`;

const network = (body: string) => `
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { checkpointBlob, loadCheckpoint, optimizerContents, optimizerState } from "@opt/checkpoint";
import { Generator, init, tensor } from "@opt/core";
import { Linear, mseLoss, Sequential, Tanh } from "@opt/nn";
await init();
const [x, y] = [tensor([[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]]), tensor([[0], [1], [1], [0]])];
function begin(seed) {
  const generator = new Generator(seed);
  const model = new Sequential(new Linear(2, 16, { generator }), new Tanh(), new Linear(16, 1, { generator }));
  return { model, optimizer: new AdamW(model.namedParameters(), { lr: 0.01 }) };
}
async function train({ model, optimizer }, steps) {
  const losses = [];
  for (let i = 0; i < steps; i++) {
    const loss = mseLoss(model.forward(x), y);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    losses.push(await loss.item());
  }
  return losses;
}
${body}`;

const XOR = network(`
const run = begin(1);
await train(run, 300);
const SIZE = 36, grid = [];
for (let i = 0; i < SIZE; i++) for (let j = 0; j < SIZE; j++) grid.push([(2 * j) / SIZE - 1, 1 - (2 * i) / SIZE]);
const scores = run.model.forward(tensor(grid)).dataSync().map((score) => Math.min(1, Math.max(0, score)));
const rows = Array.from({ length: SIZE }, (_, i) => scores.slice(i * SIZE, (i + 1) * SIZE));
plot(rows, { points: [[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]], classes: [0, 1, 1, 0] });`);

const SAVED = network(`
const first = begin(1);
const before = await train(first, 60);
const { tensors, values } = optimizerContents(first.optimizer.stateDict());
const file = await checkpointBlob({ step: 60, tensors: { ...first.model.stateDict(), ...tensors }, values });
const second = begin(2);
const loaded = await loadCheckpoint(file);
second.model.loadStateDict(Object.fromEntries(Object.keys(second.model.stateDict()).map((name) => [name, loaded.tensors[name]])));
second.optimizer.loadStateDict(optimizerState(loaded));
const after = await train(second, 60);
const nothing = (count) => new Array(count).fill(NaN);
plot({ "saved here": [...before, ...nothing(60)], "loaded": [...nothing(60), ...after] });`);

const STEPS = { tensors: TENSOR, gradients: GRADIENT, line: LINE, xor: XOR, save: SAVED };

export async function photographCourse(browser: Browser, address: string, folder: string): Promise<void> {
  await photographWebGpu(browser, address, folder);
  for (const [name, code] of Object.entries(STEPS)) {
    const page = await openPage(browser, { viewport: SIZE });
    await page.goto(address + addressOf(code.trim()).slice(1));
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator('[data-status="done"], [data-status="failed"]').waitFor();
    if ((await page.locator('[data-status="failed"]').count()) > 0)
      throw new Error(`[pictures] ${name}: ${await page.locator(".output pre").textContent()}`);
    await page.locator(".picture").screenshot({ path: join(folder, `learn-${name}.png`) });
    await page.close();
  }
}

/** The digits page where it trains on WebGPU. */
async function photographWebGpu(browser: Browser, address: string, folder: string): Promise<void> {
  const page = await openPage(browser, { viewport: { width: 820, height: 512 } });
  await page.goto(`${address}demos/digits/`);
  await page.locator("#train:enabled").waitFor();
  await page.selectOption("#device", "webgpu");
  await page.getByText(/^Run 1 is ready: .* on WebGPU/).waitFor();
  await page.click("#train");
  await page.waitForFunction((least) => Number(document.getElementById("step")?.textContent) >= least, WEBGPU_STEPS);
  await page.screenshot({ path: join(folder, "learn-webgpu.png") });
  await page.close();
}
