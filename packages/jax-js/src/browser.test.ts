// jax-js in real Chromium: steps on its WebGPU and WASM devices have the numbers of the class.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Seen } from "./testing/page";

const reason = executablePath === undefined ? "no Chromium is installed" : undefined;

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "testing/page.ts")],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
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
    const html = "<!doctype html><title>jax-js</title><script type=module src=/page.js></script>";
    server = createServer(({ url }, response) => {
      const isPage = url === "/";
      response.writeHead(200, { "Content-Type": isPage ? "text/html" : "text/javascript" }).end(isPage ? html : script);
    }).listen(0, "127.0.0.1");
    browser = await launchBrowser();
    page = await openPage(browser);
    await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
    await page.waitForFunction(() => "train" in globalThis);
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  const train = (device: string, name: string) =>
    page.evaluate(
      ([on, optimizer]) => (globalThis as never as { train(...args: unknown[]): Promise<Seen> }).train(on, optimizer),
      [device, name] as const,
    );

  describe.each(["webgpu", "wasm"])("%s", (device) => {
    it.each(["NAdam", "AdamW", "AMSGrad"])(
      "%s",
      async (name) => {
        const seen = await train(device, name);
        expect(seen.device).toBe(device);
        expect(seen.difference).toBeLessThan(2e-6);
      },
      60_000,
    );
  });
});
