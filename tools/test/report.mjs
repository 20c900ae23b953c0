/** What `npm test` says in the end. Its last lines are often all that is read: skipped tests by reason, then failures, then the counts. */

/**
 * @typedef {import("./vitest.reporter.mjs").Failure} Failure
 * @typedef {import("./vitest.reporter.mjs").Skipped} Skipped
 */

/** Of what went wrong in one test. */
const LINES = 30;

/** @param {number} passed @param {readonly Failure[]} failures @param {readonly Skipped[]} skipped */
export function report(passed, failures, skipped) {
  /** @type {Map<string, Map<string, number>>} */
  const reasons = new Map();
  for (const { reason, file, name } of skipped) {
    const files = reasons.get(reason) ?? new Map();
    reasons.set(reason, files.set(file || name, (files.get(file || name) ?? 0) + 1));
  }
  const skips = [...reasons].flatMap(([reason, files]) => [
    `  ${reason}:`,
    ...[...files].map(([file, count]) => `    ${file}${count > 1 ? `, ${count} tests` : ""}`),
  ]);
  const problems = failures.flatMap(({ name, problem }) => {
    const lines = problem.split("\n");
    const rest = lines.length > LINES ? [`(${lines.length - LINES} more lines)`] : [];
    return [`  ${name}`, ...[...lines.slice(0, LINES), ...rest].map((line) => `    ${line}`)];
  });
  return [
    ...(skips.length > 0 ? ["Skipped:", ...skips, ""] : []),
    ...(problems.length > 0 ? ["Failed:", ...problems, ""] : []),
    `${passed} passed, ${failures.length} failed, ${skipped.length} skipped`,
  ].join("\n");
}
