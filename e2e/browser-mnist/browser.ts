/** Headless Chromium with WebGPU in software, and a server of pages, for the tests. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

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
