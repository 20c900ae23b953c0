/**
 * `npm run mutate -- [areas] [--sample N] [--write] [options of Stryker]`: plants small bugs in each area (all of them, if none is
 * named), lists those that no test notices, and fails where fewer are found than before. A second run plants only where code or tests
 * have changed. `--sample 20` plants one of 20 bugs. `--write` records the scores beside the code.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../../workspace/run.mjs";
import { areaOf, areas } from "./areas.mjs";
import { measure, problemsOf } from "./score.mjs";

const given = process.argv.slice(2);
const firstOption = given.findIndex((word) => word.startsWith("-"));
const named = firstOption === -1 ? given : given.slice(0, firstOption);
const options = given.slice(named.length);
const unknown = named.filter((name) => !(name in areas));
if (unknown.length > 0) {
  console.error(`no area ${unknown.join(", ")}; there are ${Object.keys(areas).join(", ")}`);
  process.exit(2);
}

/** Takes an option from those for Stryker. @param {string} name @param {number} values how many words follow it */
function taken(name, values) {
  const at = options.indexOf(name);
  return at === -1 ? undefined : options.splice(at, 1 + values);
}
const sample = Number(taken("--sample", 1)?.[1] ?? 1);
const writes = taken("--write", 0) !== undefined;
if (!Number.isInteger(sample) || sample < 1) {
  console.error("--sample takes a whole number N: one of N mutants is tried");
  process.exit(2);
}

/** @param {string} path @returns {Record<string, import("./score.mjs").Recorded>} */
const read = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {});

/** Tries an area, and says what is wrong with it. @param {string} name @returns {string[]} */
function problemsIn(name) {
  const path = join(root, areaOf(name).scores);
  const recorded = read(path);
  const env = { OPT_MUTATED_AREA: name, OPT_MUTATION_SAMPLE: String(sample), OPT_TORCH_PYTHON: "" };
  if (!run("stryker", ["run", "tools/test/mutate/stryker.config.mjs", ...options], { env }).ok)
    return ["Stryker failed"];
  const report = JSON.parse(readFileSync(join(root, "runs/mutation", name, "report.json"), "utf8"));
  const { equivalents = [] } = recorded[name] ?? {};
  const { survivors, stale, ...score } = measure(report, sample, equivalents);
  for (const { file, line, mutant, isRun } of survivors)
    console.log(`${file}:${line}  ${mutant}${isRun ? "" : "  (no test comes here)"}`);
  console.log(`mutate: ${name} finds ${score.found} of ${score.mutants}, ${score.score} %`);
  if (writes) {
    const kept = equivalents.length > 0 && { equivalents };
    // Another area of the folder may have been recorded meanwhile.
    const all = Object.entries({ ...read(path), [name]: { ...score, ...kept } }).sort(([a], [b]) => (a < b ? -1 : 1));
    writeFileSync(path, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
    run("biome", ["format", "--write", path], { quiet: true });
  }
  const named = stale.map(({ file, mutant }) => `names an equivalent mutant that is no more: ${file} ${mutant}`);
  return [...problemsOf(score, writes ? score : recorded[name]), ...named];
}

const problems = (named.length > 0 ? named : Object.keys(areas)).flatMap((name) => {
  console.log(`mutate: ${name}`);
  return problemsIn(name).map((problem) => `${name}: ${problem}`);
});
if (problems.length > 0) console.log(`\n${problems.join("\n")}`);
process.exit(problems.length > 0 ? 1 : 0);
