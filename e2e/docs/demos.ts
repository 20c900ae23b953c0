/** The demos of the gallery, and what a reader does in each. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadCheckpoint, memoryFileSystem } from "@opt/checkpoint";
import { init, type Tensor } from "@opt/core";
import { PATIENCE } from "@opt/testkit/browser";
import { FineTuning } from "@opt-e2e/fine-tune";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

interface Demo {
  readonly path: string;
  /** What the page says when it has come far enough. */
  readonly reached: RegExp;
  /** The button that ends it, where it goes on. */
  readonly stop?: RegExp;
  /** After the start, with the keyboard. */
  readonly meanwhile?: (page: Page) => Promise<void>;
  readonly after?: (page: Page) => Promise<void>;
}

export const START = /^(Start|Train|Run|Repeat|Take the sample)$/;

export const DEMOS: readonly Demo[] = [
  { path: "demos/optimizer-race", reached: /^Step [1-9]\d* of \d+\. Lowest: \w/, stop: /^Stop$/ },
  { path: "demos/same-run", reached: /^20 steps on wasm, all equal to Node's$/ },
  { path: "leaderboard", reached: /^On wasm: equal to the stored checksum$/ },
  { path: "demos/gpt", reached: /^After [1-9]\d* steps?$/, stop: /^Stop$/, after: writeLongWord },
  {
    ...{ path: "demos/digits/", reached: /^It reads a \d \([\d.]+\u00a0%\)\.$/, stop: /^Pause$/ },
    meanwhile: drawOne,
  },
  {
    ...{ path: "demos/fine-tune", reached: /Loss on unseen text: [\d.]+ before/ },
    ...{ meanwhile: pauseAndGoOn, after: killAndGoOn },
  },
  {
    ...{ path: "demos/checkpoint", reached: /16:32/ },
    ...{ meanwhile: lookAndSlice, after: expectSameTensors },
  },
];

export async function tabTo(page: Page, place: Locator): Promise<void> {
  for (let i = 0; i < 40 && !(await place.evaluate((each) => each === document.activeElement)); i++)
    await page.keyboard.press("Tab");
}

/** A digit one. */
async function drawOne(page: Page): Promise<void> {
  await page.getByText(/^Training on/).waitFor();
  await tabTo(page, page.getByLabel("Drawing pad"));
  await page.keyboard.press("Space");
  for (let i = 0; i < 9; i++) await page.keyboard.press("ArrowDown");
}

/** A model that has learned little may write one: the page must still fit a phone. */
async function writeLongWord(page: Page): Promise<void> {
  await page
    .locator(".gpt pre")
    .first()
    .evaluate((pre) => {
      pre.textContent = "w".repeat(200);
    });
}

/** The button that has the focus does both. */
async function pauseAndGoOn(page: Page): Promise<void> {
  await page.getByText(/^Step [1-9]/).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText(/^Paused after/).waitFor();
  await page.keyboard.press("Enter");
}

const base = fileURLToPath(import.meta.resolve("@opt-e2e/fine-tune/base.safetensors"));

async function downloaded(page: Page, link: Locator) {
  const downloading = page.waitForEvent("download");
  await link.press("Enter");
  return loadCheckpoint(await (await downloading).path());
}

async function numbersOf(
  tensors: Readonly<Record<string, Tensor>>,
): Promise<Readonly<Record<string, readonly number[]>>> {
  const read = async ([name, tensor]: [string, Tensor]) => [name, [...(await tensor.data())]] as const;
  return Object.fromEntries(await Promise.all(Object.entries(tensors).map(read)));
}

/** Ends the process of a tab at once, as a system without memory does: no handler runs, and no file is closed. */
async function kill(tab: Page): Promise<void> {
  const [devtools, crashed] = [await tab.context().newCDPSession(tab), tab.waitForEvent("crash")];
  devtools.send("Page.crash").catch(() => {}); // nobody is left to answer
  await crashed;
  await tab.close();
}

/** A tab that is killed within an epoch goes on when it is opened again, and its adapter has the words of a run in Node that nobody stopped. */
async function killAndGoOn(page: Page): Promise<void> {
  const text = readFileSync(new URL("../../LICENSE", import.meta.url), "utf8").slice(0, 3000);
  const context = await page.context().browser()!.newContext(); // of its own: all of its tabs may go
  context.setDefaultTimeout(PATIENCE);
  const killed = await context.newPage();
  await killed.goto(page.url());
  await killed.getByLabel("Text to learn").fill(text);
  await killed.getByRole("button", { name: "Start" }).press("Enter");
  await killed.getByText(/^Step (1[1-9]|[2-9]\d)/).waitFor();
  await kill(killed);
  const tab = await context.newPage();
  await tab.goto(page.url());
  await tab.getByText(/Loss on unseen text: [\d.]+ before/).waitFor();
  await init("cpu");
  const folder = fileURLToPath(new URL(".", import.meta.resolve("@opt-e2e/fine-tune/base.json")));
  const run = await FineTuning.open({ base: folder, text, folder: "run", files: memoryFileSystem() });
  await run.train();
  for (const [name, blob] of Object.entries(await run.adapter())) {
    const downloading = tab.waitForEvent("download");
    await tab.getByRole("link", { name: `Download ${name}` }).press("Enter");
    const bytes = readFileSync(await (await downloading).path());
    expect(bytes.equals(Buffer.from(await blob.arrayBuffer())), name).toBe(true);
  }
  await context.close();
}

/** Another number of ranks. */
async function lookAndSlice(page: Page): Promise<void> {
  await page.getByText("22:43").waitFor();
  await tabTo(page, page.getByRole("slider"));
  await page.keyboard.press("ArrowRight");
}

/** What the page writes is what it has read. */
async function expectSameTensors(page: Page): Promise<void> {
  const { tensors } = await loadCheckpoint(base);
  const whole = await numbersOf(tensors);
  for (const name of ["Download as .pt", "Download as safetensors"]) {
    const again = await downloaded(page, page.getByRole("button", { name }));
    const named = Object.entries(again.tensors).map(([key, tensor]) => [key.replace(/^model\./, ""), tensor]);
    expect(await numbersOf(Object.fromEntries(named)), name).toEqual(whole);
  }
  const slices = await downloaded(page, page.getByRole("button", { name: "Download rank 1" }));
  const expected = await loadCheckpoint(base, { rank: 1, world: 4 });
  expect(await numbersOf(slices.tensors)).toEqual(await numbersOf(expected.tensors));
}
