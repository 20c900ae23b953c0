/**
 * `npm run mutate -- [areas] [options of Stryker]`: plants small bugs in each area (all of them, if none is named), lists those
 * that no test notices, and closes with one line of score per area. A second run plants only where code or tests have changed.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { areas } from "./areas.mjs";

/** An area's score in percent must not be lower. */
const LEAST = 85;

const root = new URL("../..", import.meta.url).pathname;
const given = process.argv.slice(2);
const firstOption = given.findIndex((word) => word.startsWith("-"));
const named = firstOption === -1 ? given : given.slice(0, firstOption);
const options = firstOption === -1 ? [] : given.slice(firstOption);
const unknown = named.filter((name) => !(name in areas));
if (unknown.length > 0) {
  console.error(`no area ${unknown.join(", ")}; there are ${Object.keys(areas).join(", ")}`);
  process.exit(2);
}

/** @param {string} area @returns {{ line: string, isEnough: boolean }} */
function scoreOf(area) {
  /** @type {{ files: Record<string, { mutants: { status: string, statusReason?: string }[] }> }} */
  const report = JSON.parse(readFileSync(`${root}/runs/mutation/${area}/report.json`, "utf8"));
  const mutants = Object.values(report.files).flatMap((file) => file.mutants);
  /** @param {(mutant: { status: string, statusReason?: string }) => boolean} is */
  const count = (is) => mutants.filter(is).length;
  const killed = count(({ status }) => status === "Killed");
  const endless = count(({ status, statusReason }) => status === "Timeout" && /hit limit/i.test(statusReason ?? ""));
  // By the clock: perhaps the machine stood still, so that nothing was found.
  const slow = count(({ status }) => status === "Timeout") - endless;
  const survived = count(({ status }) => status === "Survived");
  const unreached = count(({ status }) => status === "NoCoverage");
  const all = killed + endless + slow + survived + unreached;
  const score = (100 * (killed + endless)) / all;
  const parts = `${killed} killed, ${endless} endless, ${slow} timed out, ${survived} survived, ${unreached} not reached`;
  return {
    line: `${area.padEnd(10)} ${score.toFixed(1).padStart(5)} %  of ${all}: ${parts}`,
    isEnough: score >= LEAST,
  };
}

const stryker = createRequire(import.meta.url)
  .resolve("@stryker-mutator/core/package.json")
  .replace("package.json", "bin/stryker.js");
const scores = (named.length > 0 ? named : Object.keys(areas)).map((area) => {
  const env = { ...process.env, OPT_MUTATED_AREA: area };
  const command = [stryker, "run", "tools/mutate/stryker.config.mjs", ...options];
  const { status } = spawnSync(process.execPath, command, { cwd: root, env, stdio: "inherit" });
  return status === 0 ? scoreOf(area) : { line: `${area.padEnd(10)} failed to run`, isEnough: false };
});
console.log(`\n${scores.map(({ line }) => line).join("\n")}`);
process.exit(scores.every(({ isEnough }) => isEnough) ? 0 : 1);
