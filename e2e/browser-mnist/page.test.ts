// The page as its reader uses it, in real Chromium.
import { readFile } from "node:fs/promises";
import { executablePath, launchBrowser, openPage, violationsOf } from "@opt/testkit/browser";
import { triesAll } from "@opt/testkit/sample";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { PreviewServer } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve } from "./server";
import type { Seen } from "./worker-page";
import type { Settings } from "./worker-training";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;
/** A phone, a tablet and a desktop. The site's test looks at a light phone and a dark desktop. */
const LOOKS = [
  ["dark", 390, 844],
  ["light", 820, 1180],
  ["light", 1440, 900],
] as const;

/** Of what takes long. */
const later = triesAll ? "" : " (skipped: npm run test:full tries it)";

describe.skipIf(reason !== undefined)(`the page${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: PreviewServer;
  let browser: Browser;
  let address: string;
  const problems: string[] = [];

  beforeAll(async () => {
    server = await serve();
    address = server.resolvedUrls!.local[0]!;
    browser = await launchBrowser({ webgpu: false });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    expect(problems).toEqual([]);
  });

  async function open(query = "?device=wasm", options: BrowserContextOptions = {}, inside = browser): Promise<Page> {
    const page = await openPage(inside, { viewport: { width: 1440, height: 900 }, ...options });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" || message.text().includes("WebGPU")) problems.push(message.text());
    });
    await page.goto(`${address}${query}`);
    await page.locator("#train:enabled").waitFor();
    return page;
  }

  const text = (page: Page, id: string) => page.locator(`#${id}`).textContent();
  const says = (page: Page, words: string | RegExp) => page.locator("#message").getByText(words).waitFor();
  const stepsOf = async (page: Page) => Number((await text(page, "step"))?.replace(/\D/g, ""));

  /** Trains for at least so many steps, and waits until they are measured. */
  async function train(page: Page, steps: number): Promise<void> {
    const goal = (await stepsOf(page)) + steps;
    await page.click("#train");
    await page.waitForFunction(
      (least) => Number(document.getElementById("step")?.textContent?.replace(/\D/g, "")) >= least,
      goal,
    );
    await says(page, /^Training on/);
    await page.click("#train");
    await says(page, /^Paused after .* of the test digits\.$/);
  }

  /** A seven, by the mouse. */
  async function drawSeven(page: Page): Promise<void> {
    const { x, y, width, height } = (await page.locator("#pad").boundingBox())!;
    const move = (right: number, down: number, steps = 8) =>
      page.mouse.move(x + right * width, y + down * height, { steps });
    await move(0.25, 0.2, 1);
    await page.mouse.down();
    await move(0.75, 0.2);
    await move(0.45, 0.85);
    await page.mouse.up();
  }

  const percentages = (page: Page) =>
    page
      .locator("#probabilities .value")
      .evaluateAll((values) => values.map((value) => Number.parseInt(value.textContent!, 10)));
  const hasInk = (page: Page) =>
    page.evaluate(() => {
      const pad = document.getElementById("pad") as HTMLCanvasElement;
      return pad
        .getContext("2d")!
        .getImageData(0, 0, pad.width, pad.height)
        .data.filter((byte) => byte > 0).length;
    });

  it("waits with filled fields, has labelled linear axes, and marks nothing wrong before it has learned", async () => {
    const page = await openPage(browser, { viewport: { width: 1440, height: 900 } });
    let open = () => {};
    await page.route("**/t10k-images*", async (route) => {
      await new Promise<void>((resolve) => {
        open = resolve;
      });
      await route.continue();
    });
    await page.goto(`${address}?device=wasm`);
    await says(page, "Loading the digits …");
    for (const id of ["optimizer", "device"])
      expect(await page.locator(`#${id}:disabled option`).allTextContents()).toHaveLength(1);
    open();
    await page.locator("#train:enabled").waitFor();
    expect(await page.locator("#digits .wrong").count()).toBe(0);
    const words = (id: string, kind: string) => page.locator(`#${id} .${kind}`).allTextContents();
    expect(await words("loss-chart", "axis")).toEqual(["step", "loss (log scale)"]);
    expect(await words("accuracy-chart", "axis")).toEqual(["step", "read right"]);
    expect(await words("accuracy-chart", "tick")).toEqual(expect.arrayContaining(["0 %", "20 %", "80 %", "100 %"]));
    await page.close();
  });

  it("draws and reads: mouse, touch, pen, keys", async () => {
    const page = await open("?device=wasm", { hasTouch: true });
    expect(await text(page, "answer")).toBe("Nothing drawn yet.");
    await page.click("#sample");
    await page.getByText(/as a guess: it has not learned anything yet/).waitFor();
    await train(page, 150);
    await page.click("#clear");
    await page.getByText("Nothing drawn yet.").waitFor();
    await drawSeven(page);
    await page.getByText(/^It reads a 7 \(\d/).waitFor();
    const shares = await percentages(page);
    expect(shares.reduce((sum, share) => sum + share)).toBeGreaterThan(94);
    expect(await page.locator("#probabilities .best .digit").textContent()).toBe("7");

    await page.click("#clear"); // which scrolls to the button
    const { x, y } = (await page.locator("#pad").boundingBox())!;
    await page.touchscreen.tap(x + 90, y + 60);
    expect(await hasInk(page)).toBeGreaterThan(0);
    for (const pointerType of ["pen", "touch"]) {
      await page.click("#clear");
      const event = (offset: number) => ({
        pointerType,
        pointerId: 1,
        pressure: 0.7,
        isPrimary: true,
        button: 0,
        clientX: x + 60 + offset,
        clientY: y + 60,
      });
      await page.evaluate(() => {
        document.getElementById("pad")!.setPointerCapture = () => {}; // made up pointers cannot be captured
      });
      await page.dispatchEvent("#pad", "pointerdown", event(0));
      await page.dispatchEvent("#pad", "pointermove", event(50));
      await page.dispatchEvent("#pad", "pointerup", event(50));
      expect(await hasInk(page), pointerType).toBeGreaterThan(2000);
    }

    await page.click("#clear");
    await page.focus("#pad");
    await page.keyboard.press("Space");
    for (let i = 0; i < 9; i++) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.getByText(/^It reads a 1 \(/).waitFor();
    await page.keyboard.press("Delete");
    await page.getByText("Nothing drawn yet.").waitFor();
    await page.close();
  });

  it.skipIf(!triesAll)(`overlays runs that differ in dash and mark, measured on all test digits${later}`, async () => {
    const page = await open();
    await train(page, 100);
    await page.selectOption("#optimizer", "AdamW");
    await says(page, "Run 2 is ready: AdamW, rate 0.001, on WebAssembly.");
    await train(page, 100);
    await page.fill("#lr", "0.0005");
    await page.press("#lr", "Tab");
    await says(page, "Run 3 is ready: AdamW, rate 0.0005");
    await train(page, 100);
    const drawn = (selector: string, attribute: string) =>
      page
        .locator(`#loss-chart ${selector}`)
        .evaluateAll((all, name) => [...new Set(all.map((each) => each.getAttribute(name)))], attribute);
    for (const [selector, attribute] of [
      ["polyline", "stroke-dasharray"],
      ["polyline", "stroke"],
      [".mark", "d"],
    ] as const)
      expect(await drawn(selector, attribute)).toHaveLength(3);
    expect(await page.locator("#loss-chart .label").allTextContents()).toEqual(["1", "2", "3"]);
    expect(await page.locator("#loss-chart svg").getAttribute("aria-label")).toMatch(
      /run 1: NAdam.*; run 2: AdamW, rate 0.001.*% of the test digits; run 3/,
    );
    expect(await page.locator("#runs tr").count()).toBe(3);
    expect(await page.locator("#runs .sample").count()).toBe(3);
    expect(Number.parseFloat((await text(page, "accuracy")) ?? "")).toBeGreaterThan(75);

    for (const [colorScheme, width, height] of LOOKS) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      expect(await violationsOf(page), `${colorScheme}, ${width} pixels`).toEqual([]);
    }
    const small = await page
      .locator("main button:visible, main select")
      .evaluateAll((all) => all.filter((each) => each.getBoundingClientRect().height < 32).length);
    expect(small).toBe(0);
    await page.getByRole("button", { name: "Remove run 2" }).click();
    expect(await page.locator("#loss-chart .label").allTextContents()).toEqual(["1", "3"]);
    await page.close();
  });

  it("keeps, restores with its curve, downloads and opens", async () => {
    const page = await open();
    await page.click("#restore");
    await says(page, "Nothing is kept in this browser yet.");
    await train(page, 60);
    const [steps, digits, runs] = [await text(page, "step"), await text(page, "digits"), await text(page, "runs")];
    await page.click("#keep");
    await says(page, `Kept in this browser: ${steps} steps of run 1.`);
    const curve = () => page.locator("#loss-chart polyline").first().getAttribute("points");
    const drawn = await curve();
    const downloading = page.waitForEvent("download");
    await page.click("#download");
    const bytes = await readFile(await (await downloading).path());
    const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE())).toString());
    expect(header["0.weight"].shape).toEqual([128, 784]);
    expect(header["0.weight.exp_avg"].shape).toEqual([128, 784]);
    expect(header["fit.losses"].shape).toEqual([Number(steps)]);

    await page.reload();
    await page.locator("#train:enabled").waitFor();
    expect(await stepsOf(page)).toBe(0);
    await page.click("#restore");
    await says(page, `Loaded: NAdam after ${steps} steps.`);
    expect([await text(page, "step"), await text(page, "digits"), await text(page, "runs")]).toEqual([
      steps,
      digits,
      runs,
    ]);
    expect(await curve()).toBe(drawn);
    await train(page, 10);
    const file = (buffer: Buffer) => ({ name: "digits.safetensors", mimeType: "", buffer });
    await page.setInputFiles("#file", file(bytes));
    await says(page, `Loaded: NAdam after ${steps} steps.`);
    expect(await page.locator("#runs tr").count()).toBe(2);
    await page.setInputFiles("#file", file(Buffer.from("not a checkpoint")));
    await page
      .locator("#problem")
      .getByText(/digits\.safetensors/)
      .waitFor();
    await page.setInputFiles("#file", file(bytes.subarray(0, -100)));
    await page
      .locator("#problem")
      .getByText(/digits\.safetensors/)
      .waitFor();
    expect(await text(page, "step")).toBe(steps);
    await page.close();
  });

  it("says in words what is wrong", async () => {
    const page = await open();
    await page.fill("#lr", "0");
    await page.press("#lr", "Tab");
    await page
      .locator("#problem")
      .getByText('The learning rate must be a number above 0 and at most 10, got "0".')
      .waitFor();
    expect(await page.inputValue("#lr")).toBe("0.002");
    await page.selectOption("#optimizer", "Adam");
    await says(page, /^Run 1 is ready: Adam/);

    // The click that ends the correction of a wrong number is not lost, and neither is one on a moving page.
    await page.fill("#lr", "-1");
    await page.click("#train");
    await page.locator("#problem").getByText('got "-1"').waitFor();
    await page.locator("#problem:not(.read)").waitFor();
    await page.fill("#lr", "0.01");
    const place = await page.locator("#train").boundingBox();
    await page.click("#train");
    await says(page, /^Training on/);
    expect(await page.locator("#train").boundingBox()).toEqual(place);
    expect(await text(page, "train")).toBe("Pause");
    await page.close();

    const unserved = await openPage(browser);
    await unserved.route("**/t10k-images*", (route) => route.fulfill({ status: 503 }));
    await unserved.goto(`${address}?device=wasm`);
    await unserved
      .locator("#problem")
      .getByText("The digits did not load: for t10k-images-idx3-ubyte the server says 503.")
      .waitFor();
    await unserved.unroute("**/t10k-images*");
    await unserved.goto(`${address}?device=cray`);
    await says(unserved, "This page cannot train.");
    await unserved.locator("#problem").getByText(/cray/).waitFor();
    await unserved.close();
  });

  it("is used by keys alone, on a phone", async () => {
    const page = await open("?device=wasm", { viewport: { width: 390, height: 844 } });
    const focused = () => page.evaluate(() => document.activeElement?.id);
    const order: (string | undefined)[] = [];
    for (let i = 0; i < 9; i++) {
      await page.keyboard.press("Tab");
      order.push(await focused());
    }
    expect(order).toEqual(["optimizer", "device", "lr", "train", "again", "pad", "clear", "sample", "keep"]);
    await page.focus("#train");
    await page.keyboard.press("Enter");
    await says(page, /^Training on/);
    await page.keyboard.press("Enter");
    await says(page, /^Paused after/);
    await page.focus("#pad");
    await page.keyboard.press("Space");
    await page.keyboard.press("ArrowDown");
    await page.getByText(/^It reads a \d \(/).waitFor();
    await page.close();
  });

  it.skipIf(!triesAll)(`trains on WebGPU where that is chosen${later}`, async () => {
    const withGpu = await launchBrowser();
    const page = await open("", {}, withGpu);
    await page.selectOption("#device", "webgpu");
    await says(page, "Run 1 is ready: NAdam, rate 0.002, on WebGPU.");
    expect(await text(page, "note")).toMatch(/WebGPU: .*swiftshader/i);
    await train(page, 40);
    expect(Number(await text(page, "loss"))).toBeLessThan(1.2);
    await page.selectOption("#device", "wasm");
    await says(page, /on WebAssembly\.$/);
    await train(page, 10);
    expect(await page.locator("#runs").textContent()).toMatch(/WebGPU[\s\S]*WebAssembly/);
    await withGpu.close();
  });

  it("falls back to WebAssembly with a sentence saying why", async () => {
    const page = await openPage(browser);
    await page.goto(address);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    await says(page, "Ready to train on WebAssembly.");
    expect(await text(page, "note")).toMatch(/^WebAssembly: up to \d+ threads\. This browser opens no WebGPU here\.$/);
    expect(await page.locator("#device option[value=webgpu]").getAttribute("title")).toMatch(/^\[webgpu\] /);
    await page.close();
  });

  it("loses nothing with a worker that is killed: another one goes on from the checkpoint to the same words", async () => {
    const page = await openPage(browser);
    await page.goto(`${address}worker.html`);
    await page.waitForFunction(() => "trainInWorker" in globalThis);
    const train = (settings: Settings, killAfter?: number): Promise<Seen> =>
      page.evaluate(([given, saves]) => globalThis.trainInWorker(given, saves), [settings, killAfter] as const);
    const settings = { images: 1600, epochs: 2 };
    const whole = await train(settings);
    const folder = "runs/killed";
    const killed = await train({ ...settings, folder }, 2);
    expect([killed.error, killed.losses]).toEqual(["DEVICE_LOST", []]);
    const again = await train({ ...settings, folder });
    expect([again.digest, again.losses, again.error]).toEqual([whole.digest, whole.losses, ""]);
    expect(whole.losses).toHaveLength(50);
    expect(whole.accuracy).toBeGreaterThan(0.7);
    await page.close();
  });
});
