/** What npm does not have yet. */
import { start } from "../workspace/run.mjs";

/** @typedef {import("../workspace/packages.mjs").Package} Package */

/** Those whose versions npm lacks. @template {Package} P @param {readonly P[]} packages @returns {Promise<P[]>} */
export async function unpublished(packages) {
  const known = await Promise.all(
    packages.map(async ({ name, version }) => {
      const { ok, stdout } = await start("npm", ["view", `${name}@${version}`, "version"], { quiet: true });
      return ok && stdout.trim() === version;
    }),
  );
  return packages.filter((_, i) => !known[i]);
}
