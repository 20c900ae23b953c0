/**
 * `npm run rehearse`: a whole release, twice, on a registry of this machine and in a clone of the workspace. The first one publishes what is
 * committed; then one algorithm changes, and only that one may get a new version. Nothing outside of a temporary folder is written.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publicPackages } from "../packages.mjs";
import { root, run, start } from "../run.mjs";
import { managerNames, tryPackages } from "./consumers.mjs";
import { cloneWorkspace, commit } from "./copy.mjs";
import { startRegistry } from "./registry.mjs";

const ALGORITHM = "packages/optimizers/nadam";
const scratch = mkdtempSync(join(tmpdir(), "opt-rehearse-"));
const workspace = join(scratch, "workspace");
const userConfig = join(scratch, "npmrc");
const begin = performance.now();

/** @template T @param {string} what @param {() => T | Promise<T>} act */
async function step(what, act) {
  const from = performance.now();
  const result = await act();
  console.log(`rehearse: ${what} (${((performance.now() - from) / 1000).toFixed(1)} s)`);
  return result;
}

/** npm's settings of this machine, and the registry of this rehearsal: they hold in every folder. @param {string} npmrc */
function writeUserConfig(npmrc) {
  const own = run("npm", ["config", "get", "userconfig"], { quiet: true }).stdout.trim();
  writeFileSync(userConfig, `${existsSync(own) ? readFileSync(own, "utf8") : ""}\n${npmrc}`);
}

/** @param {string} script */
async function inWorkspace(script) {
  const env = {
    PATH: `${join(workspace, "node_modules/.bin")}:${process.env.PATH}`,
    npm_config_userconfig: userConfig,
  };
  const { ok, stdout, stderr } = await start("npm", ["run", script], { quiet: true, cwd: workspace, env });
  if (!ok) throw new Error(`[rehearse] npm run ${script} failed:\n${stdout}${stderr}`);
}

/** The versions of all published packages in the copy. @returns {Record<string, string>} */
function versions() {
  const folders = publicPackages().map(({ folder }) => folder.slice(root.length));
  const manifests = folders.map((folder) => JSON.parse(readFileSync(join(workspace, folder, "package.json"), "utf8")));
  return Object.fromEntries(manifests.map(({ name, version }) => [name, version]));
}

/** @param {string} name @param {string} address the registry's @returns {Promise<string[]>} */
async function publishedVersions(name, address) {
  const response = await fetch(`http://${address}/${name.replace("/", "%2f")}`);
  return Object.keys(/** @type {{ versions: object }} */ (await response.json()).versions);
}

/** @param {boolean} condition @param {string} problem */
function must(condition, problem) {
  if (!condition) throw new Error(`[rehearse] ${problem}`);
}

/** @type {ReturnType<typeof startRegistry> | undefined} */
let registry;
try {
  writeUserConfig("");
  await step("workspace cloned, npm ci", () => cloneWorkspace(workspace));

  // Nothing is built before: versions are part of what a build is made of, and the release builds with its own.
  const before = versions();
  registry = step("registry started", () => startRegistry(join(scratch, "registry")));
  const [{ address, npmrc }] = await Promise.all([registry, step("npm run version", () => inWorkspace("version"))]);
  writeUserConfig(npmrc);
  const first = versions();
  for (const [name, version] of Object.entries(before)) {
    if (version === "0.0.0")
      must(first[name] === "0.1.0", `the first version of ${name} is ${first[name]}, not 0.1.0.`);
  }
  commit(workspace, "first release");
  await step("npm run release", () => inWorkspace("release"));

  const all = Object.keys(first);
  const source = join(workspace, ALGORITHM, "src/index.ts");
  writeFileSync(source, `${readFileSync(source, "utf8")}export const rehearsed = true;\n`);
  const { name } = JSON.parse(readFileSync(join(workspace, ALGORITHM, "package.json"), "utf8"));
  writeFileSync(join(workspace, ".changeset/rehearsal.md"), `---\n"${name}": patch\n---\n\nA change.\n`);
  commit(workspace, "a change");
  await Promise.all([
    step("npm run version, after a change in one algorithm", () => inWorkspace("version")),
    ...managerNames.map((manager) =>
      step(`${manager} installs, the example runs`, () => tryPackages(manager, join(scratch, manager), npmrc, all)),
    ),
  ]);
  const second = versions();
  const bumped = all.filter((each) => first[each] !== second[each]);
  must(bumped.join() === name, `${name} has changed, and ${bumped.join(", ") || "nothing"} got a new version.`);
  commit(workspace, "second release");
  await step("npm run release", () => inWorkspace("release"));
  for (const each of all) {
    const expected = [...new Set([first[each], second[each]])].join();
    must(
      (await publishedVersions(each, address)).join() === expected,
      `the registry does not have ${expected} of ${each}.`,
    );
  }
  await step("npm installs the new algorithm beside what was there", () =>
    tryPackages("npm", join(scratch, "npm"), npmrc, [`${name}@${second[name]}`]),
  );
  console.log(`rehearse: ${all.length} packages at ${first["@opt/core"]}; then only ${name} at ${second[name]}`);
  console.log(`rehearse: passed in ${Math.round((performance.now() - begin) / 1000)} s`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  (await registry?.catch(() => undefined))?.stop();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}
