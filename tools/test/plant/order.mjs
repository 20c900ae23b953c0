/** Which tests are likely to find a fault, and cost little: they run first. */
import { dirname } from "node:path";

/**
 * @typedef {{ readonly folder: string, readonly name: string, readonly uses: readonly string[] }} Workspace
 * `folder` from the root, and the names of the packages that its manifest lists
 */

/**
 * Tests beside the edited files, then those of their packages, of the packages that use these, and all others: each test once.
 * @param {readonly string[]} edited files, as paths from the root
 * @param {readonly string[]} tests
 * @param {readonly Workspace[]} workspaces
 * @returns {string[][]} without empty stages
 */
export function stagesOf(edited, tests, workspaces) {
  const within = (/** @type {string} */ folder) => (/** @type {string} */ path) => path.startsWith(`${folder}/`);
  const own = workspaces.filter(({ folder }) => edited.some(within(folder)));
  const users = workspaces.filter(({ uses }) => own.some(({ name }) => uses.includes(name)));
  const beside = new Set(edited.map(dirname));
  /** @type {((test: string) => boolean)[]} */
  const stages = [
    (test) => beside.has(dirname(test)),
    (test) => own.some(({ folder }) => within(folder)(test)),
    (test) => users.some(({ folder }) => within(folder)(test)),
    () => true,
  ];
  const left = new Set(tests);
  return stages
    .map((isIn) => {
      const stage = [...left].filter(isIn);
      for (const test of stage) left.delete(test);
      return stage;
    })
    .filter(({ length }) => length > 0);
}
