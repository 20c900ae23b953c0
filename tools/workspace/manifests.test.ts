/** `npm run manifests` in a copy of the workspace that has manifests, licences and READMEs alone. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, it } from "vitest";
import { publicPackages } from "./packages.mjs";
import { platformPackages } from "./platforms.mjs";
import { root, run } from "./run.mjs";

const scratch = mkdtempSync(join(tmpdir(), "opt-manifests-"));
const folders = [...publicPackages(), ...platformPackages()].map(({ folder }) => folder.slice(root.length));
const files = folders.flatMap((folder) => ["package.json", "LICENSE", "README.md"].map((name) => `${folder}/${name}`));
let copy: string;

beforeEach(() => {
  copy = mkdtempSync(join(scratch, "workspace-"));
  const whole = [
    "package.json",
    "LICENSE",
    ".biome.jsonc",
    ".gitignore",
    "tools/workspace",
    "docs/guides",
    "docs/how-to",
    "docs/tutorials",
  ];
  for (const path of [...whole, ...files]) cpSync(join(root, path), join(copy, path), { recursive: true });
  mkdirSync(join(copy, "e2e"));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"), "dir");
});

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const read = (path: string) => readFileSync(join(copy, path), "utf8");
const manifestOf = (folder: string) => JSON.parse(read(`${folder}/package.json`));

function edit(path: string, change: (text: string) => string) {
  writeFileSync(join(copy, path), change(read(path)));
}

function writeAll() {
  const { ok, stderr } = run(process.execPath, ["tools/workspace/manifests.mjs"], { cwd: copy, quiet: true });
  expect(ok, stderr).toBe(true);
}

/** What the check says; empty if all is well. */
function problems(): string {
  const program = 'import("./tools/workspace/manifests.mjs").then((all) => all.checkManifests())';
  return run(process.execPath, ["-e", program], { cwd: copy, quiet: true }).stderr;
}

it("a stale file is named with the command that mends it", () => {
  expect(problems()).toBe("");
  edit("packages/nn/LICENSE", (text) => text.slice(1));
  edit("packages/optimizers/nadam/package.json", (text) => text.replace('"types": "./dist/index.d.ts",\n', ""));
  const stale = "packages/nn/LICENSE, packages/optimizers/nadam/package.json";
  expect(problems()).toContain(`[manifests] stale: ${stale}. Run npm run manifests.`);
  writeAll();
  for (const file of files) expect(read(file), file).toBe(readFileSync(join(root, file), "utf8"));
});

it("the project's address goes into every package, and goes away again", () => {
  const address = {
    homepage: "https://opt.example",
    bugs: "https://git.example/opt/issues",
    repository: { type: "git", url: "git+https://git.example/opt.git" },
  };
  const before = read("package.json");
  edit("package.json", (text) => JSON.stringify({ ...JSON.parse(text), ...address }));
  writeAll();
  expect(problems()).toBe("");
  for (const folder of folders) {
    const repository = { ...address.repository, directory: folder };
    expect(manifestOf(folder)).toMatchObject({ ...address, repository });
  }
  expect(read("packages/core/README.md")).toContain("[Memory](https://opt.example/guides/memory)");
  writeFileSync(join(copy, "package.json"), before);
  writeAll();
  for (const file of files) expect(read(file), file).toBe(readFileSync(join(root, file), "utf8"));
});

it("a new optimizer's author writes what is its own", () => {
  const lion = "packages/optimizers/lion";
  const yogi = "packages/optimizers/yogi";
  cpSync(join(copy, lion), join(copy, yogi), { recursive: true });
  const { name: _, version, description, keywords, peerDependencies, devDependencies, opt } = manifestOf(lion);
  const entry = { "@opt/source": "./src/index.ts", default: "./dist/index.js" };
  const exports = { ".": entry, "./rules": entry };
  const own = { name: "@opt/yogi", version, description, keywords, type: "module", exports };
  edit(`${yogi}/package.json`, () => JSON.stringify({ opt, ...own, peerDependencies, devDependencies }));
  rmSync(join(copy, yogi, "LICENSE"));
  writeAll();
  expect(read(`${yogi}/package.json`)).toBe(
    read(`${lion}/package.json`).replace(/(?<=@opt\/|optimizers\/)lion/g, "yogi"),
  );
  expect(read(`${yogi}/LICENSE`)).toBe(read("LICENSE"));
  expect(manifestOf("packages/optim").dependencies["@opt/yogi"]).toBe(`^${version}`);
});

it("a platform's package has the version of the package that needs it", () => {
  edit("packages/kernels-cpu/package.json", (text) => JSON.stringify({ ...JSON.parse(text), version: "9.0.0" }));
  writeAll();
  expect(manifestOf("native/cpu/npm/linux-x64-gnu").version).toBe("9.0.0");
  const { optionalDependencies } = manifestOf("packages/kernels-cpu");
  expect(new Set(Object.values(optionalDependencies))).toEqual(new Set(["9.0.0"]));
});
