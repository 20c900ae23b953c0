/** The target `lint` of the workspace itself: what concerns all projects together. Says everything that is wrong. */
import getReleasePlan from "@changesets/get-release-plan";
import { checkManifests } from "../workspace/manifests.mjs";
import { publicPackages } from "../workspace/packages.mjs";
import { root, run, start } from "../workspace/run.mjs";
import { checkWords } from "./words.mjs";

/** @param {string} command @param {string[]} args */
async function mustSucceed(command, args) {
  const { ok, stdout, stderr } = await start(command, args, { quiet: true });
  if (!ok) throw new Error(stdout + stderr);
}

/** A package has a changeset before its first version, and later where it differs from the main branch. */
async function checkChangesets() {
  const isNew = (/** @type {{ version: string }} */ { version }) => version === "0.0.0";
  const { changesets } = await getReleasePlan(root);
  const announced = new Set(changesets.flatMap(({ releases }) => releases.map(({ name }) => name)));
  const silent = publicPackages().filter((each) => isNew(each) && !announced.has(each.name));
  if (silent.length > 0) throw new Error(`no changeset names ${silent.map(({ name }) => name).join(", ")}.`);
  const base = "origin/main";
  if (publicPackages().some(isNew) || !run("git", ["rev-parse", "--verify", base], { quiet: true }).ok) return;
  await mustSucceed("changeset", ["status", "--since", base]);
}

/** Sherif's rules that do not hold here: any npm of a supported Node does, and packages/optimizers is a room. */
const SHERIF = ["root-package-manager-field", "packages-without-package-json"].flatMap((rule) => ["-r", rule]);

const TOP = [".biome.jsonc", "nx.json", "package.json", "knip.jsonc", "tsconfig.base.json", ".github", ".changeset"];

/** @type {readonly { name: string, check: () => void | Promise<void> }[]} */
const checks = [
  {
    name: "format of the files at the top",
    check: () => mustSucceed("biome", ["check", "--error-on-warnings", ...TOP]),
  },
  { name: "manifests", check: checkManifests },
  { name: "versions of dependencies", check: () => mustSucceed("sherif", SHERIF) },
  { name: "unused files, exports and dependencies", check: () => mustSucceed("knip", ["--no-config-hints"]) },
  { name: "words of the documentation", check: checkWords },
  { name: "changesets", check: checkChangesets },
];

// Side by side: most are programs of their own.
await Promise.all(
  checks.map(async ({ name, check }) => {
    try {
      await check();
      console.log(`pass  ${name}`);
    } catch (error) {
      console.log(`FAIL  ${name}\n${error instanceof Error ? error.message : error}`);
      process.exitCode = 1;
    }
  }),
);
