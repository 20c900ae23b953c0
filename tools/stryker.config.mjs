// Mutation testing: small bugs are planted one at a time, and some test has to notice. https://stryker-mutator.io
const areas = [
  ...["optimizer/*", "rule/*", "schedules/*"],
  ...["engine", "tape", "tape-node", "recorder", "recording", "repeatable", "scope"],
];

/** Where the words of a refusal begin among the arguments of what makes it: tests go by its code, words may change. */
const WORDS = { OptError: 1, check: 2, checkOptions: 0, internalError: 0, checkValue: 1, checkState: 1 };

/** @param {{ node: any, parentPath: any, listKey?: string, key?: any }} path @returns {string | undefined} the reason to plant nothing here */
function shouldIgnore(path) {
  if (writesText(path.node) || writesText(path.parentPath?.node)) return "the words of a refusal";
  for (let at = path; at.parentPath; at = at.parentPath) {
    const { node } = at.parentPath;
    const name = node.callee?.name ?? node.callee?.property?.name;
    const first = WORDS[/** @type {keyof typeof WORDS} */ (name)];
    if (at.listKey === "arguments" && at.key >= first) return "the words of a refusal";
    if (/^(problem|advice|rule|got|where)$/.test(node.id?.name ?? "") && isText(path.node))
      return "the words of a refusal";
    if (/^shown?$/.test(node.id?.name ?? "")) return "the words of a refusal";
  }
  return undefined;
}

/** @param {{ type: string }} node */
const isText = ({ type }) => type === "StringLiteral" || type === "TemplateLiteral";

/** `() => "text"`: what `check` is given to say. @param {any} node */
const writesText = (node) => node?.type === "ArrowFunctionExpression" && node.params.length === 0 && isText(node.body);

export const strykerPlugins = [{ kind: "Ignore", name: "words", value: { shouldIgnore } }];

export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner", import.meta.filename],
  ignorers: ["words"],
  vitest: { configFile: "tools/vitest.mutate.config.ts" },
  mutate: [...areas.map((area) => `packages/core/src/${area}.ts`), "!**/*.test.ts"],
  ignorePatterns: ["runs", "native", "e2e", "dist", "packages/kernels-*", "packages/checkpoint", "packages/nn"],
  coverageAnalysis: "perTest",
  // Loops without end are found by counting; a busy machine may stand still for seconds.
  timeoutMS: 30_000,
  // What is computed once at import would run every test; tables of ops have tests of their own.
  ignoreStatic: true,
  incremental: true,
  incrementalFile: "runs/mutation/incremental.json",
  tempDirName: "runs/mutation/sandbox",
  reporters: ["progress-append-only", "clear-text", "html", "json"],
  clearTextReporter: { reportTests: false, allowColor: false },
  htmlReporter: { fileName: "runs/mutation/index.html" },
  jsonReporter: { fileName: "runs/mutation/report.json" },
  thresholds: { high: 95, low: 85, break: 85 },
};
