/** Stryker's plugin for `--sample`: a checker, since it alone is asked for single mutants. An ignorer leaves out all that is inside as well. */
import { relative, sep } from "node:path";
import { isSampled } from "./sample.mjs";

const sample = Number(process.env.OPT_MUTATION_SAMPLE ?? 1);

/** @typedef {{ id: string, fileName: string, location: import("./sample.mjs").Location, replacement: string }} Mutant */

const checker = {
  async init() {},
  /** @param {Mutant[]} mutants */
  group: (mutants) => [mutants.map(({ id }) => id)],
  /** @param {Mutant[]} mutants */
  async check(mutants) {
    return Object.fromEntries(
      mutants.map(({ id, fileName, location, replacement }) => {
        const file = relative(process.cwd(), fileName).split(sep).join("/");
        const isChosen = isSampled({ file, location, replacement }, sample);
        // A mutant that does not compile counts neither as found nor as unfound.
        return [id, isChosen ? { status: "passed" } : { status: "compileError", reason: "not in the sample" }];
      }),
    );
  },
};

export const strykerPlugins = [{ kind: "Checker", name: "sample", value: checker }];
