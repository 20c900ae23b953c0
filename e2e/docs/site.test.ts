/** The site as its readers get it: built once, its links followed, its search asked, its samples run in real Chromium. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { accessibilityOf, executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { INTERNAL } from "../../docs/topics.mjs";
import { serve } from "../../tools/docs/serve.mjs";
import { findExamples, writtenPages } from "./examples";

/** What readers type, and the page that answers it. */
const QUESTIONS = [
  ["freeze a layer", "how-to/freeze-a-layer"],
  ["clip gradients", "how-to/clip-gradients"],
  ["plot the loss", "how-to/plot-the-loss"],
  ["model summary", "how-to/model-summary"],
  ["early stopping", "how-to/early-stopping"],
  ["save best model", "how-to/save-the-best-model"],
  ["mixed precision", "how-to/mixed-precision"],
  ["WebGPU", "how-to/use-webgpu"],
  ["Next.js", "how-to/vite-and-next"],
  ["load pytorch .pt", "how-to/load-a-pt-file"],
  ["resume on three machines", "how-to/resume-on-three-machines"],
  ["my own layer", "how-to/write-your-own-layer"],
  ["worker", "how-to/train-in-a-worker"],
  ["compile a step", "how-to/compile-a-step"],
  ["NaN", "how-to/find-a-nan"],
  ["predict", "how-to/predict"],
  ["error codes", "guides/errors"],
] as const;

const out = mkdtempSync(join(tmpdir(), "opt-site-"));
const main = fileURLToPath(new URL("../../tools/docs/main.mjs", import.meta.url));
const texts = new Map<string, string>();

beforeAll(() => {
  const { VITEST: _, NODE_ENV: __, ...env } = process.env; // the pages are built for production
  execFileSync(process.execPath, [main, "build", out], { env, encoding: "utf8", stdio: "pipe" });
  for (const file of readdirSync(out, { recursive: true, encoding: "utf8" })) {
    if (file.endsWith(".html")) texts.set(file, readFileSync(join(out, file), "utf8"));
  }
});

/** Where a link of a page leads, if that is in the site. */
function targetOf(page: string, href: string): { file: string; anchor: string } | undefined {
  const url = new URL(href, `http://site/${page.replace(/(index)?\.html$/, "")}`);
  if (url.host !== "site") return undefined;
  const path = decodeURIComponent(url.pathname).slice(1);
  const file = [path, `${path}.html`, `${path}index.html`].find((each) => texts.has(each)) ?? path;
  return { file, anchor: decodeURIComponent(url.hash.slice(1)) };
}

describe("the site", () => {
  it("has every page and the API, without what only our packages use", () => {
    const expected = writtenPages().map((page) => page.replace(/^docs\/(.*)\.md$/, "$1.html"));
    expect([...texts.keys()]).toEqual(expect.arrayContaining([...expected, "api/core.html", "api/core-Tensor.html"]));
    const api = [...texts].filter(([page]) => page.startsWith("api/"));
    const shown = [...INTERNAL].filter((name) =>
      api.some(([, html]) => new RegExp(`<h[2-4][^>]*>${name}\\b`).test(html)),
    );
    expect(shown).toEqual([]);
    for (const [page, html] of api) expect(/<\/h1>[\s\S]{0,40}<p>/.test(html), page).toBe(true);
  });

  it("has no link that leads nowhere", () => {
    const broken = new Set<string>();
    for (const [page, html] of texts) {
      if (page === "404.html") continue;
      for (const [, href] of html.matchAll(/<a [^>]*href="([^"]*)"/g)) {
        const target = targetOf(page, href!.replaceAll("&amp;", "&"));
        if (target === undefined || target.anchor === "VPContent" || target.file === "playground.html") continue;
        const there = texts.get(target.file);
        if (there === undefined || (target.anchor !== "" && !there.includes(`id="${target.anchor}"`)))
          broken.add(`${page} -> ${href}`);
      }
    }
    expect([...broken]).toEqual([]);
  });
});

const reason = executablePath === undefined ? " (skipped: no Chromium is installed)" : "";

