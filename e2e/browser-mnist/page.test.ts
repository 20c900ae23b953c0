// The page as its reader uses it, in real Chromium.
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { accessibilityOf, executablePath, launchBrowser } from "@opt/testkit/browser";
import type { Browser, Page } from "playwright-core";
import type { ViteDevServer } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve } from "./server";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;
const screenshots = fileURLToPath(new URL("../../runs/browser-mnist/", import.meta.url));

describe.skipIf(reason !== undefined)(`the page${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: ViteDevServer;
  let browser: Browser;
  let address: string;
  const problems: string[] = [];

  beforeAll(async () => {
    server = await serve();
    address = server.resolvedUrls!.local[0]!;
    browser = await launchBrowser();
    mkdirSync(screenshots, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  async function open(query = ""): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 780, height: 860 } });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" || message.text().includes("WebGPU")) problems.push(message.text());
    });
    await page.goto(`${address}${query}`);
    await page.locator("#train:enabled").waitFor({ timeout: 100_000 });
    return page;
  }

  const text = (page: Page, id: string) => page.locator(`#${id}`).textContent();
  const stepsReach = (page: Page, steps: number) =>
    page.waitForFunction((least) => Number(document.getElementById("step")?.textContent) >= least, steps, {
      timeout: 100_000,
    });
  const says = (page: Page, words: string) => page.getByText(words).waitFor({ timeout: 60_000 });

  it.each(["light", "dark"] as const)("is accessible, %s", async (colorScheme) => {
    const page = await open();
    await page.emulateMedia({ colorScheme });
    const { score, violations } = await accessibilityOf(page);
    expect(violations).toEqual([]);
    expect(score).toBeGreaterThanOrEqual(95);
  });

  it("trains on WebGPU, saves and loads", async () => {
    const page = await open();
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    expect(await text(page, "device")).toMatch(/Trains on WebGPU: .*swiftshader/i);
    await page.click("#train");
    await stepsReach(page, 30);
    await page.click("#keep");
    await says(page, "Kept");
    await page.screenshot({ path: `${screenshots}webgpu.png` });
    const kept = await text(page, "step");
    expect(Number(await text(page, "loss"))).toBeLessThan(1.2);
    expect(await page.locator("#digits figcaption.right").count()).toBeGreaterThanOrEqual(10);
    const names = await text(page, "digits");

    const downloading = page.waitForEvent("download");
    await page.click("#download");
    const file = await (await downloading).path();
    const bytes = await readFile(file);
    const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE())).toString());
    expect(header["0.weight"].shape).toEqual([128, 784]);
    expect(header["0.weight.exp_avg"].shape).toEqual([128, 784]);

    await page.reload();
    await page.locator("#train:enabled").waitFor();
    expect(await text(page, "step")).toBe("0");
    await page.click("#restore");
    await says(page, `Loaded: NAdam after ${kept} steps.`);
    expect(await text(page, "digits")).toBe(names);
    await page.setInputFiles("#file", { name: "digits.safetensors", mimeType: "", buffer: bytes });
    await says(page, `Loaded: NAdam after ${kept} steps.`);
    await page.click("#train");
    await stepsReach(page, Number(kept) + 10);
    await page.setInputFiles("#file", { name: "x.safetensors", mimeType: "", buffer: Buffer.from("not a checkpoint") });
    await says(page, "no safetensors file");
    expect(problems).toEqual([]);
    await page.close();
  });

  it("falls back to WebAssembly with a sentence saying why", async () => {
    const page = await browser.newPage();
    await page.addInitScript(() => Object.defineProperty(navigator, "gpu", { value: undefined }));
    await page.goto(address);
    await page.locator("#train:enabled").waitFor({ timeout: 100_000 });
    expect(await text(page, "device")).toMatch(/WebAssembly, because WebGPU does not open here:.*navigator\.gpu/);
    await page.click("#train");
    await stepsReach(page, 10);
    await page.close();
  });
});
