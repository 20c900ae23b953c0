// TF.js in real Chromium, on its backends there, stepped on our wasm device.
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Seen } from "./testing/page";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;
const wasm = join(dirname(createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm")));
/** So that memory is shared between threads, TF.js' and ours. */
const HEADERS = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "testing/page.ts")],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    mainFields: ["browser", "module", "main"],
    conditions: ["@opt/source"],
    target: "es2022",
    logLevel: "error",
  });
  return outputFiles[0]!.text;
}

describe.skipIf(reason !== undefined)(`in Chromium${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let server: Server;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const script = await bundle();
    server = createServer(async ({ url = "/" }, response) => {
      const binary = url.startsWith("/wasm/")
        ? await readFile(join(wasm, url.slice(6))).catch(() => undefined)
        : undefined;
      const type = url === "/" ? "text/html" : url === "/page.js" ? "text/javascript" : "application/wasm";
      const text =
        url === "/" ? "<!doctype html><title>TF.js</title><script type=module src=/page.js></script>" : script;
      response.writeHead(200, { "Content-Type": type, ...HEADERS }).end(binary ?? text);
    }).listen(0, "127.0.0.1");
    browser = await launchBrowser();
    page = await openPage(browser);
    page.on("pageerror", (error) => console.error(error));
    await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
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
  it("on webgpu, or is refused where that cannot be read at once", async () => {
    const seen = await train("webgpu");
    if (seen !== "NOT_SYNC") expectTrained(seen, "webgpu");
  });
});
