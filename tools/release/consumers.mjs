/** Empty folders in which a user installs the packages with npm, pnpm or yarn, and pastes the README's example. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, start } from "../run.mjs";

/** @type {Record<string, { command: string, args: string[] }>} */
const managers = {
  npm: { command: "npm", args: ["install", "--no-audit", "--no-fund", "--loglevel=error"] },
  pnpm: { command: "npx", args: ["-y", "pnpm@10", "add", "--ignore-scripts"] },
  yarn: { command: "npx", args: ["-y", "yarn@1", "add", "--ignore-scripts", "--non-interactive"] },
};
export const managerNames = Object.keys(managers);

/** The example of the workspace's README. */
function example() {
  const [, section = ""] = readFileSync(join(root, "README.md"), "utf8").split(/^#+ .*\bexample\b.*$/im);
  const code = /^```js\n(?<code>.*?)^```$/ms.exec(section)?.groups?.code;
  if (!code) throw new Error('[rehearse] README.md has no js block under a heading "Example".');
  return code;
}

/** The same program in CommonJS. @param {string} code */
function inCommonJs(code) {
  const required = code
    .replace(/^import "(.*?)";/gm, 'require("$1");')
    .replace(/^import (\{.*?\}) from "(.*?)";/gm, 'const $1 = require("$2");');
  return `(async () => {\n${required}\n})().catch((error) => {\n  console.error(error);\n  process.exitCode = 1;\n});\n`;
}

/**
 * Installs packages and runs the example as ESM and as CommonJS.
 * @param {string} manager
 * @param {string} folder
 * @param {string} npmrc
 * @param {readonly string[]} packages
 */
export async function tryPackages(manager, folder, npmrc, packages) {
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "name": "consumer", "version": "1.0.0", "private": true }');
  writeFileSync(join(folder, ".npmrc"), npmrc);
  const { command, args } = managers[manager] ?? { command: manager, args: [] };
  const cache = join(folder, ".cache");
  const env = { npm_config_store_dir: join(cache, "pnpm"), YARN_CACHE_FOLDER: join(cache, "yarn") };
  const installed = await start(command, [...args, ...packages], { quiet: true, cwd: folder, env, minutes: 5 });
  if (!installed.ok) throw new Error(`[rehearse] ${manager} cannot install:\n${installed.stdout}${installed.stderr}`);
  for (const [file, code] of [
    ["example.mjs", example()],
    ["example.cjs", inCommonJs(example())],
  ]) {
    writeFileSync(join(folder, file ?? ""), code ?? "");
    const { ok, stdout, stderr } = await start(process.execPath, [file ?? ""], { quiet: true, cwd: folder });
    const right = ok && stderr === "" && /^Float32Array\(4\)/.test(stdout) && !/NaN|Infinity/.test(stdout);
    if (!right) throw new Error(`[rehearse] ${file} with ${manager} fails:\n${stdout}${stderr}`);
  }
}
