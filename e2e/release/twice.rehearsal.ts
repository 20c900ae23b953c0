/**
 * `npm run rehearse`: a whole release, twice, on a registry of this machine and in a clone of the workspace. The first one publishes what is
 * committed; then one algorithm changes, and only that one may get a new version. Nothing outside of a temporary folder is written.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { publicPackages } from "../../tools/workspace/packages.mjs";
import { root, run, start } from "../../tools/workspace/run.mjs";
import { managerNames, tryPackages } from "./consumers";
import { type Registry, startRegistry } from "./registry";
import { cloneWorkspace, commit } from "./workspace";

const ALGORITHM = "packages/optimizers/nadam";
const scratch = mkdtempSync(join(tmpdir(), "opt-rehearse-"));
const workspace = join(scratch, "workspace");
const userConfig = join(scratch, "npmrc");
let registry: Registry;
let before: Record<string, string>;
let first: Record<string, string>;

beforeAll(async () => {
  writeUserConfig("");
  // Nothing is built before: versions are part of what a build is made of, and the release builds with its own.
  [registry] = await Promise.all([startRegistry(join(scratch, "registry")), cloneWorkspace(workspace)]);
  before = versions();
});

afterAll(() => {
  registry?.stop();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
});

/** npm's settings of this machine, and the registry of this rehearsal: they hold in every folder. */
function writeUserConfig(npmrc: string) {
  const own = run("npm", ["config", "get", "userconfig"], { quiet: true }).stdout.trim();
  writeFileSync(userConfig, `${existsSync(own) ? readFileSync(own, "utf8") : ""}\n${npmrc}`);
}

async function inWorkspace(script: string) {
  const path = `${join(workspace, "node_modules/.bin")}:${process.env.PATH}`;
  const env = { PATH: path, npm_config_userconfig: userConfig };
  const { ok, stdout, stderr } = await start("npm", ["run", script], { quiet: true, cwd: workspace, env });
  expect(ok, `npm run ${script}:\n${stdout}${stderr}`).toBe(true);
}

/** The versions of all published packages in the clone. */
function versions(): Record<string, string> {
  const folders = publicPackages().map(({ folder }) => folder.slice(root.length));
  const manifests = folders.map((folder) => JSON.parse(readFileSync(join(workspace, folder, "package.json"), "utf8")));
  return Object.fromEntries(manifests.map(({ name, version }) => [name, version]));
}

async function publishedVersions(name: string): Promise<string[]> {
  const response = await fetch(`http://${registry.address}/${name.replace("/", "%2f")}`);
  return Object.keys(((await response.json()) as { versions: object }).versions);
}

/** The name of the package that has changed. */
const changed = () => JSON.parse(readFileSync(join(workspace, ALGORITHM, "package.json"), "utf8")).name as string;

it("the first versions are 0.1.0", async () => {
  await inWorkspace("version");
  first = versions();
  for (const [name, version] of Object.entries(before))
    if (version === "0.0.0") expect(first[name], name).toBe("0.1.0");
  commit(workspace, "first release");
});

it("all are published", async () => {
  writeUserConfig(registry.npmrc);
  await inWorkspace("release");
  for (const [name, version] of Object.entries(first)) expect(await publishedVersions(name), name).toEqual([version]);
});

it.each(managerNames)("%s installs them, and the README's example runs", (manager) =>
  tryPackages(manager, join(scratch, manager), registry.npmrc, Object.keys(first)),
);

it("after a change in one algorithm, that one gets a new version", async () => {
  const source = join(workspace, ALGORITHM, "src/index.ts");
  writeFileSync(source, `${readFileSync(source, "utf8")}export const rehearsed = true;\n`);
  const changeset = `---\n"${changed()}": patch\n---\n\nA change.\n`;
  writeFileSync(join(workspace, ".changeset/rehearsal.md"), changeset);
  commit(workspace, "a change");
  await inWorkspace("version");
  const second = versions();
  expect(Object.keys(first).filter((name) => first[name] !== second[name])).toEqual([changed()]);
  commit(workspace, "second release");
});

it("that one is published alone, and installs beside the others", async () => {
  await inWorkspace("release");
  const second = versions();
  for (const [name, version] of Object.entries(first)) {
    expect(await publishedVersions(name), name).toEqual([...new Set([version, second[name]])]);
  }
  await tryPackages("npm", join(scratch, "npm"), registry.npmrc, [`${changed()}@${second[changed()]}`]);
});
