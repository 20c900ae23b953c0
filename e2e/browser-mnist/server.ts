/** A server of the pages, for the tests. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, createServer, type PreviewServer, preview, type ViteDevServer } from "vite";
import { writeSmallDigits } from "./small-digits.mjs";

const configFile = fileURLToPath(new URL("vite.config.ts", import.meta.url));

/** The built page with few digits: it loads in a fraction of the time that its sources take. */
export async function serveBuilt(): Promise<PreviewServer> {
  const outDir = mkdtempSync(join(tmpdir(), "opt-digits-"));
  writeSmallDigits(outDir);
  await build({ configFile, publicDir: false, logLevel: "error", build: { outDir, emptyOutDir: false } });
  return preview({ configFile, logLevel: "error", build: { outDir }, preview: { port: 0 } });
}

/** A server of this folder's pages and of few digits, on a port and with a cache of its own: several test files run at once. */
export async function serve(): Promise<ViteDevServer> {
  const cacheDir = mkdtempSync(join(tmpdir(), "opt-vite-"));
  const publicDir = join(cacheDir, "digits");
  writeSmallDigits(publicDir);
  const server = await createServer({ configFile, cacheDir, publicDir, logLevel: "error", server: { port: 0 } });
  return server.listen();
}
