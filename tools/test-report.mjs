/** What `npm test` says in the end. Its last lines are often all that is read: failures stand there, whole; what was skipped stands before, by reason. */

/**
 * @typedef {import("./vitest.reporter.mjs").Failure} Failure
 * @typedef {import("./vitest.reporter.mjs").Skipped} Skipped
 */

/** Of tests that one file skips for one reason. */
const NAMED = 3;
/** Of what went wrong in one test. */
const LINES = 30;

/**
 * @param {number} passed
 * @param {readonly Failure[]} failures
 * @param {readonly Skipped[]} skipped
 */
export function report(passed, failures, skipped) {
  const parts = [
    ...(skipped.length > 0 ? [`Skipped:\n${indent(skippedLines(skipped).join("\n"))}`] : []),
    ...(failures.length > 0 ? [`Failed:\n${indent(failures.map(failureText).join("\n"))}`] : []),
    `${passed} passed, ${failures.length} failed, ${skipped.length} skipped`,
  ];
  return parts.join("\n\n");
}

/** @param {readonly Skipped[]} skipped */
function skippedLines(skipped) {
  return [...groups(skipped, ({ reason }) => reason)].flatMap(([reason, because]) => [
    `${reason}:`,
    ...[...groups(because, ({ file }) => file)].map(([file, tests]) => {
      const names = tests.slice(0, NAMED).map(({ name }) => name);
      const rest = tests.length > NAMED ? `; and ${tests.length - NAMED} more` : "";
      return `  ${file === "" ? "" : `${file}: `}${names.join("; ")}${rest}`;
    }),
  ]);
}

/** @param {Failure} failure */
function failureText({ name, problem }) {
  const lines = problem.split("\n");
  const rest = lines.length > LINES ? [`(${lines.length - LINES} more lines)`] : [];
  return `${name}\n${indent([...lines.slice(0, LINES), ...rest].join("\n"))}`;
}

/** @template T @param {readonly T[]} all @param {(each: T) => string} keyOf */
function groups(all, keyOf) {
  /** @type {Map<string, T[]>} */
  const found = new Map();
  for (const each of all) {
    const group = found.get(keyOf(each));
    if (group) group.push(each);
    else found.set(keyOf(each), [each]);
  }
  return found;
}

/** @param {string} text */
const indent = (text) => text.replaceAll(/^(?=.)/gm, "  ");
