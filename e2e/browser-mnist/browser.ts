/** Headless Chromium with WebGPU in software, and a server of pages, for the tests. */
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";

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

/** A server of this folder's pages, on a port and with a cache of its own: several test files run at once. */
export async function serve(): Promise<ViteDevServer> {
  const configFile = fileURLToPath(new URL("vite.config.ts", import.meta.url));
  const cacheDir = mkdtempSync(join(tmpdir(), "opt-vite-"));
  const server = await createServer({ configFile, cacheDir, logLevel: "error", server: { port: 0 } });
  return server.listen();
}
