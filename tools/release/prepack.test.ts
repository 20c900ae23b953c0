/** What npm does with packages that were not built: in a copy of the workspace that has manifests alone. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { publicPackages } from "../workspace/packages.mjs";
import { platformPackages } from "../workspace/platforms.mjs";
import { root, run } from "../workspace/run.mjs";

const copy = mkdtempSync(join(tmpdir(), "opt-prepack-"));
// One of each room, as each says it by another path.
const rooms = ["@opt/core", "@opt/nadam", "@opt/kernels-cpu-darwin-arm64"];
const packages = [...publicPackages(), ...platformPackages()]
  .filter(({ name }) => rooms.includes(name))
  .map((each) => ({ ...each, folder: relative(root, each.folder) }));

beforeAll(() => {
  const files = ["package.json", ".npmrc", "tools/release/prepack.mjs"];
  for (const file of [...files, ...packages.map(({ folder }) => `${folder}/package.json`)])
    cpSync(join(root, file), join(copy, file), { recursive: true });
});

afterAll(() => rmSync(copy, { recursive: true, force: true }));

it.each(packages)("$name is not packed before it was built", ({ name, folder, scripts, publishConfig }) => {
  const [program = "", ...args] = scripts!.prepack!.split(" ");
  expect(publishConfig).toEqual({ "ignore-scripts": false });
  const { ok, stderr } = run(program, args, { cwd: join(copy, folder), quiet: true });
  expect(ok).toBe(false);
  expect(stderr).toMatch(`[prepack] ${name} must be built, got no `);
});

const NADAM = "packages/optimizers/nadam";
const CURE = "[prepack] @opt/nadam must be built, got no ./dist/index.js. Run npx nx build @opt/nadam.";
it.each([
  ["publish", "--access", "public"],
  ["pack", "--ignore-scripts=false"],
])("npm %s stops, and goes on after the build", (...args) => {
  const folder = join(copy, NADAM);
  const npm = () => run("npm", [...args, "--dry-run", "--offline"], { cwd: folder, quiet: true });
  const stopped = npm();
  expect(stopped.ok).toBe(false);
  expect(stopped.stderr).toContain(CURE);
  for (const file of ["dist/index.js", "dist/index.d.ts", "src/index.ts"]) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), "");
  }
  const { ok, stderr } = npm();
  expect(ok, stderr).toBe(true);
  for (const built of ["dist", "src"]) rmSync(join(folder, built), { recursive: true });
});
