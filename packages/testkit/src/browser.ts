/** Headless Chromium for tests of pages, with WebGPU in software. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

export { type ServedProgram, serveProgram } from "./served-program";

const CANDIDATES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser's program, or undefined. */
export const executablePath = process.env.OPT_CHROMIUM ?? CANDIDATES.find((path) => existsSync(path));

export function launchBrowser({ webgpu = true } = {}): Promise<Browser> {
  const quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const gpu = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
  return chromium.launch({
    executablePath: executablePath!,
    headless: true,
    args: ["--no-sandbox", "--disable-quic", ...quiet, ...(webgpu ? gpu : ["--disable-features=WebGPU,WebGPUService"])],
  });
}

/** Against what hangs, not against what is slow: playwright's own half minute is short for a busy machine without a GPU. */
export const PATIENCE = 240_000;

/** A page in a context of its own. */
export async function openPage(browser: Browser, options?: BrowserContextOptions): Promise<Page> {
  const page = await browser.newPage(options);
  page.context().setDefaultTimeout(PATIENCE);
  return page;
}

export interface Accessibility {
  /** Share of the rules that apply and hold, in percent. */
  readonly score: number;
  /** What does not hold: rule and first place. */
  readonly violations: readonly string[];
}

/** What axe-core finds on a page. */
export async function accessibilityOf(page: Page): Promise<Accessibility> {
  await page.addScriptTag({ path: createRequire(import.meta.url).resolve("axe-core/axe.min.js") });
  const { passed, violations } = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<AxeResults> } };
    const { passes, violations } = await axe.run();
    return {
      passed: passes.length,
      violations: violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`),
    };
  });
  return { score: (100 * passed) / (passed + violations.length), violations };
}

interface AxeResults {
  readonly passes: readonly unknown[];
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}
