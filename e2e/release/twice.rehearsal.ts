/**
 * `npm run rehearse`: a whole release, three times, on a registry of this machine and in a clone of the workspace. The first one publishes
 * what is committed. Then one algorithm changes, and only that one may get a new version. Then there is a new optimizer. Nothing outside
 * of a temporary folder is written.
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

/** Starts a command in the clone. */
function command(name: string, ...args: string[]) {
  const path = `${join(workspace, "node_modules/.bin")}:${process.env.PATH}`;
  const env = { PATH: path, npm_config_userconfig: userConfig };
  return start(name, args, { quiet: true, cwd: workspace, env });
}

async function inWorkspace(...args: [name: string, ...string[]]) {
  const { ok, stdout, stderr } = await command(...args);
  expect(ok, `${args.join(" ")}:\n${stdout}${stderr}`).toBe(true);
}

/** Where a project of this name would be. */
const address = {
  homepage: "https://opt.example",
  repository: { type: "git", url: "git+https://git.example/opt.git" },
};

function setAddress(parts: { [Key in keyof typeof address]?: (typeof address)[Key] | undefined }) {
  const path = join(workspace, "package.json");
  const manifest = { ...JSON.parse(readFileSync(path, "utf8")), ...parts };
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}

/** The versions of all published packages in the clone. */
function versions(): Record<string, string> {
  const folders = publicPackages().map(({ folder }) => folder.slice(root.length));
  const manifests = folders.map((folder) => JSON.parse(readFileSync(join(workspace, folder, "package.json"), "utf8")));
  return Object.fromEntries(manifests.map(({ name, version }) => [name, version]));
}

interface Published {
  readonly homepage?: string;
  readonly repository?: object;
}

/** The manifests of what the registry has, by version. */
async function published(name: string): Promise<Record<string, Published>> {
  const response = await fetch(`http://${registry.address}/${name.replace("/", "%2f")}`);
  return ((await response.json()) as { versions: Record<string, Published> }).versions;
}

const publishedVersions = async (name: string) => Object.keys(await published(name));

/** The name of the package that has changed. */
const changed = () => JSON.parse(readFileSync(join(workspace, ALGORITHM, "package.json"), "utf8")).name as string;

it("a release stops while the project has no address", async () => {
  setAddress({ homepage: undefined, repository: undefined });
  const { ok, stderr } = await command("npm", "run", "release");
  expect(ok).toBe(false);
  expect(stderr).toMatch(/^\[release\] the project has no public address: .* in the root package\.json/m);
  setAddress(address);
  await inWorkspace("npm", "run", "manifests");
});

it("the first versions are 0.1.0", async () => {
  await inWorkspace("npm", "run", "version");
  first = versions();
  for (const [name, version] of Object.entries(before))
    if (version === "0.0.0") expect(first[name], name).toBe("0.1.0");
  commit(workspace, "first release");
});

it("all are published", async () => {
  writeUserConfig(registry.npmrc);
  await inWorkspace("npm", "run", "release");
  for (const [name, version] of Object.entries(first)) expect(await publishedVersions(name), name).toEqual([version]);
  const directory = ALGORITHM;
  expect((await published(changed()))["0.1.0"]).toMatchObject({
    ...address,
    repository: { ...address.repository, directory },
  });
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
  await inWorkspace("npm", "run", "version");
  const second = versions();
  expect(Object.keys(first).filter((name) => first[name] !== second[name])).toEqual([changed()]);
  commit(workspace, "second release");
});

it("that one is published alone, and installs beside the others", async () => {
  await inWorkspace("npm", "run", "release");
  const second = versions();
  for (const [name, version] of Object.entries(first)) {
    expect(await publishedVersions(name), name).toEqual([...new Set([version, second[name]])]);
  }
  await tryPackages("npm", join(scratch, "npm"), registry.npmrc, [`${changed()}@${second[changed()]}`]);
});

it("a new optimizer needs nothing but what its generator writes", async () => {
  await inWorkspace("node", "tools/workspace/new-optimizer.mjs", "yogi");
  const { stdout } = await command("git", "status", "--porcelain");
  const files = ["package-lock.json", "packages/optim/package.json", "packages/optim/src/index.ts"];
  const changes = [...files.map((file) => ` M ${file}`), "?? .changeset/yogi.md", "?? packages/optimizers/yogi/"];
  expect(stdout.trimEnd().split("\n").sort()).toEqual(changes.sort());
  const projects = "@opt/yogi,@opt/optim,tools,workspace";
  await inWorkspace("nx", "run-many", "--targets", "build,test,typecheck,lint", "--projects", projects);
  commit(workspace, "a new optimizer");
  const second = versions();
  await inWorkspace("npm", "run", "version");
  commit(workspace, "third release");
  await inWorkspace("npm", "run", "release");
  expect(await publishedVersions("@opt/yogi")).toEqual(["0.1.0"]);
  const third = versions();
  expect(Object.keys(second).filter((name) => second[name] !== third[name])).toEqual(["@opt/optim"]);
  await tryPackages("npm", join(scratch, "npm"), registry.npmrc, ["@opt/yogi", `@opt/optim@${third["@opt/optim"]}`]);
});
