/** No bugs in the words of errors: tests go by an error's code, so that its words may become better. */

/** The calls that make a rejection, by the argument with which its words begin. */
const FROM = [
  "died invalid runsOnce checkOptions corrupt damaged unread internalError reject",
  "OptError checkLimit checkBoolean checkNotNegative unsupported missing duplicate badState rejectUnless checkValue checkState",
  "check checkTensor",
  "checkNumber",
].map((names) => names.split(" "));

/** Of other calls, by their places the arguments that only name whose rejection it is, and of what, or an op in a trace. */
const NAMES = [
  "extended record whole givenOptions momentumBounds wholeNumber finiteNumber positiveNumber perGroup oneOf trueOrFalse pair recordingSetTo",
  "wholeNumber finiteNumber positiveNumber perGroup oneOf trueOrFalse pair",
  "forGroup",
].map((names) => names.split(" "));

const WORDS = "the words of a rejection";

/** @param {{ node: any, parentPath: any, listKey?: string, key?: any, getFunctionParent(): any }} path @returns {string | undefined} the reason to plant nothing here */
function shouldIgnore(path) {
  // A module is loaded once for all runs: its tables cannot change later.
  if (isConstant(path.node) && !path.getFunctionParent()) return "computed at import";
  if (writesText(path.node) || writesText(path.parentPath?.node)) return WORDS;
  for (let at = path; at.parentPath; at = at.parentPath) {
    const { node } = at.parentPath;
    const name = node.callee?.name ?? node.callee?.property?.name;
    if (at.listKey === "arguments") {
      if (at.node === path.node && isText(path.node)) {
        if (NAMES[at.key]?.includes(name) || /^check[A-Z]/.test(name ?? "")) return WORDS;
        // What a function passes as its own name is whose rejection it is.
        if (path.node.value !== undefined && path.node.value === functionAround(path)) return WORDS;
      }
      const first = FROM.findIndex((names) => names.includes(name));
      if (first >= 0 && at.key >= first) return WORDS;
    }
    const assigned = node.id?.name ?? "";
    if (/^(problem|advice|rule|got|title|where)$/.test(assigned) && isText(path.node)) return WORDS;
    if (/^shown?$/.test(assigned)) return WORDS;
  }
  return undefined;
}

/** The name of the function that a node is in, the outermost one. @param {any} path @returns {string | undefined} */
function functionAround(path) {
  let name;
  for (let at = path.getFunctionParent(); at; at = at.getFunctionParent()) name = at.node.id?.name ?? at.node.key?.name;
  return name;
}

/** @param {{ type: string }} node */
const isText = ({ type }) => type === "StringLiteral" || type === "TemplateLiteral";

/** Texts, and lists of them. @param {any} node @returns {boolean} */
const isConstant = (node) =>
  isText(node) ||
  (node.type === "ArrayExpression" &&
    node.elements.every((/** @type {any} */ each) => each !== null && isConstant(each)));

/** `() => "text"`: what `check` is given to say. @param {any} node */
const writesText = (node) => node?.type === "ArrowFunctionExpression" && node.params.length === 0 && isText(node.body);

export const strykerPlugins = [{ kind: "Ignore", name: "words", value: { shouldIgnore } }];
