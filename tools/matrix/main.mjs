/** `npm run matrix`: the packages as their users get them, in every runtime and bundler that npm can bring. Prints one table, of the rows that contain one of the words after `npm run matrix --`. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildNative } from "../build-native.mjs";
import { build, pack, publicPackages, tarballOf } from "../packages.mjs";
import { start } from "../run.mjs";
import { bundlerRows } from "./bundlers.mjs";
import { nextRows } from "./next.mjs";
import { files } from "./programs.mjs";
import { runtimeRows } from "./runtimes.mjs";
import { typeRows, typescripts } from "./typescript.mjs";
import { workerdRows } from "./workerd.mjs";

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
const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/** The package of this platform's native binary, which npm would bring beside the others; none where nothing compiles. @param {string} destination */
async function packBinary(destination) {
  const { binary } = await buildNative();
  if (binary === undefined) return [];
  const options = ["pack", "--json", "--loglevel=error", "--pack-destination", destination];
  const { ok, stdout, stderr } = await start("npm", [...options, dirname(binary)], { quiet: true });
  if (!ok) throw new Error(`[matrix] npm cannot pack ${binary}: ${stderr}`);
  return [join(destination, JSON.parse(stdout)[0].filename)];
}

/** @param {string} where @param {readonly string[]} packages */
async function install(where, packages) {
  mkdirSync(where, { recursive: true });
  writeFileSync(join(where, "package.json"), '{ "private": true }');
  const { ok, stderr } = await start("npm", ["install", "--prefix", where, ...quiet, ...packages], {
    quiet: true,
    cwd: where,
  });
  if (!ok) throw new Error(`[matrix] npm cannot install: ${stderr}`);
}

try {
  console.log("matrix: packing, and installing runtimes and bundlers");
  const packed = join(scratch, "tarballs");
  mkdirSync(packed);
  await Promise.all([build().then(() => pack(packed)), install(tools, TOOLS)]);
  const tarballs = [...publicPackages().map((each) => tarballOf(packed, each)), ...(await packBinary(packed))];
  await install(folder, tarballs);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

  const rows = [
    ...runtimeRows(folder, tools),
    ...workerdRows(folder, tools),
    ...bundlerRows(folder, tools),
    ...nextRows(folder, scratch, install, tarballs),
    ...typeRows(folder, tools),
  ];
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
