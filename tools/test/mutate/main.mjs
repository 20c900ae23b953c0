/**
 * `npm run mutate -- [areas] [options of Stryker]`: plants small bugs in each area (all of them, if none is named), lists those
 * that no test notices, and closes with the areas whose score is too low. A second run plants only where code or tests have changed.
 */
import { run } from "../../workspace/run.mjs";
import { areas } from "./areas.mjs";

const given = process.argv.slice(2);
const firstOption = given.findIndex((word) => word.startsWith("-"));
const named = firstOption === -1 ? given : given.slice(0, firstOption);
const options = given.slice(named.length);
const unknown = named.filter((name) => !(name in areas));
if (unknown.length > 0) {
  console.error(`no area ${unknown.join(", ")}; there are ${Object.keys(areas).join(", ")}`);
  process.exit(2);
}
const low = (named.length > 0 ? named : Object.keys(areas)).filter((area) => {
  console.log(`mutate: ${area}`);
  const env = { OPT_MUTATED_AREA: area };
  return !run("stryker", ["run", "tools/test/mutate/stryker.config.mjs", ...options], { env }).ok;
});
if (low.length > 0) console.log(`\nmutate: failed, or found too little: ${low.join(", ")}`);
process.exit(low.length > 0 ? 1 : 0);
