/** `npm run docs`: installs what the site needs, builds it into runs/docs and serves it. `build [folder]` only builds. */
import { join } from "node:path";
import { root } from "../workspace/run.mjs";
import { installNpmPackages } from "../workspace/setup.mjs";

const [command, outDir = join(root, "runs/docs")] = process.argv.slice(2);

if (command !== "build") {
  console.log("docs: builds the site into runs/docs and serves it. First: npm packages where they are missing");
  await installNpmPackages("e2e/docs");
}
const { buildSite } = await import("./build.mjs");
await buildSite(outDir);
if (command === "build") {
  console.log(`docs: built into ${outDir}`);
} else {
  const { serve } = await import("./serve.mjs");
  const { address } = await serve(outDir, Number(process.env.PORT ?? 4173));
  console.log(`docs: ${address} (Ctrl+C ends it)`);
}
