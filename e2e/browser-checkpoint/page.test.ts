// A run that is saved, left and resumed in real Chromium: through the browser's own files and through a downloaded file.
import { join } from "node:path";
import { loadCheckpoint } from "@opt/checkpoint";
import { executablePath, launchBrowser, PATIENCE, type ServedProgram, serveProgram } from "@opt/testkit/browser";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Actions } from "./page";
import { Training } from "./training";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;

describe.skipIf(reason !== undefined)(`checkpoints${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: ServedProgram;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    server = await serveProgram(join(import.meta.dirname, "page.ts"));
    browser = await launchBrowser({ webgpu: false });
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });
  // Files of a page's own last as long as its context.
  beforeEach(async () => {
    context = await browser.newContext();
    context.setDefaultTimeout(PATIENCE);
  });
  afterEach(() => context.close());

  async function open(): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => console.error(error));
    await page.goto(server.url);
    await page.waitForFunction(() => "actions" in globalThis);
    return page;
  }

  const act = <K extends keyof Actions>(page: Page, name: K, ...args: Parameters<Actions[K]>) =>
    page.evaluate(
      ([action, given]) =>
        (globalThis as never as { actions: Record<string, (...all: never[]) => unknown> }).actions[action]!(
          ...(given as never[]),
        ),
      [name, args] as const,
    ) as Promise<Awaited<ReturnType<Actions[K]>>>;

  const bitsAfter = (steps: number) => {
    const training = new Training(1);
    training.train(steps);
    return training.bits;
  };

  it("goes on bit for bit from the page's own files, in another life of the page", async () => {
    const page = await open();
    expect(await act(page, "train", 4)).toBe(bitsAfter(4));
    expect(await act(page, "save")).toEqual([]);
    await act(page, "train", 3);
    await act(page, "save");
    await act(page, "train", 3);
    await act(page, "save");
    await page.close();
    const again = await open();
    expect(await act(again, "steps")).toEqual([7, 10]);
    expect(await act(again, "verify")).toBe(true);
    expect(await act(again, "resume")).toBe(bitsAfter(10));
    expect(await act(again, "train", 5)).toBe(bitsAfter(15));
    expect(await act(again, "names", "runs/page")).toEqual(["step-00000007", "step-00000010"]);
  });

  it("goes on bit for bit from a downloaded file, which Node reads too", async () => {
    const page = await open();
    await act(page, "train", 6);
    const downloading = page.waitForEvent("download");
    await act(page, "download");
    const file = await (await downloading).path();
    const here = new Training(3);
    here.resume(await loadCheckpoint(file));
    expect(here.bits).toBe(bitsAfter(6));
    const again = await open();
    await again.setInputFiles("#file", file);
    expect(await act(again, "resumeFromFile")).toBe(bitsAfter(6));
    expect(await act(again, "train", 6)).toBe(bitsAfter(12));
  });

  it("a page that is closed while it saves leaves the step before, and the next save goes on", async () => {
    const page = await open();
    await act(page, "train", 2);
    await act(page, "save");
    for (const [step, wait] of [
      [50, 0],
      [51, 40],
      [52, 120],
    ] as const) {
      const dying = await open();
      await act(dying, "begin", step);
      await dying.waitForTimeout(wait);
      await dying.close();
      for (const whole of await act(page, "steps")) expect(await act(page, "verify", whole)).toBe(true);
      expect(await act(page, "resume", 2)).toBe(bitsAfter(2));
    }
    await act(page, "train", 2);
    await act(page, "save");
    expect(await act(page, "resume", 4)).toBe(bitsAfter(4));
  });

  it("of several saves of one step one wins; what can only be read is not written to", async () => {
    const page = await open();
    expect(await act(page, "race", 9)).toEqual(["DUPLICATE", "DUPLICATE", "saved"]);
    expect(await act(page, "verify")).toBe(true);
    expect(await act(page, "rejected", 1)).toBe("IO");
  });
});
