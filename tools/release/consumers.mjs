/** Empty folders in which a user installs the packages with npm, pnpm or yarn, and pastes the README's example. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, start } from "../run.mjs";

/** @type {Record<string, string>} */
const managers = {
  npm: "npm install --no-audit --no-fund --loglevel=error",
  pnpm: "npx -y pnpm@10 add --ignore-scripts",
  yarn: "npx -y yarn@1 add --ignore-scripts --non-interactive",
};
export const managerNames = Object.keys(managers);

/** Installs packages and runs the example. @param {string} manager @param {string} folder @param {string} npmrc @param {readonly string[]} packages */
export async function tryPackages(manager, folder, npmrc, packages) {
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "name": "consumer", "version": "1.0.0", "private": true }');
  writeFileSync(join(folder, ".npmrc"), npmrc);
  const [command = "", ...args] = managers[manager]?.split(" ") ?? [];
  const cache = join(folder, ".cache");
  const env = { npm_config_store_dir: join(cache, "pnpm"), YARN_CACHE_FOLDER: join(cache, "yarn") };
  const installed = await start(command, [...args, ...packages], { quiet: true, cwd: folder, env, minutes: 5 });
  if (!installed.ok) throw new Error(`[rehearse] ${manager} cannot install:\n${installed.stdout}${installed.stderr}`);
  const [, section = ""] = readFileSync(join(root, "README.md"), "utf8").split(/^#+ .*\bexample\b.*$/im);
  const [, code] = /^```js\n(.*?)^```$/ms.exec(section) ?? [];
  if (!code) throw new Error('[rehearse] README.md has no js block under a heading "Example".');
  writeFileSync(join(folder, "example.mjs"), code);
  const { ok, stdout, stderr } = await start(process.execPath, ["example.mjs"], { quiet: true, cwd: folder });
  if (!ok || stderr !== "" || !/^Float32Array\(4\)/.test(stdout) || /NaN|Infinity/.test(stdout))
    throw new Error(`[rehearse] the example with ${manager} fails:\n${stdout}${stderr}`);
}
