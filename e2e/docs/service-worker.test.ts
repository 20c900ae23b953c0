/** The page on service workers, as a reader copies it: after one visit it predicts without a network. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { saveWeights } from "@opt/checkpoint";
import { init, tensor } from "@opt/core";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { serve } from "../../tools/docs/serve.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(`${ROOT}docs/how-to/service-worker.md`, "utf8");
const blockOf = (file: string) => new RegExp(`^\`\`\`js ${file}\\n(.*?)^\`\`\`$`, "ms").exec(page)![1]!;

it.skipIf(executablePath === undefined)("a visited page predicts offline", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-service-worker-"));
  await init("js");
  const weights = { weight: tensor([[2, 3]]), bias: tensor([1]) };
  await saveWeights(join(folder, "model.safetensors"), weights);
  writeFileSync(join(folder, "service-worker.js"), blockOf("service-worker.js"));
  writeFileSync(join(folder, "index.html"), '<!doctype html><body><script type="module" src="./main.js"></script>');
  await build({
    stdin: { contents: blockOf("main.js"), resolveDir: `${ROOT}e2e/docs` },
    outfile: join(folder, "main.js"),
    bundle: true,
    format: "esm",
    platform: "browser",
    conditions: ["@opt/source"],
    external: ["node:*"],
    logLevel: "error",
  });
  const [browser, server] = await Promise.all([launchBrowser({ webgpu: false }), serve(folder)]);
  try {
    const tab = await openPage(browser);
    await tab.goto(server.address);
    await tab.getByText("the model says 6").waitFor();
    await tab.evaluate("navigator.serviceWorker.ready.then(() => {})");
    await server.close();
    await tab.reload();
    await tab.getByText("the model says 6").waitFor();
    expect(await tab.evaluate("navigator.serviceWorker.controller !== null")).toBe(true);
  } finally {
    await browser.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
