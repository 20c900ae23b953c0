// jax-js in real Chromium: steps on its WebGPU and WASM devices have the numbers of the class.
import { join } from "node:path";
import { executablePath, launchBrowser, openPage, type ServedProgram, serveProgram } from "@opt/testkit/browser";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Seen } from "../testing/page";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;

describe.skipIf(reason !== undefined)(`in Chromium${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: ServedProgram;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    server = await serveProgram(join(import.meta.dirname, "../testing/page.ts"), { isolated: true });
    browser = await launchBrowser();
    page = await openPage(browser);
    await page.goto(server.url);
    await page.waitForFunction(() => "train" in globalThis);
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  const train = (device: string, name: string) =>
    page.evaluate(
      ([on, optimizer]) => (globalThis as never as { train(...args: unknown[]): Promise<Seen> }).train(on, optimizer),
      [device, name] as const,
    );

  describe.each(["webgpu", "wasm"])("%s", (device) => {
    it.each(["NAdam", "AdamW", "AMSGrad"])(
      "%s",
      async (name) => {
        const seen = await train(device, name);
        expect(seen.device).toBe(device);
        expect(seen.difference).toBeLessThan(2e-6);
      },
      60_000,
    );
  });
});
