/** Looks for a test that finds a fault: one that fails with it and passes without. */

/**
 * @typedef {{ readonly tests: readonly string[], readonly title: string }} Failure
 * `tests` are the files that must run to see it: one, but where vitest itself ended badly
 * @typedef {{ readonly failures: readonly Failure[], readonly passed: readonly string[] }} Outcome
 */

/**
 * Runs stage by stage, and stops at the first find. What fails without the fault, too, finds nothing: the rest of its stage runs again.
 * @param {readonly (readonly string[])[]} stages files of tests
 * @param {(tests: readonly string[]) => Outcome} run runs tests with the fault, up to the first failure
 * @param {(tests: readonly string[]) => boolean} passWithout whether these pass without the fault
 * @returns {Failure | undefined}
 */
export function findIn(stages, run, passWithout) {
  for (const stage of stages) {
    let left = stage;
    while (left.length > 0) {
      const { failures, passed } = run(left);
      const found = failures.find(({ tests }) => passWithout(tests));
      if (found !== undefined) return found;
      if (failures.length === 0) break;
      const over = new Set([...passed, ...failures.flatMap(({ tests }) => tests)]);
      left = left.filter((test) => !over.has(test));
    }
  }
  return undefined;
}
