// Fine-tuning in real Chromium: the files that the page gives are, but for last digits, those that Node makes of the same base, text and seed.
import "@opt/kernels-wasm";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkpointBlob, loadCheckpoint } from "@opt/checkpoint";
import { Generator, init, type Tensor } from "@opt/core";
import "@opt/testkit";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { Gpt } from "@opt-e2e/tiny-gpt";
import type { Browser, Page } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encode } from "./src/base";
import { FineTuning, loadGpt2 } from "./src/fine-tuning";
import { toGpt2 } from "./src/gpt2-names";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;
const TEXT = "the quick brown fox jumps over the lazy dog; ".repeat(20);
const HEADS = 2;
const STEPS = 8;

/** Engines differ in the last digits of exp and tanh. */
async function expectSame(theirs: Readonly<Record<string, Tensor>>, ours: Readonly<Record<string, Tensor>>) {
  expect(Object.keys(theirs).sort()).toEqual(Object.keys(ours).sort());
  for (const [name, tensor] of Object.entries(ours)) {
    expect(await theirs[name]!.data(), name).toAgreeWith(await tensor.data(), { absolute: 1e-5, relative: 1e-3 });
  }
}

describe.skipIf(reason !== undefined)(
  `fine-tuning in a page${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "opt-fine-tune-"));
    let server: ViteDevServer;
    let browser: Browser;
    let page: Page;

    beforeAll(async () => {
      server = await createServer({
        root: import.meta.dirname,
        configFile: false,
        cacheDir: join(folder, "vite"),
        logLevel: "error",
        resolve: { conditions: ["@opt/source", "module", "browser", "development|production"] },
        server: { port: 0 },
      });
      await server.listen();
      browser = await launchBrowser({ webgpu: false });
      page = await openPage(browser);
      page.on("pageerror", (error) => console.error(error));
      await page.goto(server.resolvedUrls!.local[0]!);
    });
    afterAll(async () => {
      await browser?.close();
      await server?.close();
      rmSync(folder, { recursive: true });
    });

    async function downloaded(id: string) {
      const downloading = page.waitForEvent("download");
      await page.click(`#${id}`);
      return loadCheckpoint(await (await downloading).path());
    }

    it("gives Node's adapter and Node's merged model", { timeout: 120_000 }, async () => {
      const device = await init("wasm");
      const sizes = { tokens: 128, width: 16, length: 12, blocks: 2, heads: HEADS, gpt2: true };
      const model = new Gpt({ ...sizes, device, generator: new Generator(5) });
      const base = await checkpointBlob({ step: 0, tensors: toGpt2(model.stateDict()) });
      writeFileSync(join(folder, "model.safetensors"), new Uint8Array(await base.arrayBuffer()));

      await page.setInputFiles("#base", join(folder, "model.safetensors"));
      await page.fill("#heads", String(HEADS));
      await page.fill("#text", TEXT);
      await page.fill("#steps", String(STEPS));
      await page.click("#start");
      await page.waitForFunction(() => document.querySelector("output")!.value !== "", undefined, { timeout: 100_000 });
      expect(await page.textContent("#report")).toMatch(/^wasm: loss on unseen text \d/);

      const here = new FineTuning(loadGpt2((await loadCheckpoint(base)).tensors, HEADS, device), {
        tokens: encode(TEXT),
      });
      await here.train(STEPS);
      const adapter = await loadCheckpoint(await checkpointBlob(here.adapter()));
      await expectSame((await downloaded("adapter")).tensors, adapter.tensors);
      await expectSame((await downloaded("merged")).tensors, here.merge());
    });

    it("says what is wrong with a file", async () => {
      writeFileSync(join(folder, "none.safetensors"), "none");
      await page.setInputFiles("#base", join(folder, "none.safetensors"));
      await page.click("#start");
      await page.waitForFunction(() => document.querySelector("output")!.value !== "");
      expect(await page.textContent("#report")).toMatch(/^\[.*\] /);
    });
  },
);
