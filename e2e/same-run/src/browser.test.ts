/** One training run has the same bits in a page. */
import { join } from "node:path";
import { executablePath, launchBrowser, openPage, serveProgram } from "@opt/testkit/browser";
import { expect, it } from "vitest";
import { expectSame, models, optionsOf } from "./testing";

const reason = executablePath === undefined ? " (skipped: no Chromium is installed)" : "";

it.skipIf(executablePath === undefined)(`in Chromium on WebAssembly${reason}`, async () => {
  const server = await serveProgram(join(import.meta.dirname, "page.ts"), { isolated: true });
  const browser = await launchBrowser({ webgpu: false });
  try {
    const page = await openPage(browser);
    await page.goto(server.url);
    await page.waitForFunction(() => "sameRun" in globalThis);
    expect(await page.evaluate(() => globalThis.sameRun.portable)).toBe(true);
    for (const model of models) {
      const options = { ...optionsOf(model), compiled: true };
      await expectSame(options, () => page.evaluate((given) => globalThis.sameRun.trainedLedger(given), options));
    }
  } finally {
    await browser.close();
    server.close();
  }
});
