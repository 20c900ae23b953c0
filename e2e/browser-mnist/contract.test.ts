// The contract suite and the goldens on the WebGPU of real Chromium: calls travel from Node into the page.
// `packages/kernels-webgpu` tries all cases of the same kernels in Node.

import { join } from "node:path";
import { init, registerBackend } from "@opt/core";
import { contractSuite, goldenSuite } from "@opt/testkit";
import { executablePath, launchBrowser, openPage, type ServedProgram, serveProgram } from "@opt/testkit/browser";
import { optimizerClasses } from "@opt/testkit/optimizers";
import type { Browser } from "playwright-core";
import { afterAll } from "vitest";
import { RemoteBackend } from "./remote-backend";

let server: ServedProgram | undefined;
let browser: Browser | undefined;
afterAll(async () => {
  await browser?.close();
  server?.close();
});

async function open(): Promise<RemoteBackend> {
  server ??= await serveProgram(join(import.meta.dirname, "contract-page.ts"));
  browser ??= await launchBrowser();
  const page = await openPage(browser);
  await page.goto(server.url);
  await page.waitForFunction(() => "performMessages" in globalThis);
  return new RemoteBackend(page);
}

const skip = executablePath === undefined ? "no Chromium is installed" : undefined;

contractSuite({
  name: "webgpu",
  open,
  dtypes: ["f32"],
  exact: false,
  reserves: false, // the page does
  tolerances: { rule: { absolute: 1e-6, relative: 1e-4 } }, // as in Node: where scalars of any sign cancel
  sampled: true,
  skip,
});

registerBackend({ name: "webgpu", rank: 30, load: open });
if (skip === undefined) {
  const device = () => init("webgpu");
  goldenSuite({
    name: "WebGPU in Chromium",
    optimizers: await optimizerClasses(),
    exact: false,
    sampled: true,
    device,
  });
}
