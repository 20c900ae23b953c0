/** No bugs in the words of errors: tests go by an error's code, so that its words may become better. */

/** Where the words begin among the arguments of what makes a rejection. */
const WORDS = {
  OptError: 1,
  check: 2,
  runsOnce: 0,
  checkTensor: 2,
  checkLimit: 1,
  checkBoolean: 1,
  checkNotNegative: 1,
  checkNumber: 3,
  checkOptions: 0,
  corrupt: 0,
  damaged: 0,
  unread: 0,
  unsupported: 1,
  missing: 1,
  duplicate: 1,
  badState: 1,
  internalError: 0,
  reject: 0,
  rejectUnless: 1,
  checkValue: 1,
  checkState: 1,
};

/** The arguments that only name whose rejection it is, and of what. */
const NAMES = {
  wholeNumber: [0, 1],
  finiteNumber: [0, 1],
  positiveNumber: [0, 1],
  givenOptions: [0],
  momentumBounds: [0],
  perGroup: [0, 1],
  forGroup: [2],
  oneOf: [0, 1],
  trueOrFalse: [0, 1],
};

/**
 * Of what calls are named, `constructor` is one, too. @template T
 * @param {Readonly<Record<string, T>>} table @param {string} name @returns {T | undefined}
 */
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

/** @param {{ node: any, parentPath: any, listKey?: string, key?: any, getFunctionParent(): any }} path @returns {string | undefined} the reason to plant nothing here */
function shouldIgnore(path) {
  // A module is loaded once for all runs: the words of its tables cannot change later.
  if (isText(path.node) && !path.getFunctionParent()) return "computed at import";
  if (writesText(path.node) || writesText(path.parentPath?.node)) return "the words of a rejection";
  for (let at = path; at.parentPath; at = at.parentPath) {
    const { node } = at.parentPath;
    const name = node.callee?.name ?? node.callee?.property?.name;
    const names = own(NAMES, name);
    if (at.node === path.node && at.listKey === "arguments" && names?.includes(at.key) && isText(path.node))
      return "the words of a rejection";
    const first = own(WORDS, name);
    if (at.listKey === "arguments" && first !== undefined && at.key >= first) return "the words of a rejection";
    if (/^(problem|advice|rule|got|title|where)$/.test(node.id?.name ?? "") && isText(path.node))
      return "the words of a rejection";
    if (/^shown?$/.test(node.id?.name ?? "")) return "the words of a rejection";
  }
  return undefined;
}

/** @param {{ type: string }} node */
const isText = ({ type }) => type === "StringLiteral" || type === "TemplateLiteral";

/** `() => "text"`: what `check` is given to say. @param {any} node */
const writesText = (node) => node?.type === "ArrowFunctionExpression" && node.params.length === 0 && isText(node.body);

export const strykerPlugins = [{ kind: "Ignore", name: "words", value: { shouldIgnore } }];
