/** `npm run matrix`: the packages as their users get them, in every runtime and bundler that npm can bring. Prints one table, of the rows that contain one of the words after `npm run matrix --`. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "../build.mjs";
import { buildNative } from "../build-native.mjs";
import { installIn, pack, publicPackages, tarballOf } from "../packages.mjs";
import { platformPackages } from "../release/platforms.mjs";
import { bundlerRows } from "./bundlers.mjs";
import { files } from "./programs.mjs";
import { runtimeRows } from "./runtimes.mjs";
import { typeRows, typescripts } from "./typescript.mjs";

const TOOLS = [
  "bun@1",
  "deno@2",
  "webpack@5",
  "webpack-cli@6",
  "rollup@4.67.4",
  "@rollup/plugin-node-resolve@16",
  "vite@8",
  "esbuild@0.28.2",
  "workerd@1",
  "@types/node@20",
  ...typescripts,
];
const NOT_TRIED = ["Electron", "Safari and Firefox", "Windows and macOS"];

const scratch = mkdtempSync(join(tmpdir(), "opt-matrix-"));
const folder = join(scratch, "program");
const tools = join(scratch, "tools");
try {
  console.log("matrix: packing, and installing runtimes and bundlers");
  const packed = join(scratch, "tarballs");
  mkdirSync(packed);
  await Promise.all([build(), buildNative(), installIn(tools, TOOLS)]);
  // With the binaries that are built here, which npm would bring for this platform.
  const packages = [...publicPackages(), ...platformPackages().filter(({ missing }) => missing.length === 0)];
  await pack(packed, packages);
  const tarballs = packages.map((each) => tarballOf(packed, each));
  await installIn(folder, tarballs);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

  const rows = [...runtimeRows(folder, tools), ...bundlerRows(folder, tools, tarballs), ...typeRows(folder, tools)];
  const wanted = process.argv.slice(2);
  const isWanted = (/** @type {string} */ name) => wanted.length === 0 || wanted.some((word) => name.includes(word));
  let expected = "";
  let failed = 0;
  console.log("\n| where | device | result |\n|---|---|---|");
  for (const { name, run } of rows.filter((row) => isWanted(row.name))) {
    const { line = "", untried, verdict } = await run();
    const [device = "", ...numbers] = line.split(" ");
    const shown = numbers.join(" ");
    const isResult = /^(\S+ ){3}\S+$/.test(shown) && !shown.includes("NaN");
    if (isResult) expected ||= shown;
    // The order of a sum is a device's own: after 300 steps the third decimal is the same.
    const right =
      isResult && numbers.every((text, i) => Math.abs(Number(text) - Number(expected.split(" ")[i])) < 1e-3);
    if (!right && untried === undefined && verdict === undefined) failed++;
    const said = verdict ?? (untried ? `not tried: ${untried}` : right ? shown : `FAILED: ${line}`);
    console.log(`| ${name} | ${right ? device : ""} | ${said} |`);
  }
  console.log(`\nNot tried: ${NOT_TRIED.join(", ")}.`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}
