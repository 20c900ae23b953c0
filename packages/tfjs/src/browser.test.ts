// TF.js in real Chromium, on its backends there, stepped on our wasm device.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { executablePath, launchBrowser, openPage, type ServedProgram, serveProgram } from "@opt/testkit/browser";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Seen } from "../testing/page";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;
const wasm = join(dirname(createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm")));

describe.skipIf(reason !== undefined)(`in Chromium${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: ServedProgram;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const entry = join(import.meta.dirname, "../testing/page.ts");
    server = await serveProgram(entry, { isolated: true, folders: { wasm } });
    browser = await launchBrowser();
    page = await openPage(browser);
    page.on("pageerror", (error) => console.error(error));
    await page.goto(server.url);
    await page.waitForFunction(() => "train" in globalThis);
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  const train = (name: string) =>
    page.evaluate(
      (backend) => (globalThis as never as { train(name: string): Promise<Seen | string> }).train(backend),
      name,
    );

  const expectTrained = (seen: Seen | string, backend: string) => {
    expect(seen).toMatchObject({ backend, equal: true, cloneKept: true, leaked: 0, resumed: true });
    const { losses } = seen as Seen;
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
  };

  it.each(["cpu", "wasm", "webgl"])("on %s", async (name) => expectTrained(await train(name), name));

  // In software, canvases give zeros to TF.js' synchronous reads.
  it("on webgpu, or is rejected where that cannot be read at once", async () => {
    const seen = await train("webgpu");
    if (seen !== "NOT_SYNC") expectTrained(seen, "webgpu");
  });
});
