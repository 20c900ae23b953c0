/** A server of the pages. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type PreviewServer, preview } from "vite";
import { writeSmallDigits } from "./small-digits.mjs";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const configFile = here("vite.config.ts");
const input = [here("index.html"), here("worker.html")];

/** The built pages with few digits: they load in a fraction of the time that their sources take. */
export async function serve(): Promise<PreviewServer> {
  const outDir = mkdtempSync(join(tmpdir(), "opt-digits-"));
  writeSmallDigits(outDir);
  await build({
    configFile,
    publicDir: false,
    logLevel: "error",
    build: { outDir, emptyOutDir: false, rolldownOptions: { input } },
  });
  return preview({ configFile, logLevel: "error", build: { outDir }, preview: { port: 0 } });
}
