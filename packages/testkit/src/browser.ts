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

/** What axe-core finds on a page: the rule that does not hold, and the first place. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  await page.addScriptTag({ path: createRequire(import.meta.url).resolve("axe-core/axe.min.js") });
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<AxeResults> } };
    // A colour on its way from light to dark is neither.
    const transitions = document.getAnimations().filter((each) => each instanceof CSSTransition);
    await Promise.allSettled(transitions.map(({ finished }) => finished));
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`);
  });
}

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}
