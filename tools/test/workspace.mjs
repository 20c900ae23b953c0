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

/** @type {readonly { name: string, check: () => void | Promise<void> }[]} */
const checks = [
  {
    name: "format and style of the files at the top",
    check: () =>
      mustSucceed("biome", [
        "check",
        "--error-on-warnings",
        ".biome.jsonc",
        "nx.json",
        "package.json",
        "tsconfig.base.json",
        ".github",
        ".changeset",
      ]),
  },
  { name: "manifests", check: checkManifests },
  { name: "words of the documentation", check: checkWords },
  { name: "changesets", check: checkChangesets },
];

for (const { name, check } of checks) {
  try {
    await check();
    console.log(`pass  ${name}`);
  } catch (error) {
    console.log(`FAIL  ${name}\n${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}
