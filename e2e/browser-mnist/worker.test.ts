// MNIST trained in a worker of real Chromium: a worker that dies loses nothing.
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import type { Browser, Page } from "playwright-core";
import type { ViteDevServer } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve } from "./server";
import type { Seen } from "./worker-page";
import type { Settings } from "./worker-training";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;

describe.skipIf(reason !== undefined)(`a worker${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: ViteDevServer;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    server = await serve();
    browser = await launchBrowser();
    page = await openPage(browser);
    await page.goto(`${server.resolvedUrls!.local[0]}worker.html`);
    await page.waitForFunction(() => "trainInWorker" in globalThis);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const train = (settings: Settings, killAfter?: number): Promise<Seen> =>
    page.evaluate(([given, saves]) => globalThis.trainInWorker(given, saves), [settings, killAfter] as const);

  it("that is killed is reported; another one goes on from the checkpoint to the same words", async () => {
    const settings = { images: 1600, epochs: 2 };
    const whole = await train(settings);
    const folder = "runs/killed";
    const killed = await train({ ...settings, folder }, 2);
    expect([killed.error, killed.losses]).toEqual(["DEVICE_LOST", []]);
    const again = await train({ ...settings, folder });
    expect([again.digest, again.losses, again.error]).toEqual([whole.digest, whole.losses, ""]);
    expect(whole.losses).toHaveLength(50);
    expect(whole.accuracy).toBeGreaterThan(0.7);
  });
});
