/** Empty folders in which a user installs the packages with npm, pnpm or yarn, and pastes the README's example. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { start } from "../../tools/workspace/run.mjs";
import { readmeExample } from "../install/readme";

const managers: Record<string, string> = {
  npm: "npm install --no-audit --no-fund --loglevel=error",
  pnpm: "npx -y pnpm@10 add --ignore-scripts",
  yarn: "npx -y yarn@1 add --ignore-scripts --non-interactive",
};
export const managerNames = Object.keys(managers);

/** Installs packages and runs the example. */
export async function tryPackages(manager: string, folder: string, npmrc: string, packages: readonly string[]) {
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "name": "consumer", "version": "1.0.0", "private": true }');
  writeFileSync(join(folder, ".npmrc"), npmrc);
  const [command = "", ...args] = managers[manager]?.split(" ") ?? [];
  const cache = join(folder, ".cache");
  const env = { npm_config_store_dir: join(cache, "pnpm"), YARN_CACHE_FOLDER: join(cache, "yarn") };
  const installed = await start(command, [...args, ...packages], { quiet: true, cwd: folder, env, minutes: 5 });
  expect(installed.ok, installed.stdout + installed.stderr).toBe(true);
  writeFileSync(join(folder, "example.mjs"), readmeExample(new URL("../../README.md", import.meta.url)));
  const { stdout, stderr } = await start(process.execPath, ["example.mjs"], { quiet: true, cwd: folder });
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^Float32Array\(4\)/);
  expect(stdout).not.toMatch(/NaN|Infinity/);
}