describe.skipIf(reason !== "")(`in Chromium${reason}`, () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serve>>;
  const problems: string[] = [];

  beforeAll(async () => {
    [browser, site] = await Promise.all([launchBrowser({ webgpu: false }), serve(out)]);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
    expect(problems).toEqual([]);
  });

  async function open(path: string, width = 1280): Promise<Page> {
    const page = await openPage(browser, { viewport: { width, height: 844 } });
    page.on("pageerror", (error) => problems.push(`${path}: ${error}`));
    await page.goto(site.address + path);
    return page;
  }

  const START = /^(Start|Train)$/;
  const STOP = /^(Stop|Pause)$/;
  const plainPages = ["tutorials/first-model", "how-to/use-webgpu", "api/core-Compile", "playground", "demos/"];
  it.each(["", ...plainPages, "demos/optimizer-race", "demos/spirals", "demos/same-run", "demos/gpt", "demos/digits/"])(
    "/%s is accessible, light and dark, and fits a phone",
    async (path) => {
      const page = await open(path, 390);
      const hasPanel = path === "" || path === "demos/spirals";
      if (hasPanel) await page.getByRole("button", { name: "Stop" }).click();
      else if (path.startsWith("demos/") && path !== "demos/") {
        await page.getByRole("button", { name: START }).click();
        await page.getByText(/\b[5-9] steps|Step [1-9]|Training on/).waitFor();
        await page.getByRole("button", { name: STOP }).click();
      }
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.waitForFunction(
          (dark) => document.querySelector(".VPContent") === null || document.documentElement.matches(".dark") === dark,
          colorScheme === "dark",
        );
        const { violations } = await accessibilityOf(page);
        expect.soft(violations, colorScheme).toEqual([]);
      }
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
      await page.close();
    },
  );

  /** A page that notes when its thread was busy for 50 ms or more. */
  async function openWatched(path: string): Promise<Page> {
    const page = await openPage(browser, { viewport: { width: 1280, height: 844 } });
    await page.addInitScript(() => {
      const tasks: number[] = [];
      Object.assign(window, { tasks });
      new PerformanceObserver((list) => {
        for (const { startTime } of list.getEntries()) tasks.push(startTime);
      }).observe({ type: "longtask" });
    });
    await page.goto(site.address + path);
    return page;
  }

  /** A busy machine can hold up any task: a page that trains by itself would in every half second. */
  async function expectFree(page: Page): Promise<void> {
    const isFree = await page.evaluate(async () => {
      const { tasks } = window as unknown as { tasks: number[] };
      for (let i = 0; i < 6; i++) {
        const begin = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 500));
        if (!tasks.some((start) => start >= begin)) return true;
      }
      return false;
    });
    expect(isFree).toBe(true);
  }

  it("opens light, and trains two spirals without holding the page up", async () => {
    const page = await openWatched("");
    await page
      .locator(".spirals pre")
      .getByText(/^wasm: step \d+, loss/)
      .waitFor();
    const { started, bytes } = await page.evaluate(() => {
      const entries = performance.getEntries().filter((entry) => "encodedBodySize" in entry);
      const loaded = entries.filter(({ name }) => !name.includes("/opt/")) as PerformanceResourceTiming[];
      return { started: performance.now(), bytes: loaded.reduce((sum, entry) => sum + entry.encodedBodySize, 0) };
    });
    console.log(`home: ${Math.round(bytes / 1024)} KiB, trains after ${Math.round(started)} ms`);
    expect(bytes).toBeLessThan(300 * 1024);
    await expectFree(page);
    expect(await page.locator(".spirals .picture").count()).toBe(1);
    await page.close();
  });

  async function tabTo(page: Page, place: Locator): Promise<void> {
    for (let i = 0; i < 40 && !(await place.evaluate((each) => each === document.activeElement)); i++)
      await page.keyboard.press("Tab");
  }

  /** A digit one, with the keyboard. */
  async function drawOne(page: Page): Promise<void> {
    await tabTo(page, page.getByLabel("Drawing pad"));
    await page.keyboard.press("Space");
    for (let i = 0; i < 9; i++) await page.keyboard.press("ArrowDown");
  }

  it.each<[string, string | RegExp, ((page: Page) => Promise<void>)?]>([
    ["optimizer-race", /^Step [1-9]\d* of \d+\. Lowest: \w/],
    ["same-run", "20 steps on wasm, all equal to Node's"],
    ["gpt", /^After [1-9]\d* steps?$/],
    ["digits/", /^It reads a \d \([\d.]+\u00a0%\)\.$/, drawOne],
  ])(
    "the demo %s is started by the keyboard, and trains without holding the page up",
    async (path, reached, meanwhile = async (_: Page) => {}) => {
      const page = await openWatched(`demos/${path}`);
      const start = page.getByRole("button", { name: START });
      await expect.poll(() => start.isEnabled()).toBe(true);
      await tabTo(page, start);
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: STOP }).waitFor();
      await meanwhile(page);
      await expectFree(page);
      await page.getByText(reached).waitFor();
      await page.close();
    },
  );

  const samples = findExamples().filter(({ isWhole }) => isWhole);
  const pages = [...new Set(samples.map(({ place }) => place.split(":")[0]!))];
  let reader: Page;
  it.each(pages)("every Run of %s prints what the page says", async (file) => {
    reader ??= await open("");
    const page = reader;
    await page.goto(site.address + file.replace(/^docs\/(.*?)(index)?\.md$/, "$1"));
    const own = samples.filter(({ place }) => place.startsWith(`${file}:`));
    const shown = page.locator(".sample");
    expect(await shown.count()).toBe(own.length);
    for (let i = 0; i < own.length; i++) {
      const sample = shown.nth(i);
      await sample.getByRole("button", { name: "Run" }).click();
      await sample.locator('[data-status="done"], [data-status="failed"]').waitFor();
      const printed = await sample.locator("pre").last().textContent();
      expect(await sample.locator('[data-status="done"]').count(), printed ?? "").toBe(1);
      if (own[i]!.output !== undefined) expect(printed).toBe(own[i]!.output);
    }
  });

  it("search finds the page of a task first", async () => {
    const page = await open("guides/devices");
    await page.getByRole("button", { name: "Search" }).first().click();
    for (const [words, expected] of QUESTIONS) {
      await page.locator("#localsearch-input").fill(words);
      const first = page.locator(".results a").first();
      await expect.poll(() => first.getAttribute("href"), { message: words, timeout: 20_000 }).toContain(expected);
    }
    await page.close();
  });

  it("keeps the code of the playground in its address", async () => {
    const page = await open("playground");
    await page.locator("textarea").fill('console.log("kept", 1 + 1);');
    await page.waitForURL(/#./);
    const again = await open(page.url().replace(site.address, ""));
    await again.getByRole("button", { name: "Run" }).click();
    await again.getByText("kept 2").waitFor();
    await Promise.all([page.close(), again.close()]);
  });
});
